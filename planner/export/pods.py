"""Parts of Kubernetes objects that several targets share: where a pool may run, its container, its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from planner.export.engine import PORT, Engine, Settings, Unsupported, served_by
from planner.export.gpus import PRODUCTS, RESOURCES, vendor
from planner.export.names import dns_name
from planner.export.placed import PlacedPool
from planner.plan.schema import Plan

Json = dict[str, Any]
LONGEST_LABEL = 63
PREFIX = "llm-fleet-planner"
SEPARATOR = "---\n"
SHARED_MEMORY = "16Gi"
"""At most, of the node's memory: ranks of a replica talk through it."""
START_UP_S = 3600
"""Weights are loaded before a server answers; a probe that gives up earlier would start over for ever."""
UNDECIDED = (
    "images, CPU and memory requests, where weights are cached, and the secret `hf-token` for gated weights",
    "what routes requests to the pools",
)

MODEL_LABEL, INSTANCE_LABEL = "app.kubernetes.io/name", "app.kubernetes.io/instance"
"""Labels that find the pods of a model, and those of a pool at a place."""
REGION, INSTANCE = "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"
LABELLED = ("aws", "gcp", "azure")
"""Clouds whose nodes carry region and instance type under the names that the catalog uses."""
SPOT_LABELS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "aws": (("eks.amazonaws.com/capacityType", "SPOT"), ("karpenter.sh/capacity-type", "spot")),
    "gcp": (("cloud.google.com/gke-spot", "true"),),
    "azure": (("kubernetes.azure.com/scalesetpriority", "spot"),),
}
"""Labels of spot nodes; where there are several, a node has one of them."""


def surroundings(placed: PlacedPool) -> Json:
    """Return the parts of a pod beside its containers: the nodes that take it, by instance type and region or else by GPU."""
    required: list[Json] = []
    provider = placed.place.provider
    if provider in LABELLED and placed.nodes:
        required = [_in(REGION, placed.place.region), _in(INSTANCE, *sorted({n.instance for n in placed.nodes}))]
    elif placed.pool.gpu in PRODUCTS:
        required = [_in("nvidia.com/gpu.product", PRODUCTS[placed.pool.gpu])]
    spot = SPOT_LABELS.get(provider, ()) if placed.pool.spot else ()
    terms = [[*required, _in(*label)] for label in spot] or ([required] if required else [])
    # A Service named `vllm` would set VLLM_PORT, which vLLM reads.
    found: Json = {"enableServiceLinks": False}
    if terms:
        selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        found["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    tolerated = [{"key": gpu_resource(placed), "operator": "Exists", "effect": "NoSchedule"}]
    tolerated += [{"key": k, "operator": "Equal", "value": v, "effect": "NoSchedule"} for k, v in spot]
    return {**found, "tolerations": tolerated}


def gpu_resource(placed: PlacedPool) -> str:
    """Return the resource that stands for a GPU of the pool."""
    return RESOURCES[vendor(placed.pool.gpu)]


def image(placed: PlacedPool) -> str:
    """Return the container image of a pool. Raises `Unsupported` where there is no default and none was given."""
    if placed.image is None:
        raise Unsupported(
            f"there is no default image of {placed.engine.name} for {placed.pool.gpu}",
            f"name one with `--image {placed.pool.name}=IMAGE`",
        )
    return placed.image


def container(placed: PlacedPool, more: Settings | None = None, probed: bool = True) -> Json:
    """Return the container of one node of a replica; `more` settings come last."""
    engine = placed.engine
    settings = {**served_by(placed.launch, "0.0.0.0", str(PORT)), **placed.settings}
    found: Json = {
        "name": engine.name,
        "image": image(placed),
        "command": list(engine.program),
        "args": [*arguments(engine, settings), *arguments(engine, more or {}, literal=False)],
        "env": [_token()],
    }
    if probed:
        found |= {"ports": [{"name": "http", "containerPort": PORT}], **probes("http")}
    found["resources"] = {"limits": {gpu_resource(placed): str(placed.gpus_per_node)}}
    found["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    return found


def pod(placed: PlacedPool, main: Json) -> Json:
    """Return the spec of a pod around a container."""
    shared = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}
    return {**surroundings(placed), "containers": [main], "volumes": [shared]}


def arguments(engine: Engine, settings: Settings, literal: bool = True) -> list[str]:
    """Return arguments of a container; where they are literal, Kubernetes is kept from reading `$(NAME)` in them."""
    words = [word for words in engine.arguments(settings) for word in words]
    return [escaped(word) for word in words] if literal else words


def escaped(text: str) -> str:
    """Return a text that Kubernetes does not expand."""
    return text.replace("$", "$$")


def probes(port: str | int) -> Json:
    """Return the probes of a server: it is given an hour to load its weights."""
    health = {"httpGet": {"path": "/health", "port": port}}
    return {
        "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": START_UP_S // 10},
        "readinessProbe": {**health, "periodSeconds": 5},
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 3},
    }


def metadata(plan: Plan, placed: PlacedPool) -> Json:
    """Return the metadata of an object; annotations keep the names that users chose."""
    pool, place = placed.pool, placed.place
    annotations = {
        "fleet": plan.fleet,
        "pool": pool.name,
        "model": pool.model,
        "place": f"{place.provider}/{place.region}",
        "weights": placed.weights,
        "plan": plan.digests.plan,
    }
    return {
        "name": placed.name,
        "labels": {
            **selector(placed),
            "app.kubernetes.io/component": pool.engine.name,
            "app.kubernetes.io/part-of": dns_name(plan.fleet, LONGEST_LABEL),
            "app.kubernetes.io/managed-by": PREFIX,
            f"{PREFIX}/place": dns_name(f"{place.provider}-{place.region}", LONGEST_LABEL),
        },
        "annotations": {f"{PREFIX}/{key}": value for key, value in annotations.items()},
    }


def renamed(placed: Iterable[PlacedPool], served_name: Callable[[str], str]) -> tuple[str, ...]:
    """Return a line for every model that a platform serves under another name than its own."""
    names = {p.pool.model: served_name(p.pool.model) for p in placed}
    return tuple(
        f"model `{model}` is served as `{name}`: the platform does not take its own name"
        for model, name in names.items()
        if name != model
    )


def selector(placed: PlacedPool) -> dict[str, str]:
    """Return the labels that find the pods of a pool at a place."""
    return {
        MODEL_LABEL: dns_name(placed.pool.model, LONGEST_LABEL),
        INSTANCE_LABEL: placed.name,
    }


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _token() -> Json:
    reference = {"name": "hf-token", "key": "token", "optional": True}
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}
