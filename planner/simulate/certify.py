"""Find the pools of a fleet that fail their replay, and lower their candidates to what they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.candidates.types import CandidateTable
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad
from planner.plan.pools import LoadedCandidate
from planner.plan.replayed import LimitReplay, PoolReplay, Replayed, Tightening, TraceUse
from planner.plan.rerate import lowered
from planner.simulate.fleet import Settings, fewest_replicas
from planner.simulate.run import replayed, replayed_pools

MOST_ROUNDS = 6
MOST_KEPT = 0.99  # of a rating, so that every tightening tells
MORE = 4  # times as many replications where the first ones leave a limit in doubt
LEAST_FOR_OTHERS = 0.7  # of the ratings of mixes that were not replayed
SEARCH_REPLICATIONS = 3
SEARCH_REQUESTS = 20_000


@dataclass
class Replays:
    """Replays of fleets, model by model: pools that did not change are not replayed again."""

    constants: SpeedConstants
    settings: Settings
    is_over: Callable[[], bool] = lambda: False
    _known: dict[str, tuple[list[PoolReplay], list[TraceUse]]] = field(default_factory=dict)

    def of(self, table: CandidateTable, pools: Sequence[LoadedCandidate]) -> Replayed | None:
        """Replay a fleet; None where a limit was reached. Models with a limit in doubt again with more replications, before anything is tightened for it."""
        found: list[PoolReplay] = []
        uses: list[TraceUse] = []
        loads = [load for _, load in pools]
        due = [each for each in _by_model(loads) if _key(each) not in self._known]
        more = replace(self.settings, replications=MORE * self.settings.replications)
        for each in due:
            if self.is_over():
                return None
            self._replay(table, each, self.settings)
            if any(_is_doubtful(p) for p in self._known[_key(each)][0]) and not self.is_over():
                self._replay(table, each, more)
        for each in _by_model(loads):
            own, used = self._known[_key(each)]
            found += own
            uses += used
        return replayed(self.settings, sorted(found, key=lambda p: p.name), uses)

    def _replay(self, table: CandidateTable, loads: Sequence[PoolLoad], settings: Settings) -> None:
        self._known[_key(loads)] = replayed_pools(table, loads, self.constants, settings)

    def tightened(
        self, table: CandidateTable, pools: Sequence[LoadedCandidate], found: Replayed, number: int
    ) -> tuple[CandidateTable, list[Tightening]]:
        """Return a table in which the candidates of pools that failed bear what these were found to hold, and what was done."""
        failed = {p.name: p for p in found.pools if _can_be_mended(p)}
        cuts: dict[str, float] = {}
        steps: list[Tightening] = []
        for candidate, load in pools:
            if load.name not in failed:
                continue
            if self.is_over():
                break
            fewest = self._fewest(table, [p for _, p in pools if p.shape.model == load.shape.model], load.name)
            used = sum(rate * candidate.services[w].busy_s for w, rate in load.rates.items())
            cuts[candidate.name] = 0.0 if fewest is None else min(MOST_KEPT, used / fewest)
            steps.append(
                Tightening(
                    round=number,
                    pool=load.name,
                    shape=candidate.shape.name,
                    verdict=failed[load.name].verdict,
                    failed=tuple(f"{name} {limit.metric}" for name, limit in _missed(failed[load.name])),
                    kept_share=cuts[candidate.name],
                )
            )
        passed = {c.name for c, load in pools if load.name not in failed}
        return lowered(table, _for_all_mixes(table, cuts, passed)), steps

    def _fewest(self, table: CandidateTable, loads: Sequence[PoolLoad], name: str) -> int | None:
        quick = replace(
            self.settings,
            replications=min(SEARCH_REPLICATIONS, self.settings.replications),
            requests=min(SEARCH_REQUESTS, self.settings.requests),
        )
        return fewest_replicas(table.models, table.workloads, loads, self.constants, quick, name)


def _for_all_mixes(table: CandidateTable, cuts: Mapping[str, float], passed: Collection[str]) -> dict[str, float]:
    """Return cuts of candidates with those of the other mixes of their shapes: these would fail too, though not by as much.

    Candidates that `passed` keep their ratings.
    """
    worst: dict[tuple[str, str], float] = {}
    for c in table.candidates:
        if c.name in cuts:
            key = (c.shape.model, c.shape.name)
            worst[key] = min(worst.get(key, 1.0), max(cuts[c.name], LEAST_FOR_OTHERS))
    others = {
        c.name: worst[c.shape.model, c.shape.name]
        for c in table.candidates
        if (c.shape.model, c.shape.name) in worst and c.name not in passed
    }
    return others | dict(cuts)


def _is_doubtful(pool: PoolReplay) -> bool:
    """Tell whether the interval of some percentile holds its limit."""
    return any(limit.verdict == "inconclusive" for _, limit in _missed(pool))


def _can_be_mended(pool: PoolReplay) -> bool:
    """Tell whether a pool misses a limit, or may: where too few requests came to tell, more replicas change nothing."""
    return bool(_missed(pool)) or pool.verdict == "unstable"


def _missed(pool: PoolReplay) -> list[tuple[str, LimitReplay]]:
    """Return the limits, by workload, that did not pass although enough requests came to tell."""
    limits = [(w.name, limit) for w in pool.workloads for limit in w.limits]
    return [(name, x) for name, x in limits if x.replayed_s is not None and x.verdict != "pass"]


def _by_model(loads: Sequence[PoolLoad]) -> list[list[PoolLoad]]:
    models = dict.fromkeys(load.shape.model for load in loads)
    return [[load for load in loads if load.shape.model == model] for model in models]


def _key(loads: Sequence[PoolLoad]) -> str:
    return repr(
        [(p.shape.model, p.name, p.shape.name, p.max_num_seqs, p.replicas, sorted(p.rates.items())) for p in loads]
    )
