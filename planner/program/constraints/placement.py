"""Placement: every replica of a candidate that may go to several cells is placed in one of them."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    several = [index.columns[name] for name in sorted({c for c, _ in index.placements})]
    return [(c.name, i) if c.cells_by_period else (c.name,) for c in several for i in range(len(c.places))]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    column = index.columns[key[0]]
    cells = column.places[key[1]] if len(key) > 1 else column.cells
    return quicksum(model.placed[column.name, cell] for cell in cells) == model.replicas[column.name]


CONSTRAINT = Constraint(
    name="placement",
    unit="replicas",
    sentence="Every replica that may go to several supply cells is placed in exactly one, in every period.",
    math=r"\sum_z n_{cz} = n_c",
    symbols={"n_{cz}": "replicas of candidate c in cell z", "n_c": "replicas"},
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("candidate", "period"),
)
