"""Route traffic over a fixed fleet so that the fullest pool is as empty as it can be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from planner.program.capacity import flow_key
from planner.program.compile import CompiledProgram
from planner.program.data import Column, FleetProblem, Flow, Outage
from planner.program.index import CAPACITY_ROWS, row_needs
from planner.program.scale import unit_of
from planner.solve.highs import Effort, Status, minimise
from planner.solve.tolerance import FEASIBILITY_RTOL, RATE_RTOL

ENOUGH = 1.0 + FEASIBILITY_RTOL
IDLE_SHARE = 0.05  # of a workload, or of the room of a pool that would stay idle
FULL_LOAD = 1e6  # load of a fleet that cannot serve some workload at all


@dataclass(frozen=True)
class Routing:
    """Requests/s by (workload, candidate), and the largest load of any pool as a share of its capacity.

    `weights` are the prices of the workloads, load per request/s: no routing of this demand has a lower weighted load.
    """

    rates: Mapping[tuple[str, str], float]
    load: float
    weights: Mapping[str, float]

    @property
    def carries(self) -> bool:
        """Tell whether the fleet carries the demand."""
        return self.load <= ENOUGH


def route(
    problem: FleetProblem,
    model: str,
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    *,
    in_loss: bool = False,
) -> Routing:
    """Share the demand (requests/s by workload) of one model over its pools, minimising the largest load.

    Pools that workloads share get them at the mix of their rating, where that carries the demand. Spot pools
    take no more than their share of a workload; `in_loss` only of those whose floor holds in a loss as well.
    """
    mixed = route_at_mix(problem, model, replicas, demand, in_loss=in_loss)
    is_free = all(len(f) == 1 for c in problem.columns_of(model) if replicas.get(c.name, 0) > 0 for f in c.flows)
    return mixed if mixed.carries or is_free else route_freely(problem, model, replicas, demand, in_loss=in_loss)


def route_at_mix(
    problem: FleetProblem,
    model: str,
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    *,
    in_loss: bool = False,
) -> Routing:
    """Share the demand over the pools as `route` does, all of them at the mix of their ratings."""
    arcs = [(c, flow) for c in problem.columns_of(model) if replicas.get(c.name, 0) > 0 for flow in c.flows]
    return _routed(problem, model, arcs, replicas, demand, in_loss)


def route_freely(
    problem: FleetProblem,
    model: str,
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    *,
    in_loss: bool = False,
) -> Routing:
    """Share the demand over the pools as `route` does, in any mix: capacities are then as good as their ratings there."""
    return _routed(problem, model, _free(problem, model, replicas, demand), replicas, demand, in_loss)


Arc = tuple[Column, Flow]
"""A pool and what may be routed to it by itself."""


def _free(problem: FleetProblem, model: str, replicas: Mapping[str, int], demand: Mapping[str, float]) -> list[Arc]:
    pools = [c for c in problem.columns_of(model) if replicas.get(c.name, 0) > 0]
    return [(c, {w: 1.0}) for c in pools for w in sorted(c.services) if w in demand]


def _routed(
    problem: FleetProblem,
    model: str,
    arcs: list[Arc],
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    in_loss: bool,
) -> Routing:
    """Minimise the largest load: a linear program over flows and the load u, every capacity row of a pool of n within u n."""
    shares = spot_shares(problem, model, in_loss)
    if any(w not in {a for c, flow in arcs if not c.spot or w not in shares for a in flow} for w in demand):
        return Routing({}, FULL_LOAD, {})
    units = _Units.of(arcs, replicas, demand)
    answer = minimise(_program(arcs, replicas, demand, shares, units), Effort(), relaxed=True)
    if answer.status is Status.INFEASIBLE:  # the mixes of the pools do not add up to the demand
        return Routing({}, FULL_LOAD, {})
    if answer.status is not Status.OPTIMAL or answer.point is None or answer.row_prices is None:
        raise ArithmeticError(f"routing of model {model} ended with {answer.status}")
    rates: dict[tuple[str, str], float] = defaultdict(float)
    for (c, flow), unit, x in zip(arcs, units.of_arc, answer.point[:-1].tolist(), strict=True):
        for w, share in flow.items():
            rates[w, c.name] += share * unit * x
    prices = dict(zip(sorted(demand), answer.row_prices.tolist(), strict=False))
    return Routing(
        {(w, c): rate for (w, c), rate in sorted(rates.items()) if rate > RATE_RTOL * demand[w]},
        float(answer.point[-1]) * units.load,
        {w: price * units.load / units.of_workload[w] for w, price in prices.items() if price > 0.0},
    )


def spot_shares(problem: FleetProblem, model: str, in_loss: bool) -> dict[str, float]:
    """Return the share of each workload that spot pools may take, where it is limited."""
    return {
        d.workload: d.spot_share
        for d in problem.demands_of(model)
        if d.spot_share < 1.0 and (d.on_demand_floor or not in_loss)
    }


def spread(problem: FleetProblem, model: str, replicas: Mapping[str, int], routing: Routing) -> Routing:
    """Give every pool some traffic: one that the routing leaves idle takes a little of a workload from its main pool.

    No load rises above the largest one, as long as an idle pool takes no more than `IDLE_SHARE` of what it could.
    """
    rates = dict(routing.rates)
    columns = {c.name: c for c in problem.columns_of(model)}
    shares = spot_shares(problem, model, in_loss=False)
    for idle in columns.values():
        if replicas.get(idle.name, 0) == 0 or any(c == idle.name for _, c in rates):
            continue
        servers = [(rate, w, c) for (w, c), rate in rates.items() if w in idle.services]
        for rate, workload, server in sorted(servers, reverse=True):
            room = replicas[idle.name] / max(row_needs(idle, idle.services[workload]))
            moved = IDLE_SHARE * min(rate, routing.load * room)
            if idle.spot and not columns[server].spot and workload in shares:
                own = [(r, columns[c].spot) for (w, c), r in rates.items() if w == workload]
                limit = shares[workload] * sum(r for r, _ in own)
                moved = min(moved, limit - sum(r for r, is_spot in own if is_spot))
            if moved > RATE_RTOL * rate:
                rates[workload, server] -= moved
                rates[workload, idle.name] = moved
                break
    return replace(routing, rates=dict(sorted(rates.items())))


def most_rate(
    problem: FleetProblem,
    model: str,
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    workload: str,
    *,
    in_loss: bool = False,
) -> float:
    """Return the largest rate of one workload, requests/s, that the pools carry beside the other demands.

    0 when the fleet cannot even carry those. `in_loss` as for `route`.
    """
    arcs = _free(problem, model, replicas, demand)
    others = {w: rate for w, rate in demand.items() if w != workload}
    if any(w not in {a for _, flow in arcs for a in flow} for w in demand):
        return 0.0
    asked = others | {workload: 0.0}
    units = _Units.of(arcs, replicas, asked)
    program = _program(arcs, replicas, asked, spot_shares(problem, model, in_loss), units)
    row = sorted(demand).index(workload)
    served = np.array([u * flow.get(workload, 0.0) for (_, flow), u in zip(arcs, units.of_arc, strict=True)] + [0.0])
    upper = program.upper.copy()
    upper[-1] = 1.0 / units.load
    row_upper = program.row_upper.copy()
    row_upper[row] = np.inf
    answer = minimise(replace(program, cost=-served, upper=upper, row_upper=row_upper), Effort(), relaxed=True)
    return 0.0 if answer.point is None else float(served @ answer.point)


def route_without(
    problem: FleetProblem,
    lost: Column,
    replicas: Mapping[str, int],
    spares: int,
    router: Callable[..., Routing] = route,
) -> Routing:
    """Route a model's demand, headroom not counted, with `spares` replicas of one of its pools gone."""
    left = dict(replicas) | {lost.name: max(0, replicas[lost.name] - spares)}
    demand = {d.workload: d.requests_per_s for d in problem.demands_of(lost.model)}
    return router(problem, lost.model, left, demand, in_loss=True)


def route_outage(problem: FleetProblem, outage: Outage, replicas: Mapping[str, int]) -> Routing:
    """Route a model's demand, headroom not counted, with all of its replicas in one zone gone."""
    gone = {c.name for c in problem.columns_of(outage.model) if c.zone == outage.zone}
    left = {name: count for name, count in replicas.items() if name not in gone}
    demand = {d.workload: d.requests_per_s for d in problem.demands_of(outage.model)}
    return route(problem, outage.model, left, demand, in_loss=True)


def survives(problem: FleetProblem, lost: Column, replicas: Mapping[str, int], spares: int) -> bool:
    """Tell whether the model still carries its demand, headroom not counted, with `spares` replicas of a pool gone."""
    return route_without(problem, lost, replicas, spares).carries


@dataclass(frozen=True)
class _Units:
    """Units that a routing is stated in: requests/s by workload, and by arc in their order; load of a pool.

    Those of small demands are such that rows and coefficients are near 1, see `planner.program.scale`.
    """

    of_workload: Mapping[str, float]
    of_arc: tuple[float, ...]
    load: float

    @classmethod
    def of(cls, arcs: Sequence[Arc], replicas: Mapping[str, int], demand: Mapping[str, float]) -> _Units:
        """Return the units for a demand, requests/s by workload."""
        of_workload = {w: unit_of(rate) for w, rate in demand.items()}
        of_arc = tuple(
            unit_of(min(of_workload[w] / share for w, share in flow.items() if share > 0.0)) for _, flow in arcs
        )
        needs = (
            unit * share * max(row_needs(c, c.services[w])) / replicas[c.name]
            for (c, flow), unit in zip(arcs, of_arc, strict=True)
            for w, share in flow.items()
        )
        return cls(of_workload, of_arc, unit_of(max(needs, default=0.0)))


def _program(
    arcs: Sequence[Arc],
    replicas: Mapping[str, int],
    demand: Mapping[str, float],
    shares: Mapping[str, float],
    units: _Units,
) -> CompiledProgram:
    """State a routing in its units: rows of demand, then of every capacity of every pool, then of spot shares."""
    workloads = sorted(demand)
    rows: list[tuple[str, object]] = [("demand", w) for w in workloads]
    entries = [
        (workloads.index(w), j, share * units.of_arc[j] / units.of_workload[w])
        for j, (_, flow) in enumerate(arcs)
        for w, share in flow.items()
    ]
    load = len(arcs)
    arcs_of: dict[str, list[int]] = defaultdict(list)
    for j, (column, _) in enumerate(arcs):
        arcs_of[column.name].append(j)
    for name, own in arcs_of.items():
        for place, row in enumerate(CAPACITY_ROWS):
            for column, flow, j in ((*arcs[j], j) for j in own):
                need = sum(share * row_needs(column, column.services[w])[place] for w, share in flow.items())
                entries.append((len(rows), j, need / replicas[name] * (units.of_arc[j] / units.load)))
            entries.append((len(rows), load, -1.0))
            rows.append((row, name))
    for limited in sorted(w for w in shares if any(w in flow and c.spot for c, flow in arcs)):
        # On spot at most a share s of all: (1 - s) of what is there, less s of what is elsewhere.
        entries += [
            (
                len(rows),
                j,
                flow[limited]
                * (1.0 - shares[limited] if c.spot else -shares[limited])
                * (units.of_arc[j] / units.of_workload[limited]),
            )
            for j, (c, flow) in enumerate(arcs)
            if limited in flow
        ]
        rows.append(("spot_share", limited))
    at, columns, values = zip(*entries, strict=True)
    size = (len(rows), load + 1)
    due = np.array([demand[w] / units.of_workload[w] for w in workloads] + [0.0] * (len(rows) - len(workloads)))
    least = np.where(np.arange(len(rows)) < len(workloads), due, -np.inf)
    return CompiledProgram(
        columns=(*(("rate", flow_key(c, flow)) for c, flow in arcs), ("load", None)),
        rows=tuple(rows),
        cost=np.append(np.zeros(load), 1.0),
        matrix=csr_array((values, (at, columns)), shape=size),
        row_lower=least,
        row_upper=due,
        lower=np.zeros(load + 1),
        upper=np.full(load + 1, np.inf),
        is_integer=np.zeros(load + 1, dtype=bool),
    )
