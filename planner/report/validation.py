"""Errors of predictions against measurements as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.report.figures import count, number, share
from planner.report.rows import table
from planner.report.skips import place_data, skips_data, skips_lines
from planner.validation.fit import Fitted
from planner.validation.measured import GIB
from planner.validation.memory import METRICS, MemoryValidation, Metric, Scored, is_right
from planner.validation.skips import Skip, by_reason
from planner.validation.speed import Change, Missed, Readable, SpeedMetric, SpeedValidation

WORST_GROUPS = 6
NO_SOURCE = "(no source)"
LEAST_WORSE = 0.002
LINE_NAMES = {"own": "A, own rows", "published": "A, this combination published"}
"""How the parts of class A are called."""


def memory_data(found: MemoryValidation, crossed: MemoryValidation | None = None) -> dict[str, Any]:
    """Return the answer of `planner validate` for start-up logs. Errors are fractions."""
    data: dict[str, Any] = {
        "kind": "memory",
        "rows": found.rows,
        "scorable": found.scorable,
        "scored": len(found.scored),
        "skipped": found.skipped,
        "skipped_scorable": found.skipped_scorable,
        "left_out": skips_data(found.skips),
        "metrics": _metrics(found),
    }
    if crossed is not None:
        data["cross_validated"] = {"metrics": _metrics(crossed)}
    return data | {"worst": [row.case for row in found.worst], "details": [_detail(row) for row in found.scored]}


def _metrics(found: MemoryValidation) -> dict[str, Any]:
    metrics: dict[str, Any] = {name: _metric(found.metrics[name]) for name in METRICS}
    return metrics | {"outcome": {"rows": found.outcome_rows, "accuracy": found.outcome_accuracy}}


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "rows": metric.rows,
        "mean_of_group_medians": metric.mean_of_group_medians if metric.rows else None,
        "median_ape": metric.median_ape if metric.rows else None,
        "p90_ape": metric.p90_ape if metric.rows else None,
        "bias": metric.bias if metric.rows else None,
        "groups": [
            {
                "engine": g.engine,
                "arch_class": g.arch_class,
                "n": g.n,
                "median_ape": g.median_ape,
                "p90_ape": g.p90_ape,
                "bias": g.bias,
            }
            for g in metric.groups
        ],
    }


def _detail(row: Scored) -> dict[str, Any]:
    start, seen, budget = row.start, row.seen, row.budget
    return {
        "case_id": row.case,
        "engine": start.engine,
        "engine_version": start.version,
        "model": start.arch.name,
        "weights": start.weights,
        "kv_cache": start.kv,
        "gpu": start.device.name,
        "tensor_parallel": start.layout.tensor,
        "pipeline_parallel": start.layout.pipeline,
        "defaults": list(start.defaults),
        "predicted": {
            "weights_gib": budget.weights_bytes / GIB,
            "activations_gib": budget.activation_bytes / GIB,
            "runtime_gib": budget.runtime_bytes / GIB,
            "graphs_gib": budget.graph_bytes / GIB,
            "kv_gib": budget.kv_pool_bytes / GIB,
            "kv_tokens": budget.kv_tokens,
            "max_concurrency": budget.max_concurrency,
            "outcome": budget.outcome.value,
        },
        "measured": {
            "weights_gib": seen.weights_gib,
            "activations_gib": seen.activation_gib,
            "runtime_gib": seen.runtime_gib,
            "graphs_gib": seen.graphs_gib,
            "kv_gib": seen.kv_gib,
            "kv_tokens": seen.kv_tokens,
            "max_concurrency": seen.max_concurrency,
            "outcome": seen.outcome.value if seen.outcome else None,
        },
        "errors": dict(row.errors),
        "outcome_right": is_right(row),
        "furthest_part": row.off or None,
    }


def memory_text(found: MemoryValidation, crossed: MemoryValidation | None = None) -> list[str]:
    """Return the answer for people: errors, the worst groups, the worst rows with the part that is off, what was skipped."""
    scored = found.scorable - found.skipped_scorable
    lines = [f"{count(found.rows, 'start-up log')}: {found.scorable:,} scorable, {scored:,} scored"]
    measured = [name for name in METRICS if found.metrics[name].rows]
    lines += ["", *table([_summary(name, found, crossed) for name in measured])] if measured else []
    if found.outcome_rows:
        right = f"Outcome right in {found.outcome_right} of {found.outcome_rows} ({share(found.outcome_accuracy)})"
        wrong = [row for row in found.scored if is_right(row) is False]
        lines += ["", right, *(f"  {row.case}: {_outcome(row)}" for row in wrong)]
    groups = [(name, g) for name in METRICS for g in found.metrics[name].groups]
    groups.sort(key=lambda item: (-item[1].median_ape, item[0], item[1].engine, item[1].arch_class))
    worst = (
        f"{g.engine} {g.arch_class}: {name} {share(g.median_ape)} over {count(g.n, 'row')}"
        for name, g in groups[:WORST_GROUPS]
    )
    lines += _section("Worst groups (median error)", worst)
    lines += _section("Worst rows", table([_worst(row) for row in found.worst]) if found.worst else ())
    return [*lines, *_section(f"Skipped: {count(len(found.skips), 'row')}", skips_lines(found.skips))]


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    """Return lines under their heading, nothing when there are none."""
    shown = [f"  {line}" for line in lines]
    return ["", heading, *shown] if shown else []


def _summary(name: str, found: MemoryValidation, crossed: MemoryValidation | None) -> Mapping[str, Any]:
    metric = found.metrics[name]
    row: dict[str, Any] = {
        "metric": name,
        "rows": metric.rows,
        "median_error": _percent(metric.median_ape),
        "p90_error": _percent(metric.p90_ape),
        "bias": _percent(metric.bias, signed=True),
    }
    if crossed is not None:
        other = crossed.metrics[name]
        row |= {"median_without_model": _percent(other.median_ape), "p90_without_model": _percent(other.p90_ape)}
    return row


def _percent(value: float, signed: bool = False) -> str:
    return f"{'+' if signed and value > 0 else ''}{number(100.0 * value)} %"


def _outcome(row: Scored) -> str:
    said = row.seen.outcome.value if row.seen.outcome else "nothing"
    return f"{row.start.arch.name} was {said}, predicted {row.budget.outcome.value}"


def _worst(row: Scored) -> Mapping[str, Any]:
    name = max(row.errors, key=lambda metric: abs(row.errors[metric]), default="")
    start = row.start
    return {
        "case": row.case,
        "engine": f"{start.engine} {start.version}",
        "model": start.arch.name,
        "gpu": start.device.name,
        "tp": start.layout.tensor,
        "metric": name,
        "error": _percent(row.errors[name], signed=True) if name else "",
        "furthest_part": row.off,
        "defaults": "; ".join(start.defaults),
    }


def fitted_rows(fitted: Sequence[Fitted]) -> list[dict[str, Any]]:
    """Return fitted constants beside those of the catalog; sizes in GiB, as the catalog states them."""
    return [
        {
            "engine": f.engine,
            "versions": f.versions,
            "constant": f.constant.replace("_bytes_", "_gib_") if _is_size(f) else f.constant,
            "catalog": f.catalog / GIB if _is_size(f) else f.catalog,
            "fitted": f.fitted / GIB if _is_size(f) else f.fitted,
            "logs": f.logs,
        }
        for f in fitted
    ]


def _is_size(fitted: Fitted) -> bool:
    return fitted.constant.startswith(("runtime_", "graph_"))


def speed_data(found: SpeedValidation, crossed: SpeedValidation | None = None) -> dict[str, Any]:
    """Return the answer of `planner validate` for speed measurements. Errors are fractions."""
    data: dict[str, Any] = {
        "kind": "speed",
        "rows": found.rows,
        "scorable": found.scorable,
        "scored": found.scored,
        "skipped": found.skipped,
        "skipped_scorable": found.skipped_scorable,
        "left_out": skips_data(found.skips),
        "metrics": {name: _speed_metric(metric) for name, metric in found.metrics.items()},
        "band_coverage": _coverage_data(found),
        "worst": [_missed_data(missed) for missed in found.worst],
    }
    if crossed is not None:
        metrics = {name: _speed_metric(metric) for name, metric in crossed.metrics.items()}
        data["cross_validated"] = {"metrics": metrics, "band_coverage": _coverage_data(crossed)}
    return data


def _missed_data(missed: Missed) -> dict[str, Any]:
    row = missed.row
    return {
        **place_data(row.place),
        "metric": row.target.name,
        "statistic": row.target.statistic,
        "source": row.source,
        "gpu": row.gpu,
        "model": row.arch.name,
        "error": missed.error,
    }


def _coverage_data(found: SpeedValidation) -> dict[str, Any]:
    return {
        name: {kind: {"rows": n, "coverage80": share_} for kind, (n, share_) in of.items()}
        for name, of in found.coverage.items()
    }


def _speed_metric(metric: SpeedMetric) -> dict[str, Any]:
    return {
        "rows": metric.rows,
        "mean_of_group_medians": metric.mean_of_group_medians,
        "modern_engines": {
            "groups": metric.modern_groups,
            "mean_of_group_medians": metric.modern_mean_of_group_medians,
        },
        "groups": [
            {
                "source": g.source,
                "gpu": g.gpu,
                "n": g.n,
                "median_ape": g.median_ape,
                "p90_ape": g.p90_ape,
                "bias": g.bias,
                "coverage80": g.coverage80,
                "rank_correlation": g.rank,
            }
            for g in metric.groups
        ],
    }


def speed_text(found: SpeedValidation, crossed: SpeedValidation | None = None) -> list[str]:
    """Return the answer for people: errors by metric, the worst groups, coverage of the bands, what was skipped."""
    rows = count(found.rows, "speed measurement")
    lines = [f"{rows}: {found.scorable:,} scorable, {found.scored:,} scored"]
    if found.metrics:
        lines += _section(
            "Mean over (source, GPU) groups of the median error; in brackets, engines of all generations",
            table([_speed_summary(name, found, crossed) for name in found.metrics]),
        )
    judged = crossed or found
    seen = "by sources left out" if crossed else "by the constants of the catalog"
    groups = [(name, g) for name, metric in judged.metrics.items() for g in metric.groups]
    groups.sort(key=lambda item: (-item[1].median_ape, item[0], item[1].source, item[1].gpu))
    worst = (
        f"{name} {g.source or NO_SOURCE}, {g.gpu}: {share(g.median_ape)} over {count(g.n, 'row')},"
        f" bias {_percent(g.bias, signed=True)}"
        for name, g in groups[:WORST_GROUPS]
    )
    lines += _section(f"Worst groups (median error, {seen})", worst)
    inside = (
        f"{LINE_NAMES.get(name, name)}: "
        + "; ".join(f"{kind} {share(part)} of {n:,}" for kind, (n, part) in of.items())
        for name, of in judged.coverage.items()
    )
    rows_off = table([_missed(missed) for missed in judged.worst]) if judged.worst else ()
    lines += _section(f"Worst rows ({seen})", rows_off)
    lines += _section(f"Rows inside the 80 % band of their class, {seen}{', bands as well' if crossed else ''}", inside)
    heading = f"Skipped: {count(len(found.skips), 'row')}, {found.skipped_scorable:,} of them scorable"
    return [*lines, *_section(heading, skips_lines(found.skips))]


def _missed(missed: Missed) -> Mapping[str, Any]:
    row = missed.row
    return {
        "metric": row.target.name,
        "statistic": row.target.statistic,
        "model": row.arch.name,
        "gpu": row.gpu,
        "engine": row.engine.name,
        "error": _percent(missed.error, signed=True),
        "row": row.place,
    }


def _speed_summary(name: str, found: SpeedValidation, crossed: SpeedValidation | None) -> Mapping[str, Any]:
    metric = found.metrics[name]
    row: dict[str, Any] = {"metric": name, "rows": metric.rows, "groups": len(metric.groups), "error": _two(metric)}
    if crossed is not None:
        row["source_left_out"] = _two(crossed.metrics[name]) if name in crossed.metrics else ""
    return row


def _two(metric: SpeedMetric) -> str:
    modern = metric.modern_mean_of_group_medians
    both = f"({_percent(metric.mean_of_group_medians)})"
    return both if modern is None else f"{_percent(modern)} {both}"


def calibration_data(
    name: str, full: bool, read: Readable, left: Sequence[Skip], changes: Sequence[Change]
) -> dict[str, Any]:
    """Return what a speed calibration changed, in sample. Errors are fractions; `left` counts rows scored but not fitted."""
    return {
        "kind": "speed",
        "name": name,
        "full": full,
        "rows": read.total,
        "used": len(read.rows),
        "skipped": by_reason(read.skips),
        "not_fitted": by_reason(left),
        "left_out": skips_data([*read.skips, *left]),
        "metrics": {
            c.metric: {"rows": c.rows, "median_ape_before": c.before, "median_ape_after": c.after} for c in changes
        },
    }


def calibration_text(
    name: str, full: bool, read: Readable, left: Sequence[Skip], changes: Sequence[Change]
) -> list[str]:
    """Return what a speed calibration changed for people."""
    what = "all constants" if full else "levels"
    rows = [
        {"metric": c.metric, "rows": c.rows, "median_error_before": _percent(c.before), "after": _percent(c.after)}
        for c in changes
    ]
    used = f"{len(read.rows):,} of {count(read.total, 'row')} used"
    lines = [f"{name}: {what}, {used}; errors in sample", *(f"  {line}" for line in table(rows))]
    worse = [c for c in changes if c.after > c.before + LEAST_WORSE]
    if worse:
        lines += [
            "",
            f"Worse than before: {', '.join(c.metric for c in worse)}. These rows disagree among themselves, most of all:",
            *(
                f"  {m.row.place}: {c.metric} {_percent(m.error, signed=True)} off afterwards"
                for c in worse
                for m in c.worst
            ),
        ]
    return lines + left_out_text([*read.skips, *left], "row")


def left_out_text(skips: Sequence[Skip], noun: str) -> list[str]:
    """Return how many rows or logs a calibration leaves out by reason, nothing when it uses all."""
    return _section(f"Left out: {count(len(skips), noun)}", skips_lines(skips))
