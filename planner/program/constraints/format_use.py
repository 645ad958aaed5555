"""Format use: a shape may be used only in the formats chosen for its model."""

from __future__ import annotations

from typing import Any

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    keys: list[Key] = []
    for model, shape in index.switchable_shapes:
        keys += [(model, shape, "weights")] if len(index.formats(model)) > 1 else []
        keys += [(model, shape, "kv_cache")] if len(index.kv_formats(model)) > 1 else []
    return keys


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    name, shape, kind = key
    column = index.shapes[name, shape][0]
    if kind == "weights":
        return model.shape_used[name, shape] <= model.weights[name, column.weights]
    return model.shape_used[name, shape] <= model.kv_cache[name, column.kv_cache]


CONSTRAINT = Constraint(
    name="format_use",
    unit="shapes",
    sentence="A shape is used only if its weight format and its KV format are the ones chosen for the model.",
    math=r"u_s \le v_{m f(s)}",
    symbols={"u_s": "1 if shape s is used", "v_{mf}": "1 if model m is served in format f"},
    index=_index,
    rule=_rule,
    key_names=("model", "shape", "kind"),
)
