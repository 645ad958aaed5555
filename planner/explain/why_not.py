"""Why a plan does not use a shape or an offer: the rule that excludes it, or what the fleet would cost with it."""

from __future__ import annotations

from dataclasses import replace

from planner.candidates.types import Candidate, CandidateTable
from planner.explain.answer import Answer, difference
from planner.explain.named import Named, lost_name
from planner.explain.offers import AskedOffers
from planner.explain.trials import Trials
from planner.plan.pools import pool_shape
from planner.plan.schema import Plan, Pool
from planner.spec import FleetSpec


def answers_about(
    plan: Plan,
    spec: FleetSpec,
    table: CandidateTable,
    trials: Trials,
    wanted: Named,
    pool: Pool | None = None,
) -> list[Answer]:
    """Return why the shapes or offers named are not used, by model: the rule of each ruled out, then one plan with the others.

    With a pool, for its workloads alone. Nothing is solved where all of them are ruled out.
    """
    models = [pool.model] if pool is not None else list(table.models)
    asked = frozenset(pool.workloads if pool is not None else table.workloads)
    found = [a for a in ruled_out(table, wanted) if a.model in ("", *models) and a.workload in ("", *asked)]
    if wanted.offers:
        offers = tuple(o for o in table.supply.offers if o.name in wanted.offers)
        return [*AskedOffers(plan, spec, table, trials, wanted.name, offers).answers(models, asked), *found]
    for model in models:
        usable = [c for c in table.candidates if c.shape.model == model and c.shape.name in wanted.shapes]
        able = asked & {w for c in usable for w in c.services}
        if able:
            names = frozenset(c.shape.name for c in usable)
            meant = replace(wanted, name=min(names) if len(names) == 1 else wanted.name, shapes=names)
            found.append(_priced(plan, spec, table, trials, model, meant, able))
    return found


def ruled_out(table: CandidateTable, wanted: Named) -> list[Answer]:
    """Return what ruled out the shapes named, or the offer or GPU of that name; nothing is solved."""
    return [
        Answer(r.model, r.offer or r.shape or r.gpu, r.workload, r.rule, r.reason)
        for r in table.rejections
        if (r.shape in wanted.shapes if r.shape and r.model else lost_name(r) in wanted.others)
    ]


def _priced(
    plan: Plan, spec: FleetSpec, table: CandidateTable, trials: Trials, model: str, wanted: Named, asked: frozenset[str]
) -> Answer:
    """Plan the fleet with some workloads of a model on the shapes named alone, and compare it with the plan."""
    named = " and ".join(sorted(asked))
    users = [p for p in plan.pools if asked & set(p.workloads)]
    if all(pool_shape(p) in wanted.shapes for p in users):
        pools = ", ".join(p.name for p in users)
        return Answer(model, wanted.name, "", "chosen", f"the plan serves {named} on it: {pools}")
    found = trials.plan_on(spec, _restricted(table, model, wanted, asked))
    if found is None or found.objective is None or plan.objective is None:
        return Answer(
            model, wanted.name, "", "no-fleet", f"no fleet that serves {named} on it alone was found within all limits"
        )
    own = [p for p in found.pools if p.model == model and pool_shape(p) in wanted.shapes]
    replicas, gpus = sum(p.replicas for p in own), sum(p.gpus for p in own)
    short = " and ".join(dict.fromkeys(p.limited_by for p in own))
    reason = f"{named} on it alone: replicas {replicas}, GPUs {gpus}, short of {short}"
    cost = found.objective.usd_per_hour
    return Answer(model, wanted.name, "", "allowed", reason, cost, difference(cost, plan.objective.usd_per_hour))


def _restricted(table: CandidateTable, model: str, wanted: Named, workloads: frozenset[str]) -> CandidateTable:
    """Return a table in which only the shapes named serve some workloads of a model."""
    kept: list[Candidate] = []
    for candidate in table.candidates:
        services = candidate.services
        if candidate.shape.model == model and candidate.shape.name not in wanted.shapes:
            services = {w: s for w, s in services.items() if w not in workloads}
        if services:
            kept.append(replace(candidate, services=services))
    return replace(table, candidates=tuple(kept))
