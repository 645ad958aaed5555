"""Cell stock: replicas in a cell take no more GPUs than all nodes of the cell have."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(cell,) for cell in index.finite_cells if cell in index.columns_in]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    bound_here = [c for c in index.columns_in[key[0]] if not c.has_choice]
    if not bound_here:
        return None
    return quicksum(c.gpus * model.replicas[c.name] for c in bound_here) <= index.finite_cells[key[0]]


CONSTRAINT = Constraint(
    name="cell_stock",
    unit="GPUs",
    sentence="Replicas that can only lie in one supply cell take no more GPUs than all available nodes of the cell have.",
    math=r"\sum_{c \in z} g_c s_c\, n_c \le \sum_{o \in z} G_o S_o",
    symbols={
        "g_c s_c": "GPUs of a replica: per node, times nodes spanned",
        "n_c": "replicas",
        "G_o": "GPUs per node of offer o",
        "S_o": "nodes available of offer o",
    },
    index=_index,
    rule=_rule,
    key_names=("cell",),
    strengthens=True,
    couples=True,
)
