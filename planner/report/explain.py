"""Explanations of a plan as text and as data: what is scarce, how far it may grow, why not, what a wish would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.plan.schema import Plan, Pool, RowLoad
from planner.report import figures
from planner.report.content import Block, Lines, Table, keys, numbers, texts
from planner.report.sections.pools import period_of, period_title

if TYPE_CHECKING:  # these load the solver, which a plan alone does not need
    from planner.explain.answer import Answer
    from planner.explain.sensitivity import Sensitivity

RESOURCES = {
    "hbm_budget": "KV cache",
    "batch_cap": "batch slots",
    "bandwidth_ceiling": "HBM bandwidth",
    "compute_ceiling": "compute",
    "step_time": "replica time",
}
_PRICE = (
    "Over all replicas of a pool, at the planned peak. $/h per unit: what one more unit costs at the price of the pool; only "
    "its scarcest resource has a price, more of the others would buy nothing."
)
_PRICE_IN_PERIOD = (
    "Over all replicas of a pool in the period with most of them, the one named, at its planned demand. $/h per unit: the cost of the "
    "pool, the mean over all hours, by what it has of its scarcest resource; more of the others would buy nothing."
)
_TIME = "Replica time: what the latency limits leave of a replica, queueing included; it is the usual limit."
_GROWTH = "Next node: demand of this workload, the others as planned, above which the fleet no longer holds every rule."
_ALIKE = "Growth is that of all hours alike; the period with least room decides."
_WITHIN = "within the gap"
PRICE_CHANGE = 0.10
_PRICES = "Of the fleet as it is: the best fleet at those prices costs no more than that. What is paid already does not change."


def scarcity(plan: Plan) -> list[Block]:
    """Return what each pool uses of every resource, and what is left of it."""
    rows = [row for pool in plan.pools for row in _rows(pool, plan)]
    if not rows:
        return []
    columns = texts("Pool", *period_title(plan), "Resource") + numbers("Used", "Of", "Left")
    columns += texts("Unit") + numbers("Load", "$/h per unit")
    note = _PRICE if plan.demand_by_period is None else _PRICE_IN_PERIOD
    return [Table("What is scarce", columns, tuple(rows), (note, _TIME))]


def _rows(pool: Pool, plan: Plan) -> list[tuple[str, ...]]:
    scarcest = max(pool.rows, key=load, default=None)
    return [
        (
            figures.visible(pool.name),
            *period_of(pool, plan),
            RESOURCES.get(row.row, figures.visible(row.row)),
            figures.number(row.used),
            figures.number(row.available),
            figures.number(row.available - row.used),
            figures.visible(row.unit),
            figures.share(load(row)),
            figures.amount(price(pool, row)) if row is scarcest else "-",
        )
        for row in sorted(pool.rows, key=lambda r: -load(r))
    ]


def load(row: RowLoad) -> float:
    """Return the share of a resource that is used."""
    return row.used / row.available if row.available > 0.0 else 0.0


def price(pool: Pool, row: RowLoad) -> float:
    """Return what one unit of a resource costs at the price of its pool, USD/h."""
    return pool.usd_per_hour / row.available if row.available > 0.0 else 0.0


def growth(plan: Plan) -> list[Block]:
    """Return how far each workload, and all together, may grow on the fleet as it is."""
    if not plan.workloads:
        return []
    columns = texts("Workload", "Model") + numbers("Demand", "Next node", "Headroom")
    rows = tuple(
        (
            figures.visible(w.name),
            figures.visible(w.model),
            figures.number(w.demand_requests_per_s),
            figures.number(w.next_step_requests_per_s),
            figures.share(w.next_step_requests_per_s / w.demand_requests_per_s - 1.0),
        )
        for w in plan.workloads
    )
    notes = [_GROWTH] if plan.demand_by_period is None else [_GROWTH, _ALIKE]
    if plan.max_load_factor is not None:
        notes.append(f"All demands at once: up to {figures.number(plan.max_load_factor)} times the planned ones.")
    return [Table("Room to grow, req/s", columns, rows, tuple(notes))]


def why_not(plan: Plan, answers: Sequence[Answer]) -> list[Block]:
    """Return one line for each shape and what it would serve."""
    cost = plan.objective.usd_per_hour if plan.objective is not None else 0.0
    return [Lines("Why not", tuple(f"{_subject(a)}: {_answer(a, cost)}." for a in answers))]


def _subject(answer: Answer) -> str:
    return figures.visible(f"{answer.shape} for {answer.workload or answer.model or 'all models'}")


def _answer(answer: Answer, usd_per_hour: float) -> str:
    reason = figures.visible(answer.reason)
    if answer.rule in ("chosen", "no-fleet"):
        return reason
    if answer.usd_per_hour is None or answer.more_usd_per_hour is None:
        return f"ruled out by {answer.rule}: {reason}"
    change = "costs more" if answer.more_usd_per_hour > 0.0 else "costs no more"
    costs = f"{figures.usd(answer.usd_per_hour)} instead of {figures.usd(usd_per_hour)} per hour"
    return f"possible, and {change}: {costs} ({signed(answer.more_usd_per_hour)}); {reason}"


def sensitivities(found: Sequence[Sensitivity]) -> list[Block]:
    """Return what each change of the spec would cost."""
    columns = texts("Change") + keys("Key") + texts("From", "To") + numbers("Fleet then, $/h", "Difference, $/h")
    rows = tuple(
        (
            figures.visible(s.name),
            figures.visible(s.key),
            figures.visible(s.now),
            figures.visible(s.to),
            figures.amount(s.usd_per_hour) if s.usd_per_hour is not None else "no fleet",
            _difference(s),
        )
        for s in found
    )
    notes = (
        "Each change alone, planned anew to the gap of this plan. "
        f"{_WITHIN.capitalize()}: the proofs of both fleets leave room for the whole difference.",
    )
    return [Table("What a change would cost", columns, rows, notes)]


def prices(plan: Plan) -> list[Block]:
    """Return what the fleet as it is costs more or less when the price of one offer changes; nothing is planned anew."""
    if plan.objective is None or not plan.nodes:
        return []
    hours = sum(period.hours_per_month for period in plan.periods)
    columns = texts("Offer", "Term") + numbers("$/h", "Share", "Fleet $/h", "Fleet $/month")
    rows = tuple(
        (
            figures.visible(n.offer),
            figures.visible(n.term),
            figures.amount(n.usd_per_hour),
            figures.share(n.usd_per_hour / plan.objective.usd_per_hour) if plan.objective.usd_per_hour else "-",
            f"±{figures.amount(PRICE_CHANGE * n.usd_per_hour)}",
            f"±{figures.amount(PRICE_CHANGE * n.usd_per_hour * hours)}",
        )
        for n in plan.nodes
    )
    return [Table(f"If the price of one offer changes by {figures.share(PRICE_CHANGE)}", columns, rows, (_PRICES,))]


def _difference(found: Sensitivity) -> str:
    if found.more_usd_per_hour is None:
        return "-"
    text = signed(found.more_usd_per_hour)
    return f"{text}, {_WITHIN}" if found.is_within_gap and found.more_usd_per_hour != 0.0 else text


def signed(usd: float) -> str:
    """Return money with its direction."""
    sign = "" if usd == 0.0 else "-" if usd < 0.0 else "+"
    return f"{sign}{figures.usd(abs(usd))}"


def as_data(
    plan: Plan, answers: Sequence[Answer] | None = None, found: Sequence[Sensitivity] | None = None
) -> Mapping[str, Any]:
    """Return an explanation as plain data: answers about shapes alone, else pools and workloads with what was asked."""
    data: dict[str, Any] = {"fleet": plan.fleet}
    if answers is not None:
        return {**data, "why_not": [asdict(a) for a in answers]}
    data["pools"] = [_pool_data(p, plan) for p in plan.pools]
    data["workloads"] = [
        {
            "name": w.name,
            "demand_requests_per_s": w.demand_requests_per_s,
            "next_step_requests_per_s": w.next_step_requests_per_s,
            "headroom_share": w.next_step_requests_per_s / w.demand_requests_per_s - 1.0,
        }
        for w in plan.workloads
    ]
    data["max_load_factor"] = plan.max_load_factor
    if found is not None:
        data["sensitivities"] = [asdict(s) for s in found]
    return data


def _pool_data(pool: Pool, plan: Plan) -> Mapping[str, Any]:
    """Return what a pool uses, with the period that this is about where there are several."""
    period = {} if plan.demand_by_period is None else {"period": pool.period}
    return {"name": pool.name, "model": pool.model, **period, "rows": [_row_data(pool, r) for r in pool.rows]}


def _row_data(pool: Pool, row: RowLoad) -> Mapping[str, Any]:
    is_scarcest = row is max(pool.rows, key=load)
    return {
        **row.model_dump(),
        "slack": row.available - row.used,
        "load_share": load(row),
        "usd_per_hour_per_unit": price(pool, row) if is_scarcest else 0.0,
    }
