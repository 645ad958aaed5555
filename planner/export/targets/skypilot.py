"""SkyPilot: a service for every pool and place in a cloud that it knows."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from planner.export.documents import Document, as_yaml, comment
from planner.export.engine import PORT, Unsupported
from planner.export.gpus import ACCELERATORS
from planner.export.placed import PlacedPool, UnsupportedPools
from planner.export.pods import SEPARATOR, START_UP_S, Json
from planner.export.script import command, worker_flags
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan

CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "verda")
"""Providers of the catalog that SkyPilot 0.14 knows, under the same names."""
RANK = '"$SKYPILOT_NODE_RANK"'
LEADER = '"$(head -n 1 <<< "$SKYPILOT_NODE_IPS")"'


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
    known = [p for p in placed if p.place.provider in CLOUDS]
    if not known:
        nowhere = Unsupported("none of its places is a cloud of SkyPilot", "use another target for it")
        raise UnsupportedPools({p.pool.name: nowhere for p in placed})
    notes = [
        f"left out: `{p.pool.name}` at {p.place.provider} {p.place.region} (x{p.most}), which is no cloud of SkyPilot"
        for p in placed
        if p not in known
    ]
    return Written(for_each(known, _document), tuple(notes))


def _document(placed: PlacedPool) -> Document:
    task: Json = {"name": placed.name, "service": _service(placed)}
    if placed.launch.nodes > 1:
        task["num_nodes"] = placed.launch.nodes
    release = placed.pool.engine.version
    package = placed.engine.package.format(version=f"{release}.*" if release.count(".") == 1 else release)
    joins = worker_flags(placed, RANK)
    run = f"exec {command(placed, '0.0.0.0', str(PORT), RANK, LEADER, more=bool(joins))}\n"
    task |= {
        "resources": _resources(placed),
        "envs": {"HF_TOKEN": ""},
        "setup": f"pip install {quote(package)}\n",
        "run": f"set --\n{joins}{run}" if joins else run,
    }
    return Document(placed.name, _warning(placed) + as_yaml(task))


def _service(placed: PlacedPool) -> Json:
    probe = {"path": "/health", "initial_delay_seconds": START_UP_S}
    if placed.least == placed.most:
        return {"readiness_probe": probe, "replicas": placed.most}
    rate = placed.pool.predicted.requests_per_s / placed.pool.replicas
    policy = {
        "min_replicas": placed.least,
        "max_replicas": placed.most,
        "target_qps_per_replica": float(f"{rate:.3g}"),
    }
    return {"readiness_probe": probe, "replica_policy": policy}


def _resources(placed: PlacedPool) -> Json:
    gpu, count = placed.pool.gpu, placed.gpus_per_node
    found: Json = {"infra": f"{placed.place.provider}/{placed.place.region}"}
    whole = _whole_nodes(placed)
    if whole:
        found["instance_type"] = whole[0]
    elif gpu in ACCELERATORS:
        found["accelerators"] = {ACCELERATORS[gpu]: count}
    else:
        raise Unsupported(
            f"SkyPilot's name for {count} x {gpu} of a larger node is not known", "use another target for it"
        )
    return {**found, "use_spot": placed.pool.spot, "ports": PORT}


def _whole_nodes(placed: PlacedPool) -> list[str]:
    """Return the instance types of the plan that one replica, or one of its parts, fills."""
    return sorted({n.instance for n in placed.nodes if n.gpus_per_node == placed.gpus_per_node})


def _warning(placed: PlacedPool) -> str:
    if _whole_nodes(placed):
        return ""
    planned = ", ".join(sorted({f"{n.instance} ({n.gpus_per_node} GPUs)" for n in placed.nodes}))
    return comment(
        [
            f"The plan puts several replicas on each {planned}. SkyPilot starts one machine for each replica,",
            "with the GPUs of one, at a price that may differ from the plan.",
        ]
    )


TARGET = Target(
    name="skypilot",
    sentence="services of SkyPilot, one file for every pool and cloud region",
    ending=".yaml",
    write=_write,
    engines=("sglang", "vllm"),
    one_each=True,
    separator=SEPARATOR,
    undecided=(
        "disks, images, and the token for gated weights (`sky serve up FILE --secret HF_TOKEN`)",
        "what routes requests to the services",
    ),
)
