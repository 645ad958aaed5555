"""Plain Kubernetes: a Deployment and a Service for every pool and place, or a LeaderWorkerSet for replicas over nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.export.documents import Document, as_yaml
from planner.export.engine import PORT
from planner.export.names import SERVICE_ENDING
from planner.export.placed import PlacedPool
from planner.export.pods import (
    INSTANCE_LABEL,
    MODEL_LABEL,
    PREFIX,
    SEPARATOR,
    UNDECIDED,
    Json,
    container,
    metadata,
    pod,
    selector,
)
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan, Pool

LWS = "leaderworkerset.x-k8s.io/v1"
LEADER = {f"{PREFIX}/role": "leader"}


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:
    return Written(for_each(placed, lambda p: _document(plan, p, placed)), tuple(_notes(placed)))


def _document(plan: Plan, placed: PlacedPool, everything: Sequence[PlacedPool]) -> Document:
    return Document(placed.name, SEPARATOR.join(map(as_yaml, _objects(plan, placed, everything))))


def _notes(placed: Sequence[PlacedPool]) -> list[str]:
    notes = []
    places = {(p.place.provider, p.place.region) for p in placed}
    if len(places) > 1:
        notes.append(f"{len(places)} places: apply each to its cluster with `kubectl apply -l {PREFIX}/place=PLACE`")
    scaled = [p for p in placed if _scales(p)]
    if scaled:
        metrics = ", ".join(sorted({p.engine.running for p in scaled}))
        notes.append(f"autoscalers read {metrics} from the custom metrics API (Prometheus Adapter)")
    return notes


def _objects(plan: Plan, placed: PlacedPool, everything: Sequence[PlacedPool]) -> list[Json]:
    about = metadata(plan, placed)
    spans = placed.launch.nodes > 1
    objects = [_leader_worker_set(placed, about) if spans else _deployment(placed, about), _service(placed, about)]
    if _scales(placed):
        objects.append(_autoscaler(placed, about, objects[0]))
    neighbours = _with_spares(placed, everything)
    if placed in neighbours[:1]:
        objects.append(_disruption_budget(neighbours, about))
    return objects


def _scales(placed: PlacedPool) -> bool:
    """Tell whether a number of requests can scale a pool: one where nothing is decoded has no batch to hold on to."""
    return placed.least < placed.most and placed.pool.mean_batch > 0.0


def _with_spares(placed: PlacedPool, everything: Sequence[PlacedPool]) -> list[PlacedPool]:
    """Return the pools with spares that serve the same model at the same place, each replica on one node."""
    return [
        other
        for other in everything
        if (other.pool.model, other.place.provider, other.place.region)
        == (placed.pool.model, placed.place.provider, placed.place.region)
        and other.pool.spare_replicas > 0
        and other.launch.nodes == 1
    ]


def _deployment(placed: PlacedPool, about: Json) -> Json:
    # The nodes of a plan are full: an update cannot start new replicas before it stops old ones.
    rolling = {"maxSurge": 0, "maxUnavailable": max(1, min(placed.pool.spare_replicas, placed.most))}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": about,
        "spec": {
            "replicas": placed.most,
            "selector": {"matchLabels": selector(placed)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": about["labels"]}, "spec": pod(placed, container(placed))},
        },
    }


def _leader_worker_set(placed: PlacedPool, about: Json) -> Json:
    engine, nodes = placed.engine, placed.launch.nodes
    joined = engine.joining(nodes, "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")
    leader = container(placed, joined)
    worker = container(placed, {**joined, **dict.fromkeys(engine.worker)}, probed=False)
    labels = about["labels"]
    return {
        "apiVersion": LWS,
        "kind": "LeaderWorkerSet",
        "metadata": about,
        "spec": {
            "replicas": placed.most,
            "leaderWorkerTemplate": {
                "size": nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"metadata": {"labels": {**labels, **LEADER}}, "spec": pod(placed, leader)},
                "workerTemplate": {"metadata": {"labels": labels}, "spec": pod(placed, worker)},
            },
        },
    }


def _service(placed: PlacedPool, about: Json) -> Json:
    found = selector(placed)
    if placed.launch.nodes > 1:
        # The operator makes a headless Service of the set's own name, for the addresses of its pods.
        about, found = {**about, "name": placed.name + SERVICE_ENDING}, {**found, **LEADER}
    ports = [{"name": "http", "port": PORT, "targetPort": "http"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": {"selector": found, "ports": ports}}


def _autoscaler(placed: PlacedPool, about: Json, scaled: Json) -> Json:
    """Scale between the least and the most replicas of the plan's periods, at the batch that a replica is planned for."""
    target = {"type": "AverageValue", "averageValue": target_batch(placed.pool)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": about,
        "spec": {
            "scaleTargetRef": {"apiVersion": scaled["apiVersion"], "kind": scaled["kind"], "name": placed.name},
            "minReplicas": max(1, placed.least),
            "maxReplicas": placed.most,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": placed.engine.running}, "target": target}}],
        },
    }


def target_batch(pool: Pool) -> str:
    """Return the requests at once, in thousandths and at least one, at which an autoscaler keeps all replicas of a plan.

    The plan counts requests that stay as long as the confidence factor says. Those of a server as fast as predicted are
    gone sooner, and fewer of them are there at the same rate: hence the division. Rounded down, since a target above the
    batch takes replicas away at the very load that they are planned for.
    """
    return f"{max(1, math.floor(1000 * pool.mean_batch / pool.band.factor))}m"


def _disruption_budget(pools: Sequence[PlacedPool], about: Json) -> Json:
    """Let one budget count all pools of a model at a place: its spares are for the loss of any one of them, not of each."""
    model = {MODEL_LABEL: selector(pools[0])[MODEL_LABEL]}
    instance = {"key": INSTANCE_LABEL, "operator": "In", "values": [p.name for p in pools]}
    annotations = {**about["annotations"], f"{PREFIX}/pool": ", ".join(p.pool.name for p in pools)}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**about, "annotations": annotations},
        "spec": {
            "maxUnavailable": min(min(p.pool.spare_replicas, p.most) for p in pools),
            "selector": {"matchLabels": model, "matchExpressions": [instance]},
        },
    }


TARGET = Target(
    name="kubernetes",
    sentence="Deployments, Services, autoscalers and disruption budgets; LeaderWorkerSets for replicas over nodes",
    ending=".yaml",
    write=_write,
    engines=("sglang", "vllm"),
    separator=SEPARATOR,
    undecided=UNDECIDED,
)
