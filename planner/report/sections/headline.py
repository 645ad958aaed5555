"""The verdict: what fleet this is, what it costs, how near to the best it is proven to be."""

from __future__ import annotations

from collections.abc import Iterator

from planner.plan.schema import Objective, Plan
from planner.report import figures
from planner.report.content import Block, Lines
from planner.report.sections.growth import growth_lines
from planner.report.sections.robust import robust_lines

_UNITS = {"cost": "USD/h", "gpus": "GPUs", "power": "W"}


def headline(plan: Plan) -> Block:
    """Return the first lines of a report."""
    name = figures.visible(plan.fleet)
    if plan.objective is None:
        if plan.status == "infeasible":
            return Lines(f"{name}: infeasible", ())
        return Lines(f"{name}: no plan found, and none proven impossible", (figures.visible(plan.unsolved or ""),))
    size = [figures.count(len(plan.workloads), "workload"), figures.count(len(plan.pools), "pool")]
    size.append(_gpus(plan))
    ruled_out = f"{figures.count(plan.candidates, 'candidate')} ({plan.rejections.total:,} ruled out)"
    first = f"{name}: {', '.join(size)}; {ruled_out}; {_proof(plan, plan.objective)}"
    return Lines(first, tuple(_money(plan, plan.objective)))


def _gpus(plan: Plan) -> str:
    """Return how many GPUs are bought and used; where hours are planned in periods, the most of any."""
    used, bought = sum(p.gpus for p in plan.pools), sum(n.nodes * n.gpus_per_node for n in plan.nodes)
    if plan.demand_by_period is not None:
        most = max(sum(n.nodes_by_period[p.name] * n.gpus_per_node for n in plan.nodes) for p in plan.periods)
        return f"at most {figures.count(most, 'GPU')}"
    return figures.count(used, "GPU") if used == bought else f"{used:,} of {bought:,} GPUs used"


def _proof(plan: Plan, objective: Objective) -> str:
    distance = figures.gap(objective.gap)
    if plan.status == "unproven":
        return f"NOT PROVEN, at most {distance} from the best"
    return f"proven within {distance}"


def _money(plan: Plan, objective: Objective) -> list[str]:
    hours = sum(p.hours_per_month for p in plan.periods)
    cost = f"{figures.usd(objective.usd_per_hour)} per hour, {figures.usd(objective.usd_per_month)} per month"
    lines = [f"Recommended fleet: {cost} ({figures.number(hours)} h)."]
    if plan.demand_by_period is not None:
        dearest = figures.usd(objective.peak_usd_per_hour)
        count = figures.count(len(plan.periods), "period")
        lines.append(f"That is the mean over {count} of hourly demand; the dearest costs {dearest} per hour.")
    if plan.growth is not None:
        return [*lines, *growth_lines(plan.growth), *_committed(objective)]
    if plan.robust is not None:
        lines += robust_lines(plan.robust)
    if objective.bound_usd_per_hour is not None:
        lines.append(
            f"Lower bound on the cost of any fleet at these ratings: {figures.usd(objective.bound_usd_per_hour)} per hour."
        )
    else:
        unit = _UNITS[objective.minimised]
        value, bound = figures.number(objective.value), figures.number(objective.bound)
        penalty = objective.preference_penalty
        what = (
            f"{objective.minimised} with preferences"
            if penalty or objective.minimised == "cost"
            else objective.minimised
        )
        part = f" ({figures.number(penalty)} of it for GPUs that are not preferred)" if penalty else ""
        lines.append(f"Minimised is {what}: {value} {unit}{part}, lower bound {bound} {unit}.")
    return [*lines, *_committed(objective)]


def _committed(objective: Objective) -> Iterator[str]:
    if objective.committed_usd_per_month > 0.0:
        idle = objective.idle_committed_usd_per_month
        use = f"{figures.usd(idle)} of it for idle nodes" if idle > 0.0 else "no node of it idle"
        yield f"Paid whether used or not: {figures.usd(objective.committed_usd_per_month)} per month, {use}."
