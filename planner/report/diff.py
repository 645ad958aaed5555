"""How two plans differ, as parts of a report: the change in cost first, then what caused it, hardware, margins, policies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.diagnostics import Span
from planner.policy.edits import PolicyEdit
from planner.report import figures
from planner.report.content import Block, Lines, Table, numbers, texts
from planner.report.diagnostics.github import MOST_ANNOTATIONS, NOTICE, annotation
from planner.report.explain import signed
from planner.report.markdown import render_blocks
from planner.report.policy_edits import edits_table
from planner.report.sections.infeasible import infeasible
from planner.report.sections.policies import limit_and_actual, policy_table
from planner.report.sections.workloads import metric_name
from planner.report.verify import then_now
from planner.review.difference import (
    Cause,
    Difference,
    Kind,
    LimitChange,
    NodeChange,
    PoolChange,
    WorkloadChange,
)
from planner.review.verification import Place

MOST_KEYS = 3
VISIBLE_USD = 0.5
MARKS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~", "unchanged": ""}
KEY = "+ added, ~ changed, - removed. Why: the changes above, by number where they are many; indirect: none is about this model or its workloads."
_ORDER = (
    "Changes are taken one after the other, in this order, with the fleet so far preferred; another order may share the "
    "difference out otherwise. Fleets in between are proven within 1 % or the gap of the spec."
)
_UNTAKEN = (
    "What both plans say of themselves: the specs of both sides are not at hand, so no change is taken by itself."
)
_LOOSER = "A policy that a change loosens or removes, and a waiver that it adds, count once the change is merged."


def blocks(found: Difference, edits: Sequence[PolicyEdit] = ()) -> list[Block]:
    """Return the difference in cost first, edits of policies last; sections without any difference are left out."""
    parts: list[Block | None] = [Lines(sentence(found), tuple(_notes(found)))]
    if found.infeasible is not None:
        parts += infeasible(found.infeasible, None)
    parts.append(_causes(found))
    if found.new.usd_per_month is not None:
        fleet = (_pools(found), _nodes(found.nodes), _workloads(found.workloads), _margins(found.workloads))
        parts += [*fleet, policy_table("Policies", found.policies)]
    parts.append(_edits(edits))
    return [part for part in parts if part is not None]


def sentence(found: Difference) -> str:
    """Return the change in monthly cost as one sentence."""
    fleet, old, new = figures.visible(found.fleet), found.old.usd_per_month, found.new.usd_per_month
    if new is None and found.new.status != "infeasible":
        return f"{fleet}: a limit was reached before any fleet was found for the new spec"
    if new is None:
        return f"{fleet}: no fleet meets {'the new spec' if old is not None else 'either spec'}"
    if old is None or found.usd_per_month_delta is None:
        return f"{fleet}: monthly cost {figures.usd(new)}; there was no fleet before"
    delta = found.usd_per_month_delta
    if abs(delta) < 0.005:
        return f"{fleet}: monthly cost unchanged: {figures.usd(new)}"
    share = "" if found.usd_share_delta is None else f" ({100.0 * found.usd_share_delta:+.1f} %)"
    way = "up" if delta > 0.0 else "down"
    return f"{fleet}: monthly cost {way} {figures.usd(abs(delta))}{share}: {figures.usd(old)} -> {figures.usd(new)}"


def markdown(found: Difference, edits: Sequence[PolicyEdit] = ()) -> str:
    """Return a comparison as Markdown for a comment, found again by its hidden first line."""
    return f"{marker(found)}\n\n{render_blocks(blocks(found, edits))}"


def marker(found: Difference) -> str:
    """Return the line by which a comment on the same fleet is found again, whatever it says then."""
    name = hashlib.sha256(f"{found.fleet}\0{found.new.label}".encode()).hexdigest()[:16]
    return f"<!-- planner diff {name} -->"


def github(found: Difference) -> str:
    """Return a comparison as annotations: the cost, the changes at their lines, and policies that are broken."""
    lines = [annotation("error" if found.new.usd_per_month is None else NOTICE, sentence(found), "planner diff")]
    lines += [
        annotation(NOTICE, f"{_change(c)}: {_effect(found, c)}", "planner diff", _span(c.place)) for c in found.causes
    ][: MOST_ANNOTATIONS - 1]
    for policy in found.policies:
        if policy.outcome in ("deny", "warn"):
            limit, actual = limit_and_actual(policy)
            kind = "error" if policy.outcome == "deny" else "warning"
            where = f" (policy of {policy.file})" if policy.file is not None else ""
            text = f"{policy.id}: {policy.rule} is {actual}, the limit {limit}{where}"
            lines.append(annotation(kind, text, "policy"))
    return "".join(f"{line}\n" for line in lines)


def _span(place: Place | None) -> Span | None:
    return None if place is None else Span(place.path, place.line, place.column, place.end_column)


def _notes(found: Difference) -> Iterator[str]:
    for policy in found.policies:
        if policy.outcome == "deny":
            limit, actual = limit_and_actual(policy)
            yield f"A policy denies it: {figures.visible(policy.id)}, {actual} where {limit} is the limit."
    yield from _ahead(found)
    if not found.changed:
        yield "Neither fleet, cost, demand nor latency limits differ."
    elif all(p.kind == "unchanged" for p in found.pools) and found.pools:
        yield "The fleet of the first step is the same." if found.new.horizon_months else "The fleet is the same."
    if found.is_within_gap:
        yield "The proofs of both plans leave room for the whole difference."
    if found.new.usd_per_month is not None:
        yield f"GPUs in use {then_now(found.old.gpus, found.new.gpus, figures.number)}; old: {_side(found.old.label)}, new: {_side(found.new.label)}."
    if found.new.status == "unproven" and found.new.gap is not None:
        yield f"The new fleet is not proven: at most {figures.gap(found.new.gap)} from the best."
    if found.unsolved is not None:
        yield f"{figures.visible(found.unsolved)}."
    if found.idle_usd_per_month_delta and abs(found.idle_usd_per_month_delta) >= VISIBLE_USD:
        yield f"Of the difference, {signed(found.idle_usd_per_month_delta)} is of committed nodes that hold nothing: no pool or workload pays for it."
    yield from _preferred(found)


def _ahead(found: Difference) -> Iterator[str]:
    """Say what the months ahead cost, where demand grows on either side; the rest of a comparison is of the fleets of today."""
    sides = [(s.usd_over_horizon, s.horizon_months) for s in (found.old, found.new)]
    if all(usd is None for usd, _ in sides):
        return
    old, new = ("none planned" if usd is None else f"{figures.usd(usd)} over {months} months" for usd, months in sides)
    yield f"Months ahead: {old if old == new else f'{old} -> {new}'}. All else is of the first step."


def _preferred(found: Difference) -> Iterator[str]:
    kept = found.preferred
    if kept is None or found.new.usd_per_month is None:
        return
    if kept.outcome == "kept" and kept.would_save_usd_per_hour:
        saving = f"{figures.usd(kept.would_save_usd_per_hour)} per hour"
        yield f"The old fleet still holds and is kept: the best one would save {saving}, less than {figures.share(kept.stay_within)}."
    elif kept.outcome == "kept" and all(pool.kind == "unchanged" for pool in found.pools):
        yield "The old fleet still holds and is kept."
    elif kept.outcome == "kept":
        yield "What is still asked for of the old fleet holds and is kept."
    elif kept.reasons:
        yield f"The old fleet is not kept: {figures.visible(kept.reasons[0])}."


def _side(label: str) -> str:
    return figures.visible(label)


def _causes(found: Difference) -> Block | None:
    if not found.causes:
        return None
    columns = numbers("#") + texts("Change", "From", "To", "Where") + numbers("$/month")
    rows = tuple(_cause_row(found, cause) for cause in found.causes)
    return Table("What changed", columns, rows, _order(found))


def _order(found: Difference) -> tuple[str, ...]:
    if not found.steps:
        return (_UNTAKEN,)
    return (_ORDER,) if len(found.steps) > 1 else ()


def _cause_row(found: Difference, cause: Cause) -> tuple[str, ...]:
    where = "" if cause.place is None else f"{cause.place.path}:{cause.place.line}"
    return (
        str(cause.number),
        figures.visible(cause.key),
        "-" if cause.from_ is None else _text(cause.from_),
        "-" if cause.to is None else _text(cause.to),
        figures.visible(where or (f"{cause.kind} in {cause.where}" if cause.where else cause.kind)),
        _effect(found, cause),
    )


def _text(value: str) -> str:
    return figures.visible(value[:19] if value.startswith("sha256:") else value)


def _effect(found: Difference, cause: Cause) -> str:
    """Return what a cause does to the cost, those of one step together."""
    step = next((s for s in found.steps if s.number == cause.step), None)
    if step is None:
        return "-"
    together = [c.number for c in found.causes if c.step == cause.step]
    if cause.number != together[0]:
        return f"with {together[0]}"
    if step.outcome in ("no-fleet", "unsolved"):
        first = next(s.number for s in found.steps if s.outcome == step.outcome)
        return ("no fleet" if step.outcome == "no-fleet" else "not found") if step.number == first else "-"
    if step.usd_per_month_delta is None:
        return "a fleet again"
    if abs(step.usd_per_month_delta) < 0.005 and abs(step.usd_over_horizon_delta or 0.0) >= 0.005:
        return f"{signed(step.usd_over_horizon_delta or 0.0)} over all months"
    if abs(step.usd_per_month_delta) < 0.005:
        return "same cost" if step.changes_fleet else "no effect"
    return signed(step.usd_per_month_delta)


def _pools(found: Difference) -> Block | None:
    rows = tuple(_pool_row(found, pool) for pool in found.pools if pool.kind != "unchanged")
    if not rows:
        return None
    columns = texts("", "Model", "Shape") + numbers("Replicas", "Spare", "GPUs", "Batch cap", "$/month", "Difference")
    same = sum(p.kind == "unchanged" for p in found.pools)
    return Table("Pools", (*columns, *texts("Placed", "Why")), rows, (f"{KEY} {same} unchanged.",))


def _pool_row(found: Difference, pool: PoolChange) -> tuple[str, ...]:
    old, new = pool.old, pool.new
    return (
        MARKS[pool.kind],
        figures.visible(pool.model),
        figures.visible(f"{pool.shape}{' (spot)' if pool.spot else ''}"),
        then_now(old, new, lambda s: by_period(s.replicas, s.replicas_by_period)),
        then_now(old, new, lambda s: "/".join(map(str, s.spare_replicas))),
        then_now(old, new, lambda s: f"{s.gpus:,}"),
        then_now(old, new, lambda s: "/".join(map(str, s.max_num_seqs))),
        then_now(old, new, lambda s: figures.amount(s.usd_per_month)),
        signed(pool.usd_per_month_delta),
        then_now(old, new, lambda s: figures.visible(", ".join(s.placement))),
        _why(found, pool),
    )


def by_period(most: int, counts: Mapping[str, int]) -> str:
    """Return a count with those of the periods, where they are not all the same: `4 (peak 4, p2 2)`."""
    if len(set(counts.values())) < 2:
        return f"{most:,}"
    return f"{most:,} ({', '.join(f'{figures.visible(name)} {count:,}' for name, count in counts.items())})"


def _why(found: Difference, pool: PoolChange) -> str:
    """Return the changes that a pool comes from: by name where they are few."""
    own = [c for c in found.causes if c.number in pool.causes]
    if not own:
        return "-"
    mark = "" if pool.is_direct else "indirect: "
    if len(found.causes) <= MOST_KEYS:
        return mark + "; ".join(figures.visible(_change(c)) for c in own)
    return mark + ", ".join(str(c.number) for c in own)


def _change(cause: Cause) -> str:
    name = f"price of {cause.key}" if cause.kind == "price" else cause.key
    if cause.from_ is None or cause.to is None:
        word, value = ("added", cause.to) if cause.from_ is None else ("removed", cause.from_)
        return f"{name} {_text(value or '')} {word}"
    return f"{name} {_text(cause.from_)} -> {_text(cause.to)}"


def _nodes(nodes: Sequence[NodeChange]) -> Block | None:
    rows = tuple(_node_row(n) for n in nodes if n.kind != "unchanged")
    if not rows:
        return None
    columns = texts("", "Offer") + numbers("Nodes", "$/node/h", "Difference $/month")
    return Table("Nodes to buy", columns, rows)


def _node_row(node: NodeChange) -> tuple[str, ...]:
    return (
        MARKS[node.kind],
        figures.visible(node.offer),
        then_now(
            by_period(node.old_nodes, node.old_nodes_by_period),
            by_period(node.new_nodes, node.new_nodes_by_period),
            str,
        ),
        then_now(node.old_usd_per_node_hour, node.new_usd_per_node_hour, figures.amount),
        signed(node.usd_per_month_delta),
    )


def _workloads(workloads: Sequence[WorkloadChange]) -> Block | None:
    if not workloads:
        return None
    columns = texts("", "Workload", "Model") + numbers("Demand", "Holds to", "$/month")
    return Table("Workloads", columns, tuple(_workload_row(w) for w in workloads))


def _workload_row(workload: WorkloadChange) -> tuple[str, ...]:
    return (
        MARKS[workload.kind],
        figures.visible(workload.name),
        figures.visible(workload.model),
        then_now(workload.old_demand_requests_per_s, workload.new_demand_requests_per_s, figures.number),
        then_now(workload.old_holds_to_requests_per_s, workload.new_holds_to_requests_per_s, figures.number),
        then_now(workload.old_usd_per_month, workload.new_usd_per_month, figures.amount),
    )


def _margins(workloads: Sequence[WorkloadChange]) -> Block | None:
    rows = tuple(_margin_row(w, limit) for w in workloads for limit in w.slo)
    if not rows:
        return None
    return Table("Latency margins", texts("Workload", "Limit on") + numbers("Predicted", "Limit", "Margin"), rows)


def _margin_row(workload: WorkloadChange, limit: LimitChange) -> tuple[str, ...]:
    return (
        figures.visible(workload.name),
        metric_name(figures.visible(limit.metric)),
        then_now(limit.old_predicted_s, limit.new_predicted_s, figures.seconds),
        then_now(limit.old_limit_s, limit.new_limit_s, figures.seconds),
        then_now(limit.old_margin, limit.new_margin, figures.share),
    )


def _edits(edits: Sequence[PolicyEdit]) -> Block | None:
    table = edits_table(edits)
    if table is None or not any(edit.loosens for edit in edits):
        return table
    return replace(table, notes=(_LOOSER,))
