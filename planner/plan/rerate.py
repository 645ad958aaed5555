"""Lower the capacity of candidates that miss a limit at the mix they really got, so that the next solve avoids it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.candidates.types import Candidate, CandidateTable, Service
from planner.physics.constants import SpeedConstants
from planner.plan.assess import PoolLoad, assess, largest_share
from planner.plan.pools import PoolDraft

LEAST_CUT = 0.995  # every correction takes at least this much, so that rounds end


def corrections(
    table: CandidateTable, drafts: Sequence[PoolDraft], degraded: Sequence[PoolLoad], constants: SpeedConstants
) -> dict[str, float]:
    """Return, by shape and batch cap, the share of its rated capacity that a pool can bear at its mix; none when all hold.

    `degraded` are the loads of pools while some other one has lost its spares.
    """
    cuts: dict[str, float] = {}
    loads = [(d.candidate, d.load) for d in drafts]
    by_pool = {d.load.name: d.candidate for d in drafts}
    loads += [(by_pool[load.name], load) for load in degraded]
    for model in table.models.values():
        own = [(c, load) for c, load in loads if c.shape.model == model.name]
        states = assess(model, table.workloads, [load for _, load in own], constants)
        for (candidate, load), state in zip(own, states, strict=True):
            if not state.holds(table.workloads):
                share = min(LEAST_CUT, largest_share(model, table.workloads, load, constants))
                cuts[candidate.name] = min(cuts.get(candidate.name, 1.0), share)
    return cuts


def corrected(table: CandidateTable, cuts: Mapping[str, float]) -> CandidateTable:
    """Return the table with the capacity of some candidates cut to a share; capacities only fall."""
    candidates = tuple(_cut(c, cuts[c.name]) if c.name in cuts else c for c in table.candidates)
    return replace(table, candidates=candidates)


def _cut(candidate: Candidate, share: float) -> Candidate:
    services = {w: _slower(s, share) for w, s in candidate.services.items()} if share > 0.0 else {}
    return replace(candidate, services=services)


def _slower(service: Service, share: float) -> Service:
    return replace(service, busy_s=service.busy_s / share)
