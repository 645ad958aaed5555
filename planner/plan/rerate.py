"""Lower the capacity of pools that miss a limit at the mix they really got, until a routing holds everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.candidates.types import Candidate, CandidateTable, Service
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, largest_share, missed
from planner.plan.pools import LoadedCandidate, pool_loads
from planner.plan.reroute import Rates, reroutes
from planner.program.data import FleetProblem, spares_by_candidate
from planner.program.problem import with_services
from planner.solve.outcome import Solution
from planner.solve.routing import route, spread

LEAST_CUT = 0.995  # every correction takes at least this much, so that rounds end
MOST_ROUTINGS = 8


@dataclass(frozen=True)
class Settled:
    """Pools whose limits all hold, whole and short of their spares, with the table and problem that say so."""

    table: CandidateTable
    problem: FleetProblem
    solution: Solution
    pools: list[LoadedCandidate]
    reroutes: Mapping[str, Rates]


@dataclass(frozen=True)
class Unsettled:
    """A fleet that no routing settles: the table with the capacities found too high, lowered, and their models."""

    table: CandidateTable
    changed: frozenset[str]


class Rating:
    """The ratings of all candidates while a search goes on: lowered, model by model, where a plan turns out not to hold."""

    def __init__(self, table: CandidateTable, constants: SpeedConstants) -> None:
        """Start from the ratings of a table."""
        self._constants = constants
        self.table = table

    @property
    def table(self) -> CandidateTable:
        """All candidates as they are rated now."""
        own = {c.name: c for alone in self._alone.values() for c in alone.candidates}
        return replace(self._first, candidates=tuple(own[c.name] for c in self._first.candidates))

    @table.setter
    def table(self, table: CandidateTable) -> None:
        self._first = table
        self._alone = {name: _alone(table, name) for name in table.models}

    def holds(self, problem: FleetProblem, replicas: Mapping[str, int]) -> bool:
        """Tell whether the pools of a model bear their mix; `replicas` (by candidate) carry its demand and are all it has."""
        return isinstance(self._settled(problem, replicas), Settled)

    def lowered(self, problem: FleetProblem, replicas: Mapping[str, int]) -> FleetProblem | None:
        """Return the problem of one model with capacities lowered such that its pools bear their mix; None where they do."""
        found = self._settled(problem, replicas)
        if isinstance(found, Settled):
            return None
        self._alone[problem.rules[0].model] = found.table
        return with_services(problem, found.table)

    def _settled(self, problem: FleetProblem, replicas: Mapping[str, int]) -> Settled | Unsettled:
        rates = routes(problem, replicas)
        if rates is None:
            raise ValueError("the replicas do not carry the demand")
        alone = Solution(replicas, {}, rates, {}, 0.0, 0.0)
        return settle(self._alone[problem.rules[0].model], problem, alone, self._constants)


def _alone(table: CandidateTable, model: str) -> CandidateTable:
    return replace(
        table,
        models={model: table.models[model]},
        candidates=tuple(c for c in table.candidates if c.shape.model == model),
    )


def settle(
    table: CandidateTable, problem: FleetProblem, solution: Solution, constants: SpeedConstants
) -> Settled | Unsettled:
    """Find a routing over the given nodes and replicas under which every pool keeps its limits at its own mix.

    Capacities only fall: a pool that misses a limit is cut to the share of its traffic that it bears at its mix, then
    traffic is routed anew. The bound of the solution stays valid, since cuts only make the problem harder.
    """
    changed: set[str] = set()
    for _ in range(MOST_ROUTINGS):
        pools = pool_loads(table, solution)
        rerouted = reroutes(problem, solution, pools)
        short = [] if rerouted is None else degraded(pools, rerouted, problem)
        cuts = _cuts(table, pools, short, constants)
        if not cuts:
            if rerouted is None:
                break
            return Settled(table, problem, solution, pools, rerouted)
        changed |= {c.shape.model for c, _ in pools if c.name in cuts}
        table = _corrected(table, cuts)
        problem = with_services(problem, table)
        rates = routes(problem, solution.replicas)
        if rates is None:
            break
        solution = replace(solution, rates=rates)
    return Unsettled(table, frozenset(changed or {m.name for m in table.models.values()}))


def routes(problem: FleetProblem, replicas: Mapping[str, int]) -> dict[tuple[str, str], float] | None:
    """Route the planned demand over the fleet, or return None when it no longer carries it."""
    rates: dict[tuple[str, str], float] = {}
    for rule in problem.rules:
        planned = {d.workload: d.planned_requests_per_s for d in problem.demands_of(rule.model)}
        found = route(problem, rule.model, replicas, planned)
        if not found.carries:
            return None
        rates.update(spread(problem, rule.model, replicas, found).rates)
    return dict(sorted(rates.items()))


def degraded(pools: Sequence[LoadedCandidate], rerouted: Mapping[str, Rates], problem: FleetProblem) -> list[PoolLoad]:
    """Return the loads of every pool in every loss of spares."""
    spares = spares_by_candidate(problem)
    by_name = {load.name: (candidate.name, load) for candidate, load in pools}
    loads: list[PoolLoad] = []
    for lost, rates in sorted(rerouted.items()):
        for name, own in sorted(rates.items()):
            candidate, load = by_name[name]
            gone = spares[candidate] if name == lost else 0
            loads.append(replace(load, replicas=load.replicas - gone, rates=own))
    return loads


def _cuts(
    table: CandidateTable, pools: Sequence[LoadedCandidate], short: Sequence[PoolLoad], constants: SpeedConstants
) -> dict[str, float]:
    """Return, by candidate, the share of its rated capacity that a pool bears at its mix; none when all hold."""
    cuts: dict[str, float] = {}
    by_pool = {load.name: candidate for candidate, load in pools}
    loads = [*pools, *((by_pool[load.name], load) for load in short)]
    for model in table.models.values():
        own = [(c, load) for c, load in loads if c.shape.model == model.name]
        misses = missed(model, table.workloads, [load for _, load in own], constants)
        for (candidate, load), miss in zip(own, misses, strict=True):
            if miss:
                share = min(LEAST_CUT, largest_share(model, table.workloads, load, constants))
                cuts[candidate.name] = min(cuts.get(candidate.name, 1.0), share)
    return cuts


def _corrected(table: CandidateTable, cuts: Mapping[str, float]) -> CandidateTable:
    """Lower the candidates that missed, and with them those that would miss likewise: same shape, same workloads.

    They differ in batch cap and least pool only; corrected one by one, the search would try each of them in turn.
    """
    shares: dict[tuple[str, str, frozenset[str]], float] = {}
    for candidate in table.candidates:
        if candidate.name in cuts:
            key = _alike(candidate)
            shares[key] = min(shares.get(key, 1.0), cuts[candidate.name])
    candidates = tuple(
        _cut(c, cuts.get(c.name, shares[_alike(c)])) if _alike(c) in shares else c for c in table.candidates
    )
    return replace(table, candidates=candidates)


def _alike(candidate: Candidate) -> tuple[str, str, frozenset[str]]:
    return candidate.shape.model, candidate.shape.name, frozenset(candidate.services)


def _cut(candidate: Candidate, share: float) -> Candidate:
    services = {w: _slower(s, share) for w, s in candidate.services.items()} if share > 0.0 else {}
    return replace(candidate, services=services)


def _slower(service: Service, share: float) -> Service:
    return replace(service, busy_s=service.busy_s / share)
