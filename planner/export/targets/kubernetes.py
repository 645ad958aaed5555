"""Plain Kubernetes: a Deployment and a Service for every pool and place, or a LeaderWorkerSet for replicas over nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.export.documents import Document, as_yaml
from planner.export.engine import PORT
from planner.export.names import SERVICE_ENDING
from planner.export.placed import PlacedPool
from planner.export.pods import PREFIX, SEPARATOR, UNDECIDED, Json, container, metadata, pod, selector
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan

LWS = "leaderworkerset.x-k8s.io/v1"
LEADER = {f"{PREFIX}/role": "leader"}


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:
    return Written(for_each(placed, lambda p: _document(plan, p)), tuple(_notes(placed)))


def _document(plan: Plan, placed: PlacedPool) -> Document:
    return Document(placed.name, SEPARATOR.join(map(as_yaml, _objects(plan, placed))))


def _notes(placed: Sequence[PlacedPool]) -> list[str]:
    notes = []
    places = {(p.place.provider, p.place.region) for p in placed}
    if len(places) > 1:
        notes.append(f"{len(places)} places: apply each to its cluster with `kubectl apply -l {PREFIX}/place=PLACE`")
    if any(p.least < p.most for p in placed):
        metrics = ", ".join(sorted({p.engine.running for p in placed}))
        notes.append(f"autoscalers read {metrics} from the custom metrics API (Prometheus Adapter)")
    return notes


def _objects(plan: Plan, placed: PlacedPool) -> list[Json]:
    about = metadata(plan, placed)
    spans = placed.launch.nodes > 1
    objects = [_leader_worker_set(placed, about) if spans else _deployment(placed, about), _service(placed, about)]
    if placed.least < placed.most:
        objects.append(_autoscaler(placed, about, objects[0]))
    if placed.pool.spare_replicas > 0 and not spans:
        objects.append(_disruption_budget(placed, about))
    return objects


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
    target = {"type": "AverageValue", "averageValue": str(max(1, math.ceil(placed.pool.mean_batch)))}
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


def _disruption_budget(placed: PlacedPool, about: Json) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": about,
        "spec": {
            "maxUnavailable": min(placed.pool.spare_replicas, placed.most),
            "selector": {"matchLabels": selector(placed)},
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
