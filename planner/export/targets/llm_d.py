"""llm-d: values of its modelservice chart, one release for every pool and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.export.documents import Document, as_yaml
from planner.export.engine import PORT, Unsupported, hugging_face
from planner.export.gpus import vendor
from planner.export.names import dns_name
from planner.export.placed import PlacedPool
from planner.export.pods import (
    LONGEST_LABEL,
    SEPARATOR,
    SHARED_MEMORY,
    Json,
    arguments,
    escaped,
    image,
    probes,
    renamed,
    surroundings,
)
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan

BY_THE_CHART = ("tensor", "data")
"""Settings that the chart turns into flags itself, beside model, name and port."""


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
    return Written(for_each(placed, lambda p: Document(p.name, as_yaml(_values(p)))), renamed(placed, _served_name))


def _values(placed: PlacedPool) -> Json:
    pool, launch = placed.pool, placed.launch
    if pool.pipeline_parallel > 1 or launch.nodes > 1:
        raise Unsupported(
            "the modelservice chart gives a replica the GPUs of its tensor and data ranks on one node, no pipeline stages",
            "use `--to kubernetes`",
        )
    own = {name: value for name, value in placed.settings.items() if name not in BY_THE_CHART}
    return {
        "modelArtifacts": {
            "name": escaped(_served_name(pool.model)),
            "uri": hugging_face(launch),
            "size": "0",
            "authSecretName": "",
            "labels": {
                "llm-d.ai/inference-serving": "true",
                "llm-d.ai/model": dns_name(pool.model, LONGEST_LABEL),
                "llm-d.ai/pool": placed.name,
            },
        },
        "accelerator": {"type": _accelerator(placed)},
        "routing": {"servicePort": PORT, "proxy": {"enabled": False}},
        "decode": {
            "create": True,
            "replicas": placed.most,
            "parallelism": {"tensor": pool.tensor_parallel, "data": pool.attention_data_parallel},
            "extraConfig": _kept_from_templates(surroundings(placed)),
            "containers": [
                {
                    "name": "vllm",
                    "image": image(placed),
                    "modelCommand": "vllmServe",
                    "args": arguments(placed.engine, own),
                    "ports": [{"name": "vllm", "containerPort": PORT, "protocol": "TCP"}],
                    "mountModelVolume": True,
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                    "extraConfig": probes(PORT),
                }
            ],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}],
        },
        "prefill": {"create": False},
    }


def _served_name(model: str) -> str:
    """Return the name that the chart hands to vLLM as a word of its own: anything that vLLM does not take for a flag."""
    return dns_name(model) if model.startswith("-") else model


def _accelerator(placed: PlacedPool) -> str:
    name = vendor(placed.pool.gpu)
    return {"habana": "intel-gaudi", "intel": "intel-xe"}.get(name, name)


def _kept_from_templates(value: Any) -> Any:
    """Return values that the chart renders as templates, with what would start a template written as text."""
    if isinstance(value, dict):
        return {_kept_from_templates(k): _kept_from_templates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_kept_from_templates(item) for item in value]
    return value.replace("{{", '{{ "{{" }}') if isinstance(value, str) else value


TARGET = Target(
    name="llm-d",
    sentence="values of llm-d's modelservice chart, one file for every pool and place",
    ending=".yaml",
    write=_write,
    engines=("vllm",),
    one_each=True,
    separator=SEPARATOR,
    undecided=(
        "the inference pool and gateway, the secret for gated weights (modelArtifacts.authSecretName)",
        "CPU and memory requests; install each file as a release of its own",
    ),
)
