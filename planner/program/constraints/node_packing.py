"""Node packing: replicas fit the whole nodes that are bought, largest replicas first."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return list(index.packing)


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    cell, level = key
    placed = quicksum(
        c.gpus * (model.placed[c.name, cell] if c.has_choice else model.replicas[c.name])
        for c in index.columns_in[cell]
        if c.node_gpus >= level
    )
    slots = quicksum(
        (o.gpus_per_node // level) * level * model.nodes[o.name]
        for o in index.offers_in[cell]
        if o.gpus_per_node >= level
    )
    return placed <= slots


CONSTRAINT = Constraint(
    name="node_packing",
    unit="GPUs",
    sentence="GPUs of replicas that need at least L GPUs of one node fit the nodes of at least L GPUs that are bought.",
    math=r"\sum_{c:\, g_c \ge L} g_c s_c\, n_{cz} \le \sum_{o \in z} \lfloor G_o / L \rfloor L\, y_o",
    symbols={
        "z": "supply cell: offers of one GPU type that the same candidates may use",
        "L": "replica size inside a node; nested rows are exact because sizes are powers of two",
        "g_c s_c": "GPUs of a replica: per node, times nodes spanned",
        "n_{cz}": "replicas of candidate c placed in cell z",
        "G_o": "GPUs per node of offer o",
        "y_o": "nodes bought",
    },
    index=_index,
    rule=_rule,
    couples=True,
    key_names=("cell", "level"),
)
