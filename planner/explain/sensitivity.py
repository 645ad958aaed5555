"""What a wish more or less would cost: every answer is a fleet planned anew, since whole nodes make prices jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.explain.answer import difference
from planner.explain.change import Change, Place, change_at
from planner.explain.trials import Trials
from planner.explain.wishes import milliseconds
from planner.plan.schema import Plan
from planner.spec import FleetSpec, TrafficSpec
from planner.spec.section import Section

MORE_DEMAND = 0.10
LOOSER_TPOT_S = 0.010
LOOSER_TTFT = 0.10
PER_TOKEN = ("tpot", "itl")


@dataclass(frozen=True)
class Sensitivity:
    """A change of the spec with the cost that follows; `more_usd_per_hour` is against the plan, negative where it saves.

    `is_within_gap` says that the proofs of both fleets leave room for the whole difference. Costs are None where the
    spec then has no fleet.
    """

    name: str
    key: str
    now: str
    to: str
    usd_per_hour: float | None
    more_usd_per_hour: float | None
    is_within_gap: bool


def sensitivities(
    plan: Plan, spec: FleetSpec, trials: Trials, starting: Callable[[str], None] = lambda _what: None
) -> list[Sensitivity]:
    """Plan the spec with one change at a time: more demand, looser latency limits, one more node where stock is used up.

    `starting` is called before each with what it is, such as `demand of chat +10 % (1 of 9)`.
    """
    changes = list(_changes(plan, spec))
    found: list[Sensitivity] = []
    for number, (name, change) in enumerate(changes, 1):
        starting(f"{name} ({number} of {len(changes)})")
        found.append(_planned(plan, name, change, trials))
    return found


def _planned(plan: Plan, name: str, change: Change, trials: Trials) -> Sensitivity:
    found = trials.plan(change.spec)
    if found is None or found.objective is None or plan.objective is None:
        return Sensitivity(name, change.key, change.now, change.to, None, None, is_within_gap=False)
    before, after = plan.objective, found.objective
    more = difference(after.usd_per_hour, before.usd_per_hour)
    room = before.gap * before.usd_per_hour if more < 0.0 else after.gap * after.usd_per_hour
    return Sensitivity(name, change.key, change.now, change.to, after.usd_per_hour, more, abs(more) <= room)


def _changes(plan: Plan, spec: FleetSpec) -> Iterator[tuple[str, Change]]:
    for workload in sorted(spec.workloads):
        yield f"demand of {workload} +10 %", _more_demand(spec, workload)
    for workload in sorted(spec.workloads):
        yield from _looser(spec, workload)
    yield from _more_nodes(plan, spec)


def _more_demand(spec: FleetSpec, workload: str) -> Change:
    traffic = spec.workloads[workload].traffic
    name = next(key for key in TrafficSpec.DEMANDS if getattr(traffic, key, None) is not None)
    place: Place = ("workloads", workload, "traffic", name)
    now = traffic.peak_requests_per_s()
    return change_at(
        spec,
        place,
        f"{now:.6g} req/s at peak",
        f"{now * (1.0 + MORE_DEMAND):.6g} req/s at peak",
        _times(getattr(traffic, name), 1.0 + MORE_DEMAND),
    )


def _times(demand: object, factor: float) -> object:
    """Return a demand in any of its forms, multiplied."""
    if isinstance(demand, int | float):
        return demand * factor
    if isinstance(demand, tuple):
        return tuple(rate * factor for rate in demand)
    assert isinstance(demand, Section)
    return demand.model_copy(update={k: v * factor for k, v in demand.model_dump().items() if v is not None})


def _looser(spec: FleetSpec, workload: str) -> Iterator[tuple[str, Change]]:
    for key, limit in sorted(spec.workloads[workload].slo.items()):
        is_per_token = key.startswith(PER_TOKEN)
        value = limit + LOOSER_TPOT_S if is_per_token else limit * (1.0 + LOOSER_TTFT)
        place: Place = ("workloads", workload, "slo", key)
        step = milliseconds(LOOSER_TPOT_S) if is_per_token else "10 %"
        yield f"{key} of {workload} +{step}", change_at(spec, place, milliseconds(limit), milliseconds(value), value)


def _more_nodes(plan: Plan, spec: FleetSpec) -> Iterator[tuple[str, Change]]:
    """Yield one more node of every offer whose nodes are all in use."""
    for index, (label, offer) in enumerate(zip(spec.supply.offer_labels(), spec.supply.offers, strict=True)):
        used = sum(n.nodes for n in plan.nodes if n.offer.partition("/")[0] == label)
        if offer.nodes is not None and used >= offer.nodes:
            more = offer.nodes + 1
            place: Place = ("supply", "offers", index, "nodes")
            yield f"one more node of {label}", change_at(spec, place, f"{offer.nodes}", f"{more}", more)
