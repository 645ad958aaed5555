"""Lower the capacity of pools that miss a limit at the mix they really got, until a routing holds everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.candidates.types import Candidate, CandidateTable, Service
from planner.parallel import LEAST_MODELS_SHARED_OUT, in_order
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, largest_share, missed
from planner.plan.pools import LoadedCandidate, pool_loads, pools_by_model
from planner.plan.reroute import Rates, reroutes
from planner.program.data import FleetProblem, by_model, spares_by_candidate
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
        return _together(self._first, list(self._alone.values()))

    @table.setter
    def table(self, table: CandidateTable) -> None:
        self._first = table
        self._alone = table.by_model()

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
        return _settle_alone(self._alone[problem.rules[0].model], problem, alone, self._constants)


def settle(
    table: CandidateTable, problem: FleetProblem, solution: Solution, constants: SpeedConstants
) -> Settled | Unsettled:
    """Find a routing over the given nodes and replicas under which every pool keeps its limits at its own mix.

    Capacities only fall: a pool that misses a limit is cut to the share of its traffic that it bears at its mix, then
    traffic is routed anew. The bound of the solution stays valid, since cuts only make the problem harder.
    """
    tables = table.by_model()
    parts = [(tables[m], own, of_model(solution, own)) for m, own in by_model(problem).items()]
    # Most hold as they are. Workers find out which; the others are settled here, as what they return is large.
    held = in_order(lambda part: _losses_borne(*part, constants), parts, least_items=LEAST_MODELS_SHARED_OUT)
    found = [
        _settle_alone(*part, constants) if losses is None else Settled(*part, pool_loads(part[0], part[2]), losses)
        for part, losses in zip(parts, held, strict=True)
    ]
    settled = [each for each in found if isinstance(each, Settled)]
    changed = frozenset(
        part[1].rules[0].model
        for part, each in zip(parts, found, strict=True)
        if isinstance(each, Unsettled) or each.table is not part[0]
    )
    if changed:
        table = _together(table, [each.table for each in found])
    if len(settled) < len(found):
        return Unsettled(table, changed)
    if changed:
        problem = with_services(problem, table)
        rates = {key: rate for each in settled for key, rate in each.solution.rates.items()}
        solution = replace(solution, rates=dict(sorted(rates.items())))
    pools = sorted((pool for each in settled for pool in each.pools), key=lambda pool: pool[1].name)
    return Settled(table, problem, solution, pools, {lost: r for each in settled for lost, r in each.reroutes.items()})


def of_model(solution: Solution, problem: FleetProblem) -> Solution:
    """Return the replicas and rates of a solution that are those of a problem of one model; its cost is that of all."""
    own = {c.name for c in problem.columns}
    return replace(
        solution,
        replicas={name: n for name, n in solution.replicas.items() if name in own},
        rates={key: rate for key, rate in solution.rates.items() if key[1] in own},
    )


def _together(table: CandidateTable, parts: Sequence[CandidateTable]) -> CandidateTable:
    own = {c.name: c for part in parts for c in part.candidates}
    return replace(table, candidates=tuple(own.get(c.name, c) for c in table.candidates))


def _losses_borne(
    table: CandidateTable, problem: FleetProblem, solution: Solution, constants: SpeedConstants
) -> Mapping[str, Rates] | None:
    """Return where traffic of one model goes in every loss; None where some pool misses a limit, whole or then."""
    pools = pool_loads(table, solution)
    rerouted = reroutes(problem, solution, pools)
    if rerouted is None or _cuts(table, pools, degraded(pools, rerouted, problem), constants):
        return None
    return rerouted


def _settle_alone(
    table: CandidateTable, problem: FleetProblem, solution: Solution, constants: SpeedConstants
) -> Settled | Unsettled:
    for _ in range(MOST_ROUTINGS):
        pools = pool_loads(table, solution)
        rerouted = reroutes(problem, solution, pools)
        short = [] if rerouted is None else degraded(pools, rerouted, problem)
        cuts = _cuts(table, pools, short, constants)
        if not cuts:
            if rerouted is None:
                break
            return Settled(table, problem, solution, pools, rerouted)
        table = lowered(table, cuts)
        problem = with_services(problem, table)
        rates = routes(problem, solution.replicas)
        if rates is None:
            break
        solution = replace(solution, rates=rates)
    return Unsettled(table, frozenset(table.models))


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
    for name, own in pools_by_model(loads).items():
        model = table.models[name]
        misses = missed(model, table.workloads, [load for _, load in own], constants)
        for (candidate, load), miss in zip(own, misses, strict=True):
            if miss:
                share = min(LEAST_CUT, largest_share(model, table.workloads, load, constants))
                cuts[candidate.name] = min(cuts.get(candidate.name, 1.0), share)
    return cuts


def lowered(table: CandidateTable, cuts: Mapping[str, float]) -> CandidateTable:
    """Lower candidates, by name, to a share of what they bear, and with them those of the same shape, workloads and mix.

    They differ in batch cap and least pool only; corrected one by one, the search would try each of them in turn.
    """
    shares: dict[tuple[object, ...], float] = {}
    for candidate in table.candidates:
        if candidate.name in cuts:
            key = _alike(candidate)
            shares[key] = min(shares.get(key, 1.0), cuts[candidate.name])
    candidates = tuple(
        _cut(c, cuts.get(c.name, shares[_alike(c)])) if _alike(c) in shares else c for c in table.candidates
    )
    return replace(table, candidates=candidates)


def _alike(candidate: Candidate) -> tuple[object, ...]:
    mix = frozenset((w, s.mix_share) for w, s in candidate.services.items())
    return candidate.shape.model, candidate.shape.name, mix


def _cut(candidate: Candidate, share: float) -> Candidate:
    services = {w: _slower(s, share) for w, s in candidate.services.items()} if share > 0.0 else {}
    return replace(candidate, services=services)


def _slower(service: Service, share: float) -> Service:
    return replace(service, busy_s=service.busy_s / share)
