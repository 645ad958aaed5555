"""NVIDIA Dynamo: a DynamoGraphDeployment of a frontend and workers for every pool and place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.export.documents import Document, as_yaml
from planner.export.engine import Unsupported
from planner.export.placed import PlacedPool
from planner.export.pods import SEPARATOR, SHARED_MEMORY, Json, arguments, metadata, surroundings
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan

API = "nvidia.com/v1alpha1"
WORKERS: Mapping[str, tuple[str, str]] = {
    "vllm": ("dynamo.vllm", "--model"),
    "sglang": ("dynamo.sglang", "--model-path"),
}
"""Module that runs each engine under Dynamo, and its flag for the weights; all other flags are those of the engine."""
FRONTEND, WORKER = "Frontend", "Worker"
LONGEST_NAME = 45 - max(len(FRONTEND), len(WORKER) + len(f"{WORKER}-ldr"))
"""Its admission takes 45 characters for a graph and a service of it, and for its leader where replicas span nodes."""


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:
    return Written(for_each(placed, lambda p: Document(p.name, as_yaml(_graph(plan, p)))))


def _graph(plan: Plan, placed: PlacedPool) -> Json:
    if placed.given_image is None:
        raise Unsupported(
            "Dynamo's images carry an engine of their own, so that none follows from the plan",
            f"name one with `--image nvcr.io/nvidia/ai-dynamo/{placed.engine.name}-runtime:RELEASE`",
        )
    return {
        "apiVersion": API,
        "kind": "DynamoGraphDeployment",
        "metadata": metadata(plan, placed),
        "spec": {
            "services": {
                FRONTEND: {
                    "componentType": "frontend",
                    "replicas": 1,
                    "extraPodSpec": {"enableServiceLinks": False, "mainContainer": {"image": placed.given_image}},
                },
                WORKER: _worker(placed, placed.given_image),
            }
        },
    }


def _worker(placed: PlacedPool, image: str) -> Json:
    module, model_flag = WORKERS[placed.engine.name]
    served = {"served_name": placed.pool.model, **placed.settings}
    main = {
        "image": image,
        "command": ["python3", "-m", module],
        "args": [
            model_flag,
            *arguments(placed.engine, {"model": placed.launch.model})[-1:],
            *arguments(placed.engine, served),
        ],
    }
    found: Json = {
        "componentType": "worker",
        "replicas": placed.most,
        "envFromSecret": "hf-token-secret",
        "resources": {"limits": {"gpu": str(placed.gpus_per_node)}},
        "sharedMemory": {"size": SHARED_MEMORY},
    }
    if placed.launch.nodes > 1:
        found["multinode"] = {"nodeCount": placed.launch.nodes}
    return {**found, "extraPodSpec": {**surroundings(placed), "mainContainer": main}}


TARGET = Target(
    name="dynamo",
    sentence="DynamoGraphDeployments of NVIDIA Dynamo",
    ending=".yaml",
    write=_write,
    engines=("sglang", "vllm"),
    separator=SEPARATOR,
    longest_name=LONGEST_NAME,
    undecided=(
        "the release of the engine, which is that of the image",
        "routers and planners of Dynamo, CPU and memory requests, and the secret hf-token-secret, which must exist",
    ),
)
