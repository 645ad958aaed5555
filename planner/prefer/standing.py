"""Whether a fleet stands as it runs: every pool by itself, with its batch cap, on the nodes that there are and no others.

Traffic keeps the shares that the pools had of it where that holds; where it does not, any shares that hold will do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.candidates.periods import Expanded
from planner.candidates.types import Candidate, CandidateTable, Service
from planner.catalog import Catalog
from planner.physics.constants import SpeedConstants
from planner.plan.assess import LATENCY_RTOL, PoolLoad, assess_models, missed
from planner.plan.pools import LoadedCandidate, pools_by_model
from planner.plan.rerate import Settled, degraded
from planner.plan.reroute import reroutes
from planner.prefer.broken import Broken
from planner.prefer.earlier import EarlierFleet
from planner.prefer.keep import Fleet, Keeper
from planner.prefer.reasons import misses
from planner.prefer.running import Piece, Running, running_fleet
from planner.program.data import FleetProblem, KeptPool, node_cost, penalties
from planner.program.limits import node_offer
from planner.program.problem import fleet_problem, gpu_limits, with_services
from planner.solve.fleet import SolveLimits
from planner.solve.outcome import Solution
from planner.solve.packing import PackedNode, Packing
from planner.solve.routing import spot_shares
from planner.solve.tolerance import RATE_RTOL
from planner.spec import FleetSpec

NEXT_TO_NOTHING = 1e-6  # of what a request takes: where only nodes and limits are asked for
Loads = Mapping[str, Sequence[PoolLoad]]
"""Pools with their traffic, by model."""


@dataclass(frozen=True)
class Standing:
    """A fleet on today's terms, None where it breaks something.

    `rerouted` are the models whose traffic must be shared out otherwise than before for it to hold. `predicted_s` are latencies
    by (workload, SLO key): of a fleet that breaks something with today's demand in the shares that its pools had of it.
    `usd_per_h` is what its nodes cost today, None where some are not for sale any more. `whole` has the table of the pools
    for every period, where there are several.
    """

    fleet: Fleet | None
    usd_per_h: float | None
    broken: tuple[Broken, ...] = ()
    rerouted: tuple[str, ...] = ()
    predicted_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    whole: Expanded | None = None


@dataclass(frozen=True)
class Terms:
    """What a fleet is held against: a spec with its candidates, all periods at once where there are several (`whole`)."""

    spec: FleetSpec
    catalog: Catalog
    table: CandidateTable
    constants: SpeedConstants
    whole: Expanded | None = None


def standing(earlier: EarlierFleet, terms: Terms) -> Standing:
    """Return whether a fleet holds every limit as it runs, and all that it breaks where it does not."""
    running = running_fleet(earlier, terms.table)
    paid = _usd_per_h(running, terms.table) if not _lost_nodes(running, earlier) else None
    loads = _as_shared_before(running, terms.table)
    predicted_s = _worst_s(terms, loads)
    gone = (*running.lost, *_without_pools(running, terms.table))
    if gone:
        return Standing(None, paid, (*gone, *misses(terms.table, loads, terms.constants)), (), predicted_s)
    own = _own_terms(running, terms)
    keeper = _keeper(running, own)
    kept = _as_before(keeper, running, loads, own) or keeper.unchanged((), 0.0, paid or 0.0)
    if not isinstance(kept, Fleet):
        known = [b for b in kept if b.check != "routing"] + [*misses(terms.table, loads, terms.constants)]
        broken = known or [*_missed_in_losses(keeper.problem, loads, own)] or kept
        return Standing(None, paid, tuple(dict.fromkeys(broken)), (), predicted_s)
    fleet = _with_idle_nodes(kept, running)
    routed = {model: [p[1] for p in pools] for model, pools in pools_by_model(fleet.found.pools).items()}
    return Standing(fleet, paid, (), tuple(_rerouted(fleet, loads)), _worst_s(own, routed), own.whole)


def _lost_nodes(running: Running, earlier: EarlierFleet) -> bool:
    return bool({b.subject for b in running.lost} & {n.offer for n in earlier.nodes})


def _usd_per_h(running: Running, table: CandidateTable) -> float:
    """Return what the nodes that run cost today, the mean over all hours."""
    prices = {o.name: o.usd_per_node_h for o in table.supply.offers}
    return sum(prices[name] * count for name, count in running.nodes.items())


def _without_pools(running: Running, table: CandidateTable) -> Iterator[Broken]:
    """Yield the workloads of models that the fleet has no pool of."""
    for name, workload in table.workloads.items():
        if workload.model not in running.models:
            reason = f"workload {name} of model {workload.model}: the fleet has no pool of this model"
            yield Broken("demand", name, reason, "share", 1.0, 0.0)


def _own_terms(running: Running, terms: Terms) -> Terms:
    """Return the terms with one candidate for each pool that runs, at any mix, and nothing else."""
    own = [_own_candidate(piece) for piece in running.pieces]
    table = replace(terms.table, candidates=tuple(sorted(own, key=lambda c: c.name)))
    if terms.whole is None:
        return replace(terms, table=table)
    parts = []
    for part in terms.whole.parts:
        steady = part.steady | {piece.name for piece in running.pieces if not piece.pool.period}
        part = replace(part, steady=frozenset(steady))
        mine = [part.restored(c) for c in table.candidates if part.base(c.name) is not None]
        parts.append(replace(part, table=replace(part.table, candidates=tuple(mine))))
    whole = replace(terms.whole, table=table, parts=tuple(parts))
    return replace(terms, table=table, whole=whole)


def _own_candidate(piece: Piece) -> Candidate:
    """Return what a pool is rated for: as its nearest candidate, with what others of its kind serve besides."""
    nearest = piece.candidates[0]
    services: dict[str, Service] = {}
    for candidate in piece.candidates:
        for workload, service in candidate.services.items():
            services.setdefault(workload, replace(service, mix_share=None))
    cap = piece.pool.max_num_seqs or nearest.max_num_seqs
    ordered = dict(sorted(services.items()))
    return replace(nearest, name=piece.name, max_num_seqs=cap, min_replicas=1, services=ordered)


def _keeper(running: Running, own: Terms) -> Keeper:
    """Return what finds a routing over exactly the pools and nodes that run."""
    pools = tuple(KeptPool(p.name, (p.name,), p.replicas, frozenset({p.name})) for p in running.pieces)
    exact = replace(running, pools=pools, has_new_models=False, has_gone_models=False)
    problem = fleet_problem(own.spec, own.table, gpu_limits(own.spec, own.catalog), frozenset(running.nodes))
    known = {o.name for o in problem.offers}
    unused = [node_offer(o) for o in own.table.supply.offers if o.name in running.nodes.keys() - known]
    problem = replace(problem, offers=tuple(sorted((*problem.offers, *unused), key=lambda o: o.name)))
    limits = SolveLimits(own.spec.planning.gap)
    return Keeper(exact, own.spec, own.catalog, own.table, problem, own.constants, limits, 0.0)


def _as_before(keeper: Keeper, running: Running, loads: Loads, own: Terms) -> Fleet | None:
    """Return the fleet with today's demand in the shares that its pools had of it, None where that is not known or does not hold."""
    rated = {c.name: c for c in own.table.candidates}
    if sum(len(each) for each in loads.values()) < len(running.pieces):
        return None
    if any(load.rates.keys() - rated[load.name].services.keys() for each in loads.values() for load in each):
        return None
    if any(any(missed(own.table.models[m], own.table.workloads, each, own.constants)) for m, each in loads.items()):
        return None
    pools = sorted(((rated[load.name], load) for each in loads.values() for load in each), key=lambda p: p[1].name)
    if not all(_within_spot_shares(keeper.problem, model, pools) for model in loads):
        return None
    placed = keeper.placed(_taking_nothing(own.table))
    if placed is None:
        return None
    rates = {(w, c.name): rate for c, load in pools for w, rate in load.rates.items()}
    solution = replace(placed.solution, rates=dict(sorted(rates.items())))
    problem = with_services(placed.found.problem, own.table)
    rerouted = reroutes(problem, solution, pools)
    if rerouted is None or _after_losses(own, degraded(pools, rerouted, problem)):
        return None
    return replace(placed, found=Settled(own.table, problem, solution, pools, rerouted))


def _taking_nothing(table: CandidateTable) -> CandidateTable:
    """Return a table in which requests take next to nothing: what is left to find is where replicas lie."""

    def light(service: Service) -> Service:
        return replace(
            service,
            busy_s=service.busy_s * NEXT_TO_NOTHING,
            residence_s=service.residence_s * NEXT_TO_NOTHING,
            streamed_bytes=service.streamed_bytes * NEXT_TO_NOTHING,
            flops=service.flops * NEXT_TO_NOTHING,
        )

    return replace(
        table,
        candidates=tuple(replace(c, services={w: light(s) for w, s in c.services.items()}) for c in table.candidates),
    )


def _after_losses(own: Terms, short: Sequence[PoolLoad]) -> bool:
    """Tell whether some pool misses a limit in a loss."""
    by_model: dict[str, list[PoolLoad]] = defaultdict(list)
    for load in short:
        by_model[load.shape.model].append(load)
    return any(
        any(missed(own.table.models[m], own.table.workloads, each, own.constants)) for m, each in by_model.items()
    )


def _missed_in_losses(problem: FleetProblem, loads: Loads, own: Terms) -> Iterator[Broken]:
    """Yield the limits that pools miss in losses, with the traffic that is left shared out for the fullest to be as empty as can be."""
    rated = {c.name: c for c in own.table.candidates}
    pools = [(rated[load.name], load) for each in loads.values() for load in each if load.name in rated]
    replicas = {load.name: load.replicas for _, load in pools}
    rates = {(w, load.name): rate for _, load in pools for w, rate in load.rates.items()}
    rerouted = reroutes(problem, Solution(replicas, {}, rates, {}, 0.0, 0.0), pools)
    short: dict[str, list[PoolLoad]] = defaultdict(list)
    for load in degraded(pools, rerouted or {}, problem):
        short[load.shape.model].append(load)
    for broken in misses(own.table, short, own.constants):
        yield replace(broken, reason=f"{broken.reason}, after a loss")


def _within_spot_shares(problem: FleetProblem, model: str, pools: Sequence[LoadedCandidate]) -> bool:
    for workload, most in spot_shares(problem, model, in_loss=False).items():
        own = [(load.rates.get(workload, 0.0), candidate.domain.spot) for candidate, load in pools]
        total = sum(rate for rate, _ in own)
        if sum(rate for rate, is_spot in own if is_spot) > most * total * (1.0 + RATE_RTOL):
            return False
    return True


def _with_idle_nodes(fleet: Fleet, running: Running) -> Fleet:
    """Return a fleet with the nodes that run and hold nothing: they are paid for too."""
    problem = fleet.found.problem
    sizes = {o.name: o.gpus_per_node for o in problem.offers}
    used = fleet.packing.count()
    idle = [PackedNode(o, sizes[o], {}) for o, n in running.nodes.items() for _ in range(n - used.get(o, 0))]
    packing = Packing((*fleet.packing.nodes, *idle), fleet.packing.replicas_on)
    nodes = packing.count()
    costs = {o.name: node_cost(problem, o) for o in problem.offers}
    cost = sum(costs[name] * count for name, count in nodes.items()) + penalties(problem, fleet.solution.replicas)
    solution: Solution = replace(fleet.solution, nodes=nodes, cost=cost, bound=0.0)
    return replace(fleet, found=replace(fleet.found, solution=solution), packing=packing)


def _rerouted(fleet: Fleet, loads: Loads) -> Iterator[str]:
    """Yield the models whose traffic is shared out otherwise than before, of those whose shares are known."""
    found = {(load.name, w): rate for _, load in fleet.found.pools for w, rate in load.rates.items()}
    for model, own in sorted(loads.items()):
        before = {(load.name, w): rate for load in own for w, rate in load.rates.items()}
        if any(abs(found.get(key, 0.0) - rate) > RATE_RTOL * rate for key, rate in before.items()):
            yield model


def _as_shared_before(running: Running, table: CandidateTable) -> dict[str, list[PoolLoad]]:
    """Return the pools that run, by model, with today's demand in the shares that they had of it, where these are known."""
    totals: Counter[str] = Counter()
    for piece in running.pieces:
        totals.update(_rates(piece))
    loads: dict[str, list[PoolLoad]] = defaultdict(list)
    for piece in running.pieces:
        rates = {
            w: table.workloads[w].planned_requests_per_s * rate / totals[w]
            for w, rate in sorted(_rates(piece).items())
            if w in table.workloads and table.workloads[w].model == piece.pool.model and rate > 0.0
        }
        cap = piece.pool.max_num_seqs
        if rates and cap is not None:
            shape = piece.candidates[0].shape
            loads[piece.pool.model].append(PoolLoad(piece.name, shape, cap, piece.replicas, rates))
    asked = {name: w.model for name, w in table.workloads.items()}
    served = {w for own in loads.values() for load in own for w in load.rates}
    return {model: own for model, own in loads.items() if all(w in served for w, m in asked.items() if m == model)}


def _rates(piece: Piece) -> Mapping[str, float]:
    """Return the traffic of a piece of a pool: its share by replicas."""
    share = piece.replicas / piece.pool.replicas
    return {w: rate * share for w, rate in piece.pool.rates.items()}


def _worst_s(terms: Terms, loads: Loads) -> dict[tuple[str, str], float]:
    """Return the largest predicted latency of any pool and period by (workload, SLO key), in seconds.

    None where queues grow without end.
    """
    found: dict[tuple[str, str], float] = {}
    endless: set[tuple[str, str]] = set()
    for states in assess_models(terms.table, loads, terms.constants).values():
        for state in states:
            latency = {(_base(w, terms.whole), key): s for (w, key), s in state.latency_s.items()}
            for each, seconds in latency.items():
                found[each] = max(found.get(each, 0.0), seconds)
            if state.overload > 1.0 + LATENCY_RTOL:
                endless |= latency.keys()
    return {key: seconds for key, seconds in sorted(found.items()) if key not in endless}


def _base(name: str, whole: Expanded | None) -> str:
    """Return the model or workload of the spec that a copy for a period is of."""
    bases = (part.base(name) for part in whole.parts) if whole is not None else ()
    return next((base for base in bases if base is not None), name)


def bases(names: Sequence[str], whole: Expanded | None) -> tuple[str, ...]:
    """Return the models or workloads of the spec that names, of copies or not, are of, sorted."""
    return tuple(sorted({_base(name, whole) for name in names}))
