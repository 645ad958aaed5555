"""Compare two plans, and name what made them differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from planner.pipeline import Options, Prepared, make_plan, spec_digest
from planner.plan.schema import Plan, PolicyResult
from planner.policy import PlacedPolicy, PlanFacts, both_sides, edits, evaluate, placed
from planner.policy.edits import PolicyEdit
from planner.review.compare import ahead_differs, differ, node_changes, pool_changes, workload_changes
from planner.review.difference import Cause, Difference, PolicyEditRecord, PoolChange, SideSummary, WorkloadChange
from planner.review.inputs import (
    OtherChange,
    SpecChange,
    SpecPair,
    catalog_changes,
    reversed_change,
    unknown_catalog,
)
from planner.review.steps import MOST_STEPS, Taken, Tell, groups_of, options_for, quietly, taken_steps
from planner.review.verify import place_of
from planner.spec import FleetSpec

AS_OF = "planning.as_of"


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the plan, and the spec and catalog it is from, None where these are not at hand."""

    label: str
    plan: Plan
    prepared: Prepared | None = None

    @property
    def has_own_spec(self) -> bool:
        """Tell whether the spec at hand is the one that the plan was made from."""
        return self.prepared is not None and spec_digest(self.prepared.loaded) == self.plan.digests.spec


def planned_side(label: str, prepared: Prepared, options: Options, old: Side | None = None) -> Side:
    """Plan a spec for one side, the fleet of the old side preferred where there is one. Raises what `make_plan` raises."""
    if old is not None and _shares_models(old.plan, prepared.spec):
        options = options_for(options, old.plan, old.label, options.gap, prepared)
    return Side(label, make_plan(prepared, options), prepared)


def compare(
    old: Side,
    new: Side,
    options: Options,
    earlier: Sequence[PlacedPolicy] = (),
    *,
    explains: bool = True,
    tell: Tell = quietly,
) -> Difference:
    """Return how the plan of one side differs from that of the other, judged by the policies of both.

    With `explains`, and the specs of both sides at hand, every cause is taken by itself to see what it does. The policies
    of `options` count beside those of the specs, and `earlier` ones, those of the same files as they were on the old side.
    """
    steps = _steps(old, new, options, explains, tell)
    causes = _causes(steps) if _has_specs(old, new) else _listed(old, new)
    workloads = _workloads(workload_changes(old.plan, new.plan), causes)
    before, after = old.plan.objective, new.plan.objective
    delta = None if before is None or after is None else after.usd_per_month - before.usd_per_month
    gaps = sum(o.gap * o.usd_per_month for o in (before, after) if o is not None)
    pools = _pools(pool_changes(old.plan, new.plan), causes, steps, _models_of(old, new))
    nodes = node_changes(old.plan, new.plan)
    kinds = {*(p.kind for p in pools), *(n.kind for n in nodes), *(w.kind for w in workloads)}
    return Difference(
        fleet=new.plan.fleet,
        changed=bool(kinds - {"unchanged"})
        or old.plan.status != new.plan.status
        or ahead_differs(old.plan, new.plan)
        or (delta is not None and differ(delta, 0.0)),
        old=_summary(old),
        new=_summary(new),
        idle_usd_per_month_delta=None
        if before is None or after is None
        else after.idle_committed_usd_per_month - before.idle_committed_usd_per_month,
        usd_per_month_delta=delta,
        usd_share_delta=delta / before.usd_per_month
        if delta is not None and before is not None and before.usd_per_month > 0.0
        else None,
        is_within_gap=delta is not None and differ(delta, 0.0) and abs(delta) <= gaps,
        causes=causes,
        steps=tuple(taken.step for taken in steps),
        pools=pools,
        nodes=nodes,
        workloads=workloads,
        policies=_judged(old, new, options, earlier),
        policy_edits=tuple(_edit(each) for each in policy_edits(old, new, options, earlier)),
        preferred=new.plan.preferred,
        infeasible=new.plan.infeasible,
        unsolved=new.plan.unsolved,
    )


def _shares_models(plan: Plan, spec: FleetSpec) -> bool:
    return bool({p.model for p in plan.pools} & {w.model for w in spec.workloads.values()})


def _summary(side: Side) -> SideSummary:
    plan = side.plan
    cost = plan.objective
    return SideSummary(
        label=side.label,
        status=plan.status,
        as_of=plan.as_of,
        usd_per_hour=None if cost is None else cost.usd_per_hour,
        usd_per_month=None if cost is None else cost.usd_per_month,
        usd_over_horizon=None if plan.growth is None else plan.growth.usd,
        horizon_months=None if plan.growth is None else plan.growth.horizon_months,
        gap=None if cost is None else cost.gap,
        gpus=sum(p.gpus for p in plan.pools),
        spec_digest=plan.digests.spec,
        catalog_digest=plan.digests.catalog,
        planner=plan.versions.planner,
    )


def policy_edits(
    old: Side, new: Side, options: Options, earlier: Sequence[PlacedPolicy] = ()
) -> tuple[PolicyEdit, ...]:
    """Return what became of the policies from one spec to the other, where both are at hand, and of those of files."""
    own = edits(_policies(old, old.label), _policies(new)) if old.prepared and new.prepared else ()
    return (*own, *(edits(earlier, options.policies) if earlier else ()))


def _policies(side: Side, file: str | None = None) -> tuple[PlacedPolicy, ...]:
    return () if side.prepared is None else placed(side.prepared.spec.policies, file)


def _judged(old: Side, new: Side, options: Options, earlier: Sequence[PlacedPolicy]) -> tuple[PolicyResult, ...]:
    """Judge the new plan by the policies of both sides and of the options, the cost of the old one as its baseline.

    On the later day of both, so that a change cannot turn the clock back. Of a saved plan without its spec, the outcomes that
    it has are told, those of the old one as not evaluated.
    """
    if new.plan.objective is None:
        return ()
    saved = [] if new.prepared is not None else list(new.plan.policies)
    saved += [] if old.prepared is not None else [_unjudged(p, old.label) for p in old.plan.policies]
    at_hand = new.prepared or old.prepared
    if at_hand is None:
        return tuple(saved)
    before = old.plan.objective
    day = options.as_of or max(date.fromisoformat(side.plan.as_of) for side in (old, new))
    facts = PlanFacts(new.plan, at_hand.catalog, day, None if before is None else before.usd_per_month)
    owned = both_sides(earlier, options.policies)
    judged = evaluate((*both_sides(_policies(old, old.label), _policies(new)), *owned), facts)
    return (*judged, *saved)


def _unjudged(policy: PolicyResult, file: str) -> PolicyResult:
    return policy.model_copy(update={"outcome": "not_evaluated", "actual": None, "at": None, "file": file})


def _edit(edit: PolicyEdit) -> PolicyEditRecord:
    policy = edit.new or edit.old
    assert policy is not None
    return PolicyEditRecord(
        id=policy.policy.label,
        rule=policy.policy.rule,
        kind=edit.kind,
        parts=tuple(change.of for change in edit.changes),
        loosens=edit.loosens,
        tightens=edit.tightens,
        old_path=None if edit.old is None else edit.old.path,
        new_path=None if edit.new is None else edit.new.path,
    )


def _steps(old: Side, new: Side, options: Options, explains: bool, tell: Tell) -> list[Taken]:
    """Take the changes of spec and catalog one after the other, all at once where nothing is to be explained.

    None where a spec is not at hand or not that of its plan.
    """
    if old.prepared is None or new.prepared is None or not _has_specs(old, new):
        return []
    specs = SpecPair(old.prepared.loaded, new.prepared.loaded)
    around = [
        c for c in _circumstances(old, new) if not (c.kind == "date" and any(s.key == AS_OF for s in specs.changes))
    ]
    later = (reversed_change(c) for c in unknown_catalog(new.plan, new.prepared))
    unknown = (*unknown_catalog(old.plan, old.prepared), *later)
    other = [*around, *unknown, *catalog_changes(old.prepared, new.prepared.catalog)]
    sides = (specs, old.plan), (new.prepared.catalog, new.plan)
    return taken_steps(*sides, groups_of(other, specs.changes, MOST_STEPS if explains else 1), options, tell)


def _has_specs(old: Side, new: Side) -> bool:
    return old.has_own_spec and new.has_own_spec


def _causes(steps: Iterable[Taken]) -> tuple[Cause, ...]:
    found: list[Cause] = []
    for taken in steps:
        for change in taken.changes:
            found.append(_cause(len(found) + 1, change, taken.step.number))
    return tuple(found)


def _cause(number: int, change: SpecChange | OtherChange, step: int) -> Cause:
    kind, span, where = (
        (change.kind, None, change.where) if isinstance(change, OtherChange) else ("spec", change.span, None)
    )
    return Cause.model_validate(
        {
            "number": number,
            "kind": kind,
            "key": change.key,
            "names": change.names,
            "where": where,
            "from": change.old_text,
            "to": change.new_text,
            "place": place_of(span),
            "step": step,
        }
    )


def _listed(old: Side, new: Side) -> tuple[Cause, ...]:
    """Return what both plans say of demand, limits, prices, day and release, where the specs are not compared."""
    found: list[OtherChange] = []
    for w in workload_changes(old.plan, new.plan):
        demand = w.old_demand_requests_per_s, w.new_demand_requests_per_s
        if differ(*demand):
            found.append(_told(("workloads", w.name, "traffic"), *_figures(*demand, "req/s")))
        for limit in w.slo:
            limits = limit.old_limit_s, limit.new_limit_s
            if w.kind == "changed" and differ(*limits):
                found.append(_told(("workloads", w.name, "slo", limit.metric), *_figures(*limits, "s")))
    for node in node_changes(old.plan, new.plan):
        prices = node.old_usd_per_node_hour, node.new_usd_per_node_hour
        if None not in prices and differ(*prices):
            found.append(OtherChange("price", node.offer, *_figures(*prices, "USD per node hour")))
    before, after = old.plan.digests, new.plan.digests
    if before.catalog != after.catalog:
        found.append(OtherChange("catalog", "catalog", before.catalog, after.catalog))
    found += _circumstances(old, new)
    if before.spec != after.spec and not any(change.kind == "spec" for change in found):
        found.append(OtherChange("spec", "spec", before.spec, after.spec))
    causes = (_cause(number, change, 0) for number, change in enumerate(found, 1))
    return tuple(causes)


def _told(names: tuple[str, ...], old: str | None, new: str | None) -> OtherChange:
    """Return a change of a spec that only the plans tell of."""
    return OtherChange("spec", ".".join(names), old, new, names)


def _circumstances(old: Side, new: Side) -> Iterator[OtherChange]:
    """Yield the release and the day that the plans were made with, where these are others."""
    before, after = old.plan, new.plan
    if before.versions.planner != after.versions.planner:
        yield OtherChange("planner", "planner", before.versions.planner, after.versions.planner)
    if before.as_of != after.as_of:
        yield OtherChange("date", "as_of", before.as_of, after.as_of)


def _figures(old: float | None, new: float | None, unit: str) -> tuple[str | None, str | None]:
    return _figure(old, unit), _figure(new, unit)


def _figure(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:.6g} {unit}"


def _models_of(old: Side, new: Side) -> Mapping[str, frozenset[str]]:
    """Return the models that serve each workload, by its name, in either plan."""
    found: dict[str, set[str]] = {}
    for plan in (old.plan, new.plan):
        for workload in plan.workloads:
            found.setdefault(workload.name, set()).add(workload.model)
    return {name: frozenset(models) for name, models in found.items()}


def _pools(
    pools: Sequence[PoolChange], causes: Sequence[Cause], steps: Sequence[Taken], models: Mapping[str, frozenset[str]]
) -> tuple[PoolChange, ...]:
    """Return the pools with the causes of the steps in which they changed; without steps, of all that are about them."""
    touched = {
        taken.step.number: {
            (c.model, c.shape, c.spot) for c in pool_changes(taken.before, taken.after) if c.kind != "unchanged"
        }
        for taken in steps
    }
    found: list[PoolChange] = []
    for pool in pools:
        key = (pool.model, pool.shape, pool.spot)
        if pool.kind == "unchanged":
            found.append(pool)
            continue
        direct = [c.number for c in causes if _is_about(c, pool.model, models)]
        own = [c.number for c in causes if key in touched.get(c.step, set())] if steps else direct or _all(causes)
        update = {"causes": tuple(own), "is_direct": bool(set(own) & set(direct))}
        found.append(pool.model_copy(update=update))
    return tuple(found)


def _all(causes: Sequence[Cause]) -> list[int]:
    return [c.number for c in causes]


def _is_about(cause: Cause, model: str, models: Mapping[str, frozenset[str]]) -> bool:
    """Tell whether a cause is a key of a model or of a workload that it serves."""
    if cause.kind != "spec":
        return False
    section = cause.names[:2]
    if cause.names[:1] == ("defaults",) or section == ("models", model):
        return True
    return any(section == ("workloads", name) for name, own in models.items() if model in own)


def _workloads(workloads: Sequence[WorkloadChange], causes: Sequence[Cause]) -> tuple[WorkloadChange, ...]:
    """Return the workloads with the causes that are about them."""
    return tuple(
        w.model_copy(update={"causes": tuple(c.number for c in causes if c.names[:2] == ("workloads", w.name))})
        for w in workloads
    )
