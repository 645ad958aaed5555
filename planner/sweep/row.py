"""What is known of a scenario once it was planned: a line of the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from planner.plan.record import Record
from planner.plan.schema import Plan

RowStatus = Literal["solved", "unproven", "infeasible", "invalid", "failed"]


class Row(Record):
    """A scenario and its answer."""

    scenario: int
    """Number, from 1."""
    values: Mapping[str, str]
    """Values of the keys that are set, as YAML."""
    status: RowStatus
    """That of its plan; invalid where the values together make no spec, failed where planning it ended in a bug."""
    usd_per_month: float | None = None
    """Null where there is no fleet, as all that follows."""
    bound_usd_per_month: float | None = None
    """Proven lower bound on the cost; null when something else is minimised."""
    gap: float | None = None
    gpus: int | None = None
    nodes: Mapping[str, int] = {}
    """Nodes at most in any period, by offer."""
    margins: Mapping[str, float] = {}
    """Share that is left of the tightest latency limit, by workload; of those that have any."""
    denied: tuple[str, ...] = ()
    """Policies that deny the plan."""
    plan: str | None = None
    """Digest of the plan."""
    reason: str | None = None
    """Why there is no fleet; `planner solve` looks for ways out of that, a sweep does not."""


def row_of(scenario: int, values: Mapping[str, str], plan: Plan) -> Row:
    """Return the line of a plan."""
    objective = plan.objective
    if objective is None:
        reason = plan.infeasible.reason if plan.infeasible is not None else plan.unsolved
        return Row(scenario=scenario, values=values, status=plan.status, reason=reason)
    bound, hours = objective.bound_usd_per_hour, sum(p.hours_per_month for p in plan.periods)
    nodes = {node.offer: node.nodes for node in plan.nodes if node.nodes}
    return Row(
        scenario=scenario,
        values=values,
        status=plan.status,
        usd_per_month=objective.usd_per_month,
        bound_usd_per_month=None if bound is None else bound * hours,
        gap=objective.gap,
        gpus=sum(p.gpus for p in plan.pools),
        nodes=dict(sorted(nodes.items())),
        margins={w.name: min(c.margin for c in w.slo) for w in plan.workloads if w.slo},
        denied=tuple(policy.id for policy in plan.policies if policy.outcome == "deny"),
        plan=plan.digests.plan,
    )
