"""What was considered for every workload: the best shape on every GPU type, and why the fleet does not use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner.candidates.types import Candidate, CandidateTable, Rejection
from planner.explain.causes import RULE_ORDER
from planner.explain.wish import rejections_of
from planner.plan.pools import pool_shape
from planner.plan.schema import Plan

ALL_IN_USE = "all nodes of {} are in use"
NOT_BEST = "not in the best fleet"
NO_FLEET = "alone: the limits on all together leave no fleet"


@dataclass(frozen=True)
class Considered:
    """The best shape of a GPU type for a workload, or the one that came nearest.

    `why` names the pools of a shape in use, the stock that is used up, or the rule and the reason of one that is ruled out. `usd_per_hour` is what
    the planned demand would take of such replicas at full use, at the cheapest price per GPU: no whole replicas or
    nodes, no spares, nothing shared. It is None where the shape is ruled out.
    """

    workload: str
    model: str
    gpu: str
    shape: str
    verdict: Literal["used", "possible", "ruled out"]
    why: str
    usd_per_hour: float | None


def considered(plan: Plan, table: CandidateTable) -> tuple[Considered, ...]:
    """Return one row for each workload and GPU type, those in use first, then the cheapest."""
    return tuple(row for name in sorted(table.workloads) for row in sorted(_rows(plan, table, name), key=_order))


def _order(row: Considered) -> tuple[int, float, str]:
    return (("used", "possible", "ruled out").index(row.verdict), row.usd_per_hour or 0.0, row.gpu)


def _rows(plan: Plan, table: CandidateTable, workload: str) -> Iterator[Considered]:
    model = table.workloads[workload].model
    able = [c for c in table.candidates if workload in c.services]
    lost = [r for r in rejections_of(table, workload) if r.gpu]
    used: dict[str, dict[str, list[str]]] = {}
    for pool in plan.pools:
        if workload in pool.workloads:
            used.setdefault(pool.gpu, {}).setdefault(pool_shape(pool), []).append(pool.name)
    for gpu in sorted({c.shape.gpu for c in able} | {r.gpu for r in lost} | set(used)):
        costs = _costs([c for c in able if c.shape.gpu == gpu], table, workload)
        for shape, pools in sorted(used.get(gpu, {}).items()):
            yield Considered(workload, model, gpu, shape, "used", f"pool {', '.join(pools)}", costs.get(shape))
        if gpu in used:
            continue
        if costs:
            shape = min(costs, key=lambda name: (costs[name], name))
            why = _why_not(plan, table, [c for c in able if c.shape.name == shape])
            yield Considered(workload, model, gpu, shape, "possible", why, costs[shape])
        else:
            # What is dominated has a better twin, which was ruled out too: that one came nearer.
            nearest = min((r for r in lost if r.gpu == gpu), key=_nearness)
            why = f"{nearest.rule}: {nearest.reason}"
            yield Considered(workload, model, gpu, nearest.shape or "all shapes", "ruled out", why, None)


def _costs(candidates: list[Candidate], table: CandidateTable, workload: str) -> dict[str, float]:
    """Return USD/h by shape: that of its candidate which serves the workload at the least cost."""
    demand = table.workloads[workload].planned_requests_per_s
    found: dict[str, float] = {}
    for candidate in candidates:
        prices = [o.usd_per_node_h / o.gpus_per_node for o in table.supply.offers if o.cell in candidate.cells]
        if prices:
            cost = demand * candidate.services[workload].busy_s * candidate.shape.gpus * min(prices)
            found[candidate.shape.name] = min(cost, found.get(candidate.shape.name, cost))
    return found


def _why_not(plan: Plan, table: CandidateTable, candidates: list[Candidate]) -> str:
    """Return which stock is used up where candidates have no other, else that the best fleet does without them."""
    if not plan.pools:
        return NO_FLEET
    cells = {cell for candidate in candidates for cell in candidate.cells}
    offers = [o for o in table.supply.offers if o.cell in cells]
    available = {s.entry: s.available for s in table.supply.stock}
    entry_of = {o.name: o.entry for o in table.supply.offers}
    used: Counter[str] = Counter()
    for node in plan.nodes:
        used[entry_of.get(node.offer, "")] += node.nodes
    entries = sorted({o.entry for o in offers})
    gone = [e for e in entries if (most := available.get(e)) is not None and used[e] >= most]
    return ALL_IN_USE.format(", ".join(entries)) if gone == entries else NOT_BEST


def _nearness(rejection: Rejection) -> tuple[int, float, float, str]:
    rank = RULE_ORDER.index(rejection.rule) if rejection.rule in RULE_ORDER else len(RULE_ORDER)
    return rank, rejection.best_s, rejection.short_bytes, rejection.shape
