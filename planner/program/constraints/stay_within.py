"""Stay within: a fleet of few changes costs little more than the cheapest one."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.data import node_cost
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    kept = index.problem.kept
    return [()] if kept is not None and kept.most is not None else []


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    problem = index.problem
    assert problem.kept is not None
    nodes = quicksum(node_cost(problem, o) * model.nodes[o.name] for o in problem.offers)
    penalties = quicksum(c.penalty * model.replicas[c.name] for c in problem.columns if c.penalty > 0.0)
    return nodes + penalties <= problem.kept.most


CONSTRAINT = Constraint(
    name="stay_within",
    unit="USD/h, GPUs or W",
    sentence="Where few changes are asked for, the fleet counts no more than the best one and planning.stay_within of it.",
    math=r"\sum_o p_o y_o + \sum_c q_c n_c \le (1 + s)\, C",
    symbols={
        "p_o": "what a node counts in the objective: its price, GPUs or power",
        "y_o": "nodes bought",
        "q_c": "what a replica counts on a GPU that is not preferred",
        "n_c": "replicas",
        "s": "planning.stay_within",
        "C": "what the best fleet counts that was found",
    },
    index=_index,
    rule=_rule,
    couples=True,
)
