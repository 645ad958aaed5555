"""Node use: where a share of the cost is limited, nodes are bought for replicas and not for their price."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    if not index.problem.cost_shares:
        return []
    return [
        (cell, size) for cell, group in index.offers_in.items() for size in sorted({o.gpus_per_node for o in group})
    ]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    cell, size = key
    small = [o for o in index.offers_in[cell] if o.gpus_per_node <= size]
    entries = {o.entry for o in small}
    committed = sum(s.committed for s in index.problem.stock if s.entry in entries)
    placed = quicksum(
        c.nodes_spanned * (model.placed[c.name, cell] if c.has_choice else model.replicas[c.name])
        for c in index.columns_in.get(cell, ())
        if c.node_gpus <= size
    )
    return quicksum(model.nodes[o.name] for o in small) <= committed + placed


CONSTRAINT = Constraint(
    name="node_use",
    unit="nodes",
    sentence="Where a share of the cost is limited, every node beyond the committed ones holds a replica that fits it.",
    math=r"\sum_{o \in z:\, G_o \le G} y_o \le C_z + \sum_{c:\, g_c \le G} s_c\, n_{cz}",
    symbols={
        "G": "size of a node, GPUs; nested rows, as a small node holds only small replicas",
        "G_o": "GPUs per node",
        "y_o": "nodes bought",
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
