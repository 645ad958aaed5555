"""Uniform format: all pools of a model use one weight format and one KV format."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    keys: list[Key] = []
    for model in index.by_model:
        keys += [(model, kind) for kind, names in _kinds(index, model).items() if len(names) > 1]
    return keys


def _kinds(index: ProgramIndex, model: str) -> dict[str, tuple[str, ...]]:
    return {"weights": index.formats(model), "kv_cache": index.kv_formats(model)}


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, kind = key
    chosen = model.weights if kind == "weights" else model.kv_cache
    return quicksum(chosen[name, f] for f in _kinds(index, name)[kind]) == 1


CONSTRAINT = Constraint(
    name="uniform_format",
    unit="formats",
    sentence="All pools of a model use one weight format and one KV format.",
    math=r"\sum_f v_{mf} = 1",
    symbols={"v_{mf}": "1 if model m is served in format f"},
    index=_index,
    rule=_rule,
    key_names=("model", "kind"),
)
