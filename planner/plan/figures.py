"""Check the figures that a plan shows: money, counts, predictions, each recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.candidates.types import CandidateTable, PricedOffer, Shape
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, PoolState, assess_models
from planner.plan.schema import Objective, Plan, Pool, WorkloadPlan
from planner.spec import FleetSpec

MONEY_RTOL = 1e-9
RATE_RTOL = 1e-6
SECONDS_PER_HOUR = 3600.0
TOKENS_PER_MILLION = 1e6


@dataclass(frozen=True)
class Violation:
    """A limit that a plan breaks, or a figure it shows wrong: which check, where, and the numbers."""

    check: str
    subject: str
    reason: str


def wrong_figures(
    plan: Plan,
    spec: FleetSpec,
    table: CandidateTable,
    pools: Sequence[Pool],
    shape_of: Callable[[Pool], Shape],
    constants: SpeedConstants,
) -> Iterator[Violation]:
    """Yield the figures that are not what nodes, prices, traffic and physics say. `pools` are those of known shapes."""
    yield from _money(plan, spec, table)
    for pool in pools:
        if pool.gpus != pool.replicas * shape_of(pool).gpus:
            yield Violation(
                "figures", pool.name, f"{pool.gpus} GPUs are not {pool.replicas} replicas of {shape_of(pool).gpus}"
            )
    states = _states(table, pools, shape_of, constants)
    for workload in plan.workloads:
        yield from _workload(workload, spec, table, states)


def _money(plan: Plan, spec: FleetSpec, table: CandidateTable) -> Iterator[Violation]:
    """Node prices come from the supply, their sum is the cost of the fleet, and pools and idle nodes share it."""
    prices = {o.name: o.usd_per_node_h for o in table.supply.offers}
    for node in plan.nodes:
        if not _same(node.usd_per_node_hour, prices[node.offer]):
            yield Violation("money", node.offer, f"a node costs {prices[node.offer]:g} USD/h in the supply")
        if not _same(node.usd_per_hour, prices[node.offer] * node.nodes):
            yield Violation("money", node.offer, f"{node.nodes} nodes do not cost {node.usd_per_hour:g} USD/h")
    total = sum(prices[n.offer] * n.nodes for n in plan.nodes)
    if plan.objective is None:
        yield Violation("money", "objective", "it is missing")
        return
    yield from _objective(plan.objective, total, spec.planning.hours_per_month)
    yield from _preferences(plan, plan.objective, spec, table)
    yield from _commitments(plan, plan.objective, spec, table)
    idle = plan.objective.idle_committed_usd_per_month / spec.planning.hours_per_month
    if not _same(sum(p.usd_per_hour for p in plan.pools) + idle, total):
        yield Violation("money", "pools", "their costs and that of idle nodes do not sum to that of all nodes")


def _preferences(plan: Plan, objective: Objective, spec: FleetSpec, table: CandidateTable) -> Iterator[Violation]:
    """What counts for GPUs that are not preferred: a share of the least that each of them costs in the supply."""
    measure: Callable[[PricedOffer], float] = {
        "cost": lambda o: o.usd_per_node_h,
        "gpus": lambda o: float(o.gpus_per_node),
        "power": lambda o: o.power_w,
    }[objective.minimised]
    due = 0.0
    for pool in plan.pools:
        prefer = spec.models[pool.model].prefer
        if prefer is not None and pool.gpu not in table.models[pool.model].preferred_gpus:
            rates = (measure(o) / o.gpus_per_node for o in table.supply.offers if o.gpu == pool.gpu)
            due += prefer.penalty * pool.gpus * min(rates, default=0.0)
    if not _same(objective.preference_penalty, due):
        yield Violation("money", "preferences", f"they count {due:g}, not {objective.preference_penalty:g}")


def _commitments(plan: Plan, objective: Objective, spec: FleetSpec, table: CandidateTable) -> Iterator[Violation]:
    """Everything that is committed is listed, at its price, and no more of it than is paid for."""
    offers = {o.name: o for o in table.supply.offers}
    paid = {n.offer: n.nodes for n in plan.nodes}
    hours = spec.planning.hours_per_month
    listed: Counter[str] = Counter()
    for row in plan.commitments:
        offer, other = offers[row.offer], table.supply.on_demand.get(row.gpu)
        listed[offer.entry] += row.nodes
        if not 0 <= row.idle_nodes <= row.nodes <= paid.get(row.offer, 0):
            yield Violation(
                "commitment", row.offer, f"{row.nodes} nodes of {paid.get(row.offer, 0)}, {row.idle_nodes} idle"
            )
        if not _same(row.usd_per_month, offer.usd_per_node_h * row.nodes * hours):
            yield Violation("commitment", row.offer, f"{row.nodes} nodes do not cost {row.usd_per_month:g} USD/month")
        if not _same(row.idle_usd_per_month, offer.usd_per_node_h * row.idle_nodes * hours):
            yield Violation(
                "commitment", row.offer, f"{row.idle_nodes} do not cost {row.idle_usd_per_month:g} USD/month"
            )
        due = offer.usd_per_node_h / offer.gpus_per_node / other.usd_per_gpu_h if other is not None else None
        if (row.break_even_utilization is None) != (due is None) or not _same(
            row.break_even_utilization or 0.0, due or 0.0
        ):
            yield Violation("commitment", row.offer, f"it breaks even at {due}, not at {row.break_even_utilization}")
        if offer.term in ("1y", "3y") and row.nodes != paid.get(row.offer, 0):
            yield Violation("commitment", row.offer, "nodes of this term are all committed")
    for stock in table.supply.stock:
        if listed[stock.entry] < stock.committed:
            yield Violation("commitment", stock.entry, f"{listed[stock.entry]} nodes listed of {stock.committed}")
    sums = (
        ("usd_per_month", objective.committed_usd_per_month),
        ("idle_usd_per_month", objective.idle_committed_usd_per_month),
    )
    for name, shown in sums:
        if not _same(sum(getattr(row, name) for row in plan.commitments), shown):
            yield Violation("commitment", "objective", f"{shown:g} USD/month is not the sum over the commitments")


def _objective(objective: Objective, usd_per_hour: float, hours_per_month: float) -> Iterator[Violation]:
    if not _same(objective.usd_per_hour, usd_per_hour):
        yield Violation("money", "objective", f"nodes cost {usd_per_hour:g} USD/h, not {objective.usd_per_hour:g}")
    if not _same(objective.usd_per_month, usd_per_hour * hours_per_month):
        yield Violation(
            "money", "objective", f"{objective.usd_per_month:g} USD are not {hours_per_month:g} hours of it"
        )
    if objective.minimised == "cost" and not _same(objective.value, usd_per_hour + objective.preference_penalty):
        yield Violation("money", "objective", f"the value {objective.value:g} is not the cost {usd_per_hour:g}")
    if objective.bound > objective.value * (1.0 + MONEY_RTOL):
        yield Violation("money", "bound", f"the bound {objective.bound:g} is above the value {objective.value:g}")
    gap = (objective.value - objective.bound) / objective.value if objective.value > 0.0 else 0.0
    if abs(gap - objective.gap) > MONEY_RTOL:
        yield Violation("money", "gap", f"it is {gap:g}, not {objective.gap:g}")


def _states(
    table: CandidateTable,
    pools: Sequence[Pool],
    shape_of: Callable[[Pool], Shape],
    constants: SpeedConstants,
) -> list[tuple[Pool, PoolState]]:
    own: dict[str, list[Pool]] = {}
    for pool in pools:
        own.setdefault(pool.model, []).append(pool)
    loads = {
        name: [PoolLoad(p.name, shape_of(p), p.max_num_seqs, p.replicas, p.workloads) for p in of_model]
        for name, of_model in own.items()
    }
    states = assess_models(table, loads, constants)
    return [each for name, of_model in own.items() for each in zip(of_model, states[name], strict=True)]


def _workload(
    shown: WorkloadPlan, spec: FleetSpec, table: CandidateTable, states: Sequence[tuple[Pool, PoolState]]
) -> Iterator[Violation]:
    """Demand, limits, predictions and money of one workload."""
    workload, asked = table.workloads[shown.name], spec.workloads[shown.name]
    if not _same(shown.demand_requests_per_s, asked.traffic.peak_requests_per_s()):
        yield Violation("figures", shown.name, f"its demand is {asked.traffic.peak_requests_per_s():g} req/s")
    if asked.slo != {check.metric: check.limit_s for check in shown.slo}:
        yield Violation("latency", shown.name, "the limits shown are not those of the spec")
    serving = [state for pool, state in states if shown.name in pool.workloads]
    for check in shown.slo:
        seconds = max((s.latency_s.get((shown.name, check.metric), 0.0) for s in serving), default=0.0)
        if abs(check.predicted_s - seconds) > RATE_RTOL * seconds:
            yield Violation(
                "figures", shown.name, f"{check.metric} is predicted at {seconds:.4g} s, not {check.predicted_s:.4g}"
            )
        if check.predicted_s > check.limit_s * (1.0 + RATE_RTOL):
            yield Violation(
                "latency", shown.name, f"{check.metric} is {check.predicted_s:.4g} s of {check.limit_s:g} s"
            )
    rate = asked.traffic.mean_requests_per_s() if shown.at == "mean" else asked.traffic.peak_requests_per_s()
    tokens = workload.mean_input_tokens + workload.mean_output_tokens
    hours = spec.planning.hours_per_month
    per_million = shown.usd_per_month / hours / ((rate or 1.0) * SECONDS_PER_HOUR * tokens) * TOKENS_PER_MILLION
    if not _same(shown.usd_per_million_tokens, per_million):
        yield Violation("figures", shown.name, f"a million tokens cost {per_million:g} USD")


def _same(shown: float, due: float) -> bool:
    return abs(shown - due) <= MONEY_RTOL * max(1.0, abs(due))
