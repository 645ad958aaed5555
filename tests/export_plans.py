"""Plans to export: the stored one, and changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from planner.export import Choices, Exported, all_targets, export
from planner.plan.io import dump, load, with_digest
from planner.plan.schema import Plan, Pool

DATA = Path(__file__).parent / "data"
HOSTILE = """a 'quoted' "name" $(touch gone) `id` $HOME ${X} \\ {{ .Values }} * \n- newline: é ✓ """
"""What a user may call things, or an attacker."""
DYNAMO_IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.2"


def prod() -> Plan:
    """Return the stored plan of the production fleet."""
    return load(DATA / "plans" / "prod.json")


def of_pools(*pools: Pool) -> Plan:
    """Return the plan with other pools."""
    return prod().model_copy(update={"pools": pools})


def chat(serving: Mapping[str, Any] | None = None, **changes: Any) -> Pool:
    """Return the pool of four replicas on H100 in us-central1, with changes of it and of what it is started with."""
    pool = next(p for p in prod().pools if p.name == "chat-2")
    started = pool.serving
    assert started is not None
    engine = changes.pop("engine", None)
    if engine is not None:
        changes["engine"] = pool.engine.model_copy(update={"name": engine, "version": changes.pop("version", "0.5.7")})
    return pool.model_copy(update={"serving": started.model_copy(update=dict(serving or {})), **changes})


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
