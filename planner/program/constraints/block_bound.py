"""Block bound: no fleet of one model alone is cheaper than its own optimum at given prices."""

from __future__ import annotations

from typing import Any

from pyomo.environ import quicksum

from planner.program.constraint import Constraint, Key
from planner.program.index import ProgramIndex


def _index(index: ProgramIndex) -> list[Key]:
    return [(bound.model, i) for i, bound in enumerate(index.problem.block_bounds)]


def _rule(model: Any, index: ProgramIndex, key: Key) -> Any:
    bound = index.problem.block_bounds[key[1]]
    return quicksum(price * model.replicas[c] for c, price in sorted(bound.prices.items())) >= bound.least


CONSTRAINT = Constraint(
    name="block_bound",
    unit="USD/h",
    sentence="The replicas of a model cost, at given prices, at least what the model alone would cost at those prices.",
    math=r"\sum_c p_c n_c \ge \phi_m(p)",
    symbols={"p_c": "price of one replica", "n_c": "replicas", r"\phi_m(p)": "proven least cost of model m alone"},
    index=_index,
    rule=_rule,
    key_names=("model", "bound"),
    strengthens=True,
)
