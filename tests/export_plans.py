"""Plans to export: the stored one, with what its pools are started with, and changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from planner.export import Choices, Exported, all_targets, export
from planner.plan.io import dump, load, with_digest
from planner.plan.schema import Plan, Pool, Serving

DATA = Path(__file__).parent / "data"
REPOSITORIES = {
    "chat": ("meta-llama/Llama-3.3-70B-Instruct", "bf16"),
    "code": ("Qwen/Qwen3-32B", "bf16"),
    "reason": ("openai/gpt-oss-120b", "mxfp4"),
}
HOSTILE = """a 'quoted' "name" $(touch gone) `id` $HOME ${X} \\ {{ .Values }} * \n- newline: é ✓ """
"""What a user may call things, or an attacker."""
SERVING = Serving(
    repository="meta-llama/Llama-3.3-70B-Instruct",
    native_weights="bf16",
    gpu_memory_utilization=0.9,
    chunked_prefill=True,
    prefix_caching=True,
    block_size=16,
    gpus_in_node=2,
)
DYNAMO_IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.2"


def prod() -> Plan:
    """Return the stored plan of the production fleet."""
    plan = load(DATA / "plans" / "prod.json")
    return plan.model_copy(update={"pools": tuple(_served(p) for p in plan.pools)})


def of_pools(*pools: Pool) -> Plan:
    """Return the plan with other pools."""
    return prod().model_copy(update={"pools": pools})


def chat(serving: Mapping[str, Any] | None = None, **changes: Any) -> Pool:
    """Return the pool of four replicas on H100 in us-central1, with changes of it and of what it is started with."""
    pool = next(p for p in prod().pools if p.name == "chat-2")
    engine = changes.pop("engine", None)
    if engine is not None:
        changes["engine"] = pool.engine.model_copy(update={"name": engine, "version": changes.pop("version", "0.5.7")})
    return pool.model_copy(update={"serving": SERVING.model_copy(update=dict(serving or {})), **changes})


def over_nodes(**changes: Any) -> Pool:
    """Return a pool whose replicas span two nodes of eight GPUs."""
    layout = {"tensor_parallel": 8, "pipeline_parallel": 2, "name": "giant"}
    return chat({"gpus_in_node": 8}, **{**layout, **changes})


def places(*replicas: tuple[str, str, int]) -> tuple[Any, ...]:
    """Return placements: provider, region, replicas."""
    kind = type(chat().placement[0])
    return tuple(kind(provider=p, region=r, replicas=n) for p, r, n in replicas)


def exported(plan: Plan, target: str, **choices: Any) -> Exported:
    """Export a plan; Dynamo gets the image that it needs."""
    if target == "dynamo":
        choices.setdefault("image", DYNAMO_IMAGE)
    return export(plan, "plan.json", all_targets()[target], Choices(**choices))


def objects(plan: Plan, target: str, **choices: Any) -> list[Any]:
    """Return the YAML documents of an export."""
    return list(yaml.safe_load_all(exported(plan, target, **choices).text))


def saved(plan: Plan, folder: Path) -> Path:
    """Save a plan with the digest that it has now."""
    path = folder / "plan.json"
    path.write_text(dump(with_digest(plan)), encoding="utf-8")
    return path


def _served(pool: Pool) -> Pool:
    repository, native = REPOSITORIES[pool.model]
    serving = {"repository": repository, "native_weights": native, "gpus_in_node": pool.gpus // pool.replicas}
    return pool.model_copy(update={"serving": SERVING.model_copy(update=serving)})
