"""Node use: where a share of the cost is limited, nodes are bought for replicas and not for their price."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.candidates.periods import base_of
from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex

TOGETHER = "@"
"""Starts the names of places that stand for the cells of several periods or steps; no cell has one."""


def _index(index: ProgramIndex) -> list[Key]:
    if not index.problem.cost_shares:
        return []
    free = [
        (cell, size)
        for cell, group in index.offers_in.items()
        for size in sorted({o.gpus_per_node for o in group if not o.reserved})
    ]
    together = sorted({(_place(o.cell), o.gpus_per_node) for o in index.problem.offers if o.reserved})
    return [*free, *together]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    """Rows of a cell are about nodes that are bought for it alone, those of a place (`@`) about nodes of several periods or steps.

    Such a node holds a replica in one of them at least, as far as these rows can tell.
    """
    place, size = key
    is_together = place.startswith(TOGETHER)
    cells = [place] if not is_together else [c for c in index.offers_in if _place(c) == place]
    small = [
        o for c in cells for o in index.offers_in[c] if o.gpus_per_node <= size and bool(o.reserved) == is_together
    ]
    if is_together:
        bought = [model.bought[k] for k, o in index.purchases.items() if o in small]
        first = {o.reserved: o for o in reversed(small) if not o.term_steps}
        taken = quicksum(bought) + quicksum(model.nodes[o.name] for o in first.values())
    else:
        taken = quicksum(model.nodes[o.name] for o in small)
    entries = {o.entry for o in small}
    committed = sum(s.committed for s in index.problem.stock if s.entry in entries)
    placed = quicksum(
        c.nodes_spanned * (model.placed[c.name, cell] if c.has_choice else model.replicas[c.name])
        for cell in cells
        for c in index.columns_in.get(cell, ())
        if c.node_gpus <= size
    )
    return taken <= committed + placed


def _place(cell: str) -> str:
    """Return what stands for the cells of all periods of a cell: no cell has a name that starts so."""
    return f"{TOGETHER}{base_of(cell) or cell}"


CONSTRAINT = Constraint(
    name="node_use",
    unit="nodes",
    sentence="Where a share of the cost is limited, every node beyond the committed ones holds a replica that fits it.",
    math=r"\sum_{o \in z:\, G_o \le G} y_o \le C_z + \sum_{c:\, g_c \le G} s_c\, n_{cz}",
    symbols={
        "G": "size of a node, GPUs; nested rows, as a small node holds only small replicas",
        "G_o": "GPUs per node",
        "y_o": "nodes bought; those for several periods or steps are counted once, against the replicas of all of them",
        "C_z": "committed nodes of the supply entries in cell z",
        "g_c": "GPUs of a replica inside one node",
        "s_c": "nodes that a replica takes part of",
        "n_{cz}": "replicas of candidate c placed in cell z",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("cell", "node size"),
)
