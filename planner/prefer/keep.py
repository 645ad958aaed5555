"""Decide between the best fleet and the one that runs: keep it, change it as little as possible, or give it up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.physics.constants import SpeedConstants
from planner.plan.pools import pool_loads, pools_by_model
from planner.plan.rerate import Rating, Settled, settle
from planner.prefer.broken import Broken, in_words
from planner.prefer.reasons import misses, percent, why_not_carried
from planner.prefer.running import Running
from planner.program.data import FleetProblem
from planner.program.problem import with_services
from planner.solve.closest import Closest, closest
from planner.solve.fleet import MOST_MODELS_WHOLE, SolveLimits
from planner.solve.outcome import Solution, Unsolved
from planner.solve.packing import Packing
from planner.spec import FleetSpec

MOST_COLUMNS = 1500  # candidates of a program that is searched for the fewest changes
MOST_ROUNDS = 8
MOST_REASONS = 6
PATIENCE_S = 20.0  # what a limit leaves to see whether the fleet that runs still holds
COST_ROOM = 1e-9  # sums of prices differ by this much
TOO_LARGE = (
    "only shapes of this fleet and of the best one were considered: it is too large to search all for fewer changes"
)
TOO_FAR = "no fleet that keeps more of it was found within the cost that is allowed: the best one is planned"
CUT_SHORT = "a limit was reached before fewer changes were found: the best fleet is planned"
NO_ROUTING = "no routing of today's traffic over it keeps every limit of the spec"
NOT_FEWEST = "fewer changes may be possible: the search for the fewest reached a limit"


@dataclass(frozen=True)
class Fleet:
    """A fleet whose pools hold every limit, and the nodes that its replicas lie on.

    `changes` counts replicas and nodes that the one that runs has otherwise; `is_fewest` is false where fewer may do.
    """

    found: Settled
    packing: Packing
    changes: int = 0
    is_fewest: bool = True

    @property
    def solution(self) -> Solution:
        """Its replicas, nodes and rates, with cost and bound."""
        return self.found.solution

    @property
    def usd_per_h(self) -> float:
        """What its nodes cost, whatever the objective counts."""
        prices = {o.name: o.usd_per_node_h for o in self.found.problem.offers}
        return sum(prices[name] * count for name, count in self.packing.count().items())


@dataclass(frozen=True)
class Missed:
    """No fleet of few changes: what pools missed at their mix, and whether a limit cut the search short."""

    broken: tuple[Broken, ...]
    is_cut_short: bool


@dataclass(frozen=True)
class Preference:
    """What became of the fleet that runs: the fleet that is planned, and why it is not the one that runs."""

    outcome: Literal["kept", "changed", "not_possible"]
    fleet: Fleet
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Keeper:
    """Everything that the decision takes. `table` and `problem` are as rated first; `stay_within` is a share of the best cost."""

    running: Running
    spec: FleetSpec
    catalog: Catalog
    table: CandidateTable
    problem: FleetProblem
    constants: SpeedConstants
    limits: SolveLimits
    stay_within: float

    def decide(self, best: Fleet) -> Preference:
        """Keep the fleet that runs where it holds and costs within the share of the best one; else change little of it."""
        most = best.solution.cost * (1.0 + self.stay_within) * (1.0 + COST_ROOM)
        reasons: tuple[str, ...]
        kept = self._unchanged(best)
        if isinstance(kept, Fleet):
            if kept.solution.cost <= most:
                return Preference("kept", kept)
            reasons = (self._dearer(kept, best),)
        else:
            reasons = kept
        return self._changed(best, most, reasons)

    def _unchanged(self, best: Fleet) -> Fleet | tuple[str, ...]:
        """Return the fleet that runs on today's terms, or why it cannot be had.

        First as the pools of the best fleet turned out at their mix, which is what an unchanged spec leads to again; last
        with any mix in its pools, also one that no candidate is rated for.
        """
        if self.running.lost:
            return in_words(self.running.lost, MOST_REASONS)
        if self._other_settings(best) == 0 and self._is_running(best):
            return best
        patient = replace(self, limits=self._patient_limits())
        tables = (best.found.table, self.table)
        found = patient.unchanged(tables, best.solution.bound, best.solution.cost)
        return found if isinstance(found, Fleet) else in_words(found, MOST_REASONS)

    def placed(self, table: CandidateTable) -> Fleet | None:
        """Return where the replicas that run lie on the nodes that run, as far as limits go; nothing is said of what they carry."""
        problem = self._restricted(table, 1.0)
        found = closest(problem, 0.0, self.limits, Rating(table, self.constants))
        if not isinstance(found, Closest):
            return None
        return Fleet(Settled(table, found.problem, found.solution, [], {}), found.packing)

    def unchanged(self, tables: Sequence[CandidateTable], bound: float, scale: float) -> Fleet | tuple[Broken, ...]:
        """Return the fleet that runs as one of the tables rates it, or else at any mix, or what it breaks."""
        tries = [self._as_rated(table, bound, scale) for table in tables]
        held = [found for found in tries if isinstance(found, Fleet)]
        if held:
            return min(held, key=self._other_settings)
        freely = self._as_rated(self.table.at_any_mix(), bound, scale)
        if isinstance(freely, Fleet):
            return freely
        missed = next((found for found in reversed(tries) if isinstance(found, Missed)), freely)
        broken = why_not_carried(self.spec, self._restricted(self.table, scale), self.running, self.catalog)
        unknown = Broken("routing", self.spec.fleet, CUT_SHORT if missed.is_cut_short else NO_ROUTING)
        return broken or missed.broken or (unknown,)

    def _as_rated(self, table: CandidateTable, bound: float, scale: float) -> Fleet | Missed:
        return self._settled(self._restricted(table, scale), table, bound)

    def _patient_limits(self) -> SolveLimits:
        """Return limits that leave time to see whether a fleet holds, which is quick, however late it is."""
        limits = replace(self.limits, interrupt=None)
        if self.limits.deadline_s is None and not self.limits.is_over:
            return limits
        return replace(limits, deadline_s=max(self.limits.deadline_s or 0.0, time.monotonic() + PATIENCE_S))

    def _is_running(self, fleet: Fleet) -> bool:
        """Tell whether a fleet has the replicas and nodes of the one that runs, and nothing else."""
        replicas = fleet.solution.replicas
        pools = {p.name: sum(replicas.get(name, 0) for name in p.columns) for p in self.running.pools}
        counted = sum(pools.values()) == sum(replicas.values())
        is_same = pools == {p.name: p.replicas for p in self.running.pools}
        return counted and is_same and fleet.packing.count() == self.running.nodes

    def _other_settings(self, fleet: Fleet) -> int:
        """Count the replicas of a fleet that run with other settings than now."""
        same = {name for pool in self.running.pools for name in pool.same}
        return sum(count for name, count in fleet.solution.replicas.items() if name not in same)

    def _restricted(self, table: CandidateTable, scale: float) -> FleetProblem:
        """Return the program of the fleet that runs: models that it has get no other replicas, new ones get any."""
        running = {name for pool in self.running.pools for name in pool.columns}
        problem = with_services(self.problem, table)
        return replace(
            problem,
            columns=tuple(c for c in problem.columns if c.name in running or c.model not in self.running.models),
            kept=self.running.kept(max(scale, 1.0), None),
        )

    def _changed(self, best: Fleet, most: float, reasons: tuple[str, ...]) -> Preference:
        """Return the fleet with the fewest changes that costs no more than `most`, or the best one where that is out of reach.

        Replicas as both fleets have them come first: the best fleet is one of those. Then all others are tried, or proven
        not to change less.
        """
        if not self.running.pools:
            return Preference("not_possible", best, reasons)
        table = best.found.table
        kept = self.running.kept(max(best.solution.cost, 1.0), most)
        problem = replace(with_services(self.problem, table), kept=kept)
        known = {name for pool in self.running.pools for name in pool.columns} | best.solution.replicas.keys()
        few = replace(problem, columns=tuple(c for c in problem.columns if c.name in known))
        first = self._settled(few, table, best.solution.bound)
        if isinstance(first, Missed):
            return Preference("not_possible", best, (*reasons, CUT_SHORT if first.is_cut_short else TOO_FAR))
        if len(problem.columns) > MOST_COLUMNS or len(problem.rules) > MOST_MODELS_WHOLE:
            return Preference("changed", first, (*reasons, TOO_LARGE))
        if self.limits.is_over:
            return Preference("changed", first, (*reasons, NOT_FEWEST))
        second = self._settled(problem, table, best.solution.bound, first.changes)
        if isinstance(second, Fleet):
            return Preference("changed", second, reasons if second.is_fewest else (*reasons, NOT_FEWEST))
        return Preference("changed", first, (*reasons, NOT_FEWEST) if second.is_cut_short else reasons)

    def _settled(
        self, problem: FleetProblem, table: CandidateTable, bound: float, fewer_than: int | None = None
    ) -> Fleet | Missed:
        """Return the fleet of fewest changes whose pools hold at the mix they get, or what the first one found misses."""
        missed: tuple[Broken, ...] = ()
        for _ in range(MOST_ROUNDS):
            found = closest(problem, bound, self.limits, Rating(table, self.constants), fewer_than)
            if not isinstance(found, Closest):
                return Missed(missed, isinstance(found, Unsolved))
            settled = settle(table, found.problem, found.solution, self.constants)
            if isinstance(settled, Settled):
                return Fleet(settled, found.packing, found.changes, found.is_fewest)
            pools = pools_by_model(pool_loads(table, found.solution))
            loads = {model: [load for _, load in own] for model, own in pools.items()}
            missed = missed or misses(table, loads, self.constants)
            table = settled.table
            problem = with_services(found.problem, table)
        return Missed(missed, is_cut_short=True)

    def _dearer(self, kept: Fleet, best: Fleet) -> str:
        """Say what the fleet that runs costs more than the best one, in the unit of the objective."""
        more = kept.solution.cost - best.solution.cost
        share = percent(more / best.solution.cost) if best.solution.cost > 0.0 else "infinitely"
        what = f"counts {share} more {self.spec.planning.objective} than the best fleet"
        if self.spec.planning.objective == "cost":
            usd, more_usd = kept.usd_per_h, kept.usd_per_h - best.usd_per_h
            what = f"costs ${usd:,.2f} per hour, ${more_usd:,.2f} ({share}) more than the best fleet"
        return f"the fleet as it was {what}; {percent(self.stay_within)} is allowed"
