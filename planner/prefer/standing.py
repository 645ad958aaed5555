"""Whether a fleet stands as it runs: its replicas, nodes and batch caps, with its traffic shared out as before where that holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.candidates.types import Candidate, CandidateTable, ResolvedWorkload
from planner.physics.constants import SpeedConstants
from planner.plan.assess import LATENCY_RTOL, PoolLoad, assess_models, missed
from planner.plan.pools import LoadedCandidate, pools_by_model
from planner.plan.rerate import Settled, degraded
from planner.prefer.broken import Broken
from planner.prefer.earlier import EarlierFleet, EarlierPool
from planner.prefer.keep import Fleet, Keeper
from planner.prefer.reasons import misses
from planner.program.data import FleetProblem
from planner.solve.routing import spot_shares
from planner.solve.tolerance import RATE_RTOL

Kind = tuple[str, str, bool]
"""Model, shape, and whether on spot nodes."""


@dataclass(frozen=True)
class Standing:
    """A fleet on today's terms, None where it breaks something.

    `rerouted` are the models whose traffic must be shared out otherwise than before for it to hold. `predicted_s` are latencies
    by (workload, SLO key) of a fleet that breaks something, with today's demand in the shares that its pools had of it.
    """

    fleet: Fleet | None
    broken: tuple[Broken, ...] = ()
    rerouted: tuple[str, ...] = ()
    predicted_s: Mapping[tuple[str, str], float] = field(default_factory=dict)


def standing(earlier: EarlierFleet, keeper: Keeper) -> Standing:
    """Return whether a fleet holds every limit of the spec of `keeper` as it runs, and what it breaks where it does not."""
    found = keeper.standing()
    if isinstance(found, Fleet):
        return _as_it_runs(found, earlier, keeper.constants)
    loads = _as_routed(earlier, keeper.table)
    missed_now = misses(keeper.table, loads, keeper.constants)
    return Standing(None, (*found, *missed_now), (), _worst_s(keeper.table, loads, keeper.constants))


def _as_it_runs(fleet: Fleet, earlier: EarlierFleet, constants: SpeedConstants) -> Standing:
    """Return a fleet with the batch caps that run, and with the shares of traffic that it had, model by model, where they hold."""
    found = fleet.found
    capped = pools_by_model(_with_caps(found.pools, earlier.pools))
    losses = degraded(found.pools, found.reroutes, found.problem)
    pools: list[LoadedCandidate] = []
    broken: list[Broken] = []
    rerouted: list[str] = []
    for model, own in sorted(capped.items()):
        asked = _as_shared_before(own, earlier.pools, found.table.workloads)
        if asked is not None and _holds(asked, found, constants):
            own = asked
        else:
            rerouted += [model] if asked is not None else []
            broken += misses(found.table, {model: [load for _, load in own]}, constants)
        caps = {load.name: load.max_num_seqs for _, load in own}
        short = [replace(s, max_num_seqs=caps[s.name]) for s in losses if s.name in caps]
        broken += _after_losses(found.table, model, short, constants)
        pools += own
    if broken:
        return Standing(None, tuple(replace(b, check="settings") for b in broken))
    pools.sort(key=lambda pool: pool[1].name)
    rates = {(w, c.name): rate for c, load in pools for w, rate in load.rates.items()}
    solution = replace(found.solution, rates=dict(sorted(rates.items())))
    settled = replace(found, table=_in_table(found.table, pools), solution=solution, pools=pools)
    return Standing(replace(fleet, found=settled), (), tuple(rerouted))


def _in_table(table: CandidateTable, pools: Sequence[LoadedCandidate]) -> CandidateTable:
    own = {candidate.name: candidate for candidate, _ in pools}
    return replace(table, candidates=tuple(own.get(c.name, c) for c in table.candidates))


def _kind(candidate: Candidate) -> Kind:
    return candidate.shape.model, candidate.shape.name, candidate.domain.spot


def _earlier_kind(pool: EarlierPool) -> Kind:
    return pool.model, pool.shape, pool.is_spot


def _with_caps(pools: Sequence[LoadedCandidate], earlier: Sequence[EarlierPool]) -> list[LoadedCandidate]:
    """Return pools with the batch caps that run; where pools of one kind have several, the least of them."""
    caps: dict[Kind, int] = {}
    for pool in earlier:
        if pool.max_num_seqs is not None:
            kind = _earlier_kind(pool)
            caps[kind] = min(caps.get(kind, pool.max_num_seqs), pool.max_num_seqs)
    found: list[LoadedCandidate] = []
    for candidate, load in pools:
        cap = caps.get(_kind(candidate), load.max_num_seqs)
        found.append((replace(candidate, max_num_seqs=cap), replace(load, max_num_seqs=cap)))
    return found


def _as_shared_before(
    pools: Sequence[LoadedCandidate], earlier: Sequence[EarlierPool], workloads: Mapping[str, ResolvedWorkload]
) -> list[LoadedCandidate] | None:
    """Return the pools of a model with today's demand in the shares that they had of it; None where these are not known."""
    asked = {w for _, load in pools for w in load.rates}
    before: dict[Kind, Counter[str]] = defaultdict(Counter)
    for pool in earlier:
        before[_earlier_kind(pool)].update(pool.rates)
    replicas: Counter[Kind] = Counter()
    for candidate, load in pools:
        replicas[_kind(candidate)] += load.replicas
    totals: Counter[str] = Counter()
    for kind in replicas:
        totals.update(before[kind])
    if any(totals[w] <= 0.0 for w in asked):
        return None
    planned = {w: workloads[w].planned_requests_per_s for w in asked}
    found: list[LoadedCandidate] = []
    for candidate, load in pools:
        kind = _kind(candidate)
        share = load.replicas / replicas[kind]
        rates = {w: planned[w] * share * rate / totals[w] for w, rate in sorted(before[kind].items()) if w in planned}
        found.append((candidate, replace(load, rates={w: rate for w, rate in rates.items() if rate > 0.0})))
    return found if all(load.rates for _, load in found) else None


def _holds(pools: Sequence[LoadedCandidate], found: Settled, constants: SpeedConstants) -> bool:
    """Tell whether the pools of a model hold every limit on latency, queues and spot nodes at their traffic."""
    model = pools[0][0].shape.model
    loads = [load for _, load in pools]
    if any(missed(found.table.models[model], found.table.workloads, loads, constants)):
        return False
    return _within_spot_shares(found.problem, model, pools)


def _within_spot_shares(problem: FleetProblem, model: str, pools: Sequence[LoadedCandidate]) -> bool:
    for workload, most in spot_shares(problem, model, in_loss=False).items():
        own = [(load.rates.get(workload, 0.0), candidate.domain.spot) for candidate, load in pools]
        total = sum(rate for rate, _ in own)
        if sum(rate for rate, is_spot in own if is_spot) > most * total * (1.0 + RATE_RTOL):
            return False
    return True


def _after_losses(
    table: CandidateTable, model: str, loads: Sequence[PoolLoad], constants: SpeedConstants
) -> list[Broken]:
    """Return what pools miss in losses, at the batch caps that run."""
    found = misses(table, {model: loads}, constants) if loads else ()
    return [replace(b, reason=f"{b.reason}, after a loss") for b in found]


def _as_routed(earlier: EarlierFleet, table: CandidateTable) -> dict[str, list[PoolLoad]]:
    """Return the pools that run, by model, with today's demand in the shares that they had of it, where these are known."""
    shapes = {(c.shape.model, c.shape.name): c.shape for c in table.candidates}
    totals: Counter[str] = Counter()
    for pool in earlier.pools:
        totals.update(pool.rates)
    loads: dict[str, list[PoolLoad]] = defaultdict(list)
    for pool in earlier.pools:
        shape = shapes.get((pool.model, pool.shape))
        rates = {
            w: table.workloads[w].planned_requests_per_s * rate / totals[w]
            for w, rate in sorted(pool.rates.items())
            if w in table.workloads and table.workloads[w].model == pool.model and rate > 0.0
        }
        if shape is not None and rates and pool.max_num_seqs is not None:
            loads[pool.model].append(PoolLoad(pool.name, shape, pool.max_num_seqs, pool.replicas, rates))
    return dict(loads)


def _worst_s(
    table: CandidateTable, loads: Mapping[str, Sequence[PoolLoad]], constants: SpeedConstants
) -> dict[tuple[str, str], float]:
    """Return the largest predicted latency of any pool by (workload, SLO key), in seconds; none where queues grow without end."""
    found: dict[tuple[str, str], float] = {}
    endless: set[tuple[str, str]] = set()
    for states in assess_models(table, loads, constants).values():
        for state in states:
            for key, seconds in state.latency_s.items():
                found[key] = max(found.get(key, 0.0), seconds)
            if state.overload > 1.0 + LATENCY_RTOL:
                endless |= state.latency_s.keys()
    return {key: seconds for key, seconds in sorted(found.items()) if key not in endless}
