"""KServe: an LLMInferenceService for every pool and place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import join

from planner.export.documents import Document, as_yaml
from planner.export.engine import PORT, Unsupported, hugging_face
from planner.export.names import dns_name
from planner.export.placed import PlacedPool
from planner.export.pods import SEPARATOR, Json, escaped, gpu_resource, metadata, renamed, surroundings
from planner.export.target import Target, Written, for_each
from planner.plan.schema import Plan

API = "serving.kserve.io/v1alpha1"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
"""Names of models that mean themselves in a template of a command line, which is where KServe puts them."""


def _write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:
    return Written(
        for_each(placed, lambda p: Document(p.name, as_yaml(_service(plan, p)))), renamed(placed, _served_name)
    )


def _service(plan: Plan, placed: PlacedPool) -> Json:
    if placed.launch.nodes > 1:
        raise Unsupported("its replicas span nodes, which this target does not write", "use `--to kubernetes`")
    resource = gpu_resource(placed)
    # KServe's own container starts the server, on its own port and with its own certificates; it takes further flags
    # from a variable that a shell reads.
    flags = escaped(join([word for words in placed.engine.arguments(placed.settings) for word in words]))
    main: Json = {
        "name": "main",
        "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": flags}],
        "resources": {"limits": {resource: str(placed.gpus_per_node)}},
    }
    if placed.given_image is not None:
        main = {"name": main["name"], "image": placed.given_image, **main}
    return {
        "apiVersion": API,
        "kind": "LLMInferenceService",
        "metadata": metadata(plan, placed),
        "spec": {
            "model": {"uri": hugging_face(placed.launch), "name": _served_name(placed.pool.model)},
            "replicas": placed.most,
            "router": {"route": {}, "gateway": {}, "scheduler": {}},
            "template": {**surroundings(placed), "containers": [main]},
        },
    }


def _served_name(model: str) -> str:
    return model if PLAIN.fullmatch(model) else dns_name(model)


TARGET = Target(
    name="kserve",
    sentence="LLMInferenceServices of KServe",
    ending=".yaml",
    write=_write,
    engines=("vllm",),
    separator=SEPARATOR,
    undecided=(
        f"the release of vLLM, which is that of KServe's image unless --image names one (it listens on {PORT})",
        "CPU and memory requests, the gateway, and credentials for gated weights",
        "whether KServe's template reads VLLM_ADDITIONAL_ARGS, as recent releases do",
    ),
)
