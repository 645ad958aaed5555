"""Levels and bands: what measurements of one combination say about it, and how far predictions of unseen sources are off."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from planner.physics.bands import CLASSES, OWN, OWN_ROWS, PUBLISHED, Coverage, CoverageRow, provenance_of
from planner.physics.constants import Combination
from planner.validation.speed_fit import Fit, group_weight, left_out
from planner.validation.speed_predict import Array, Index
from planner.validation.speed_rows import SpeedRow
from planner.validation.speed_targets import RATES

LEVELLED = frozenset(
    {
        "output_tok_s_offline",
        "output_tok_s_closed_loop",
        "tpot_ms",
        "static_latency",
        "decode_tok_s_batch1",
        "mlperf_offline",
    }
)
"""Metrics that tell how long steps take; time to first token tells as much about queues."""
FIRST = frozenset({"ttft_ms"})
SHRINKAGE = 1.0
"""Rows that the prior of no correction counts as: one row moves its combination half of the way."""
MOST_ROWS = 5
LEAST_CLASS_ROWS = 50
FALLBACK = {"throughput": {"p80": 2.5, "p95": 4.0}, "ttft": {"p80": 4.0, "p95": 15.0}}
"""Least band where nothing comparable was measured, from a study of the same form: few rows tell it."""


@dataclass(frozen=True, slots=True)
class Level:
    """Logarithm of the factor on step times of one combination, with the rows and sources behind it."""

    log_time: float
    rows: int
    sources: tuple[str, ...]


def time_residuals(rows: Sequence[SpeedRow], residuals: Array) -> Array:
    """Return log(measured time / predicted time) for every row, also where a rate was measured."""
    signs = np.array([1.0 if row.target.statistic in RATES else -1.0 for row in rows])
    return np.asarray(signs * residuals, dtype=np.float64)


def levels(rows: Sequence[SpeedRow], residuals: Array, within: Sequence[bool]) -> dict[Combination, Level]:
    """Return the level of every combination that rows `within` tell: a shrunken mean over medians by source and metric."""
    late = time_residuals(rows, residuals)
    groups: dict[Combination, dict[tuple[str, str], list[float]]] = {}
    for row, value, inside in zip(rows, late.tolist(), within, strict=True):
        if inside and row.target.name in LEVELLED:
            groups.setdefault(row.combination, {}).setdefault((row.source, row.target.name), []).append(value)
    return {combination: _level(own) for combination, own in sorted(groups.items())}


def _level(own: Mapping[tuple[str, str], Sequence[float]]) -> Level:
    counted = sum(min(len(values), MOST_ROWS) for values in own.values())
    mean = sum(median(values) for values in own.values()) / len(own)
    sources = tuple(sorted({source for source, _ in own}))
    return Level(mean * counted / (counted + SHRINKAGE), sum(len(v) for v in own.values()), sources)


def corrected(rows: Sequence[SpeedRow], residuals: Array, known: Mapping[Combination, Level]) -> Array:
    """Return residuals with the levels applied. To first order: a level scales all steps."""
    shifts = [known[r.combination].log_time if r.combination in known else 0.0 for r in rows]
    signs = [1.0 if row.target.statistic in RATES else -1.0 for row in rows]
    return np.asarray(residuals - np.array(signs) * np.array(shifts), dtype=np.float64)


@dataclass(frozen=True)
class LeftOut:
    """Residuals of every row when its source was left out, with levels of the others; line of the bands as it was then."""

    residuals: Array
    lines: tuple[str, ...]


def leave_sources_out(found: Fit) -> LeftOut:
    """Predict every source with constants and levels that saw nothing of it."""
    rows = found.problem.batch.rows
    residuals = np.zeros(len(rows))
    lines = [""] * len(rows)
    for source in sorted({row.source for row in rows}):
        inside = [row.source != source for row in rows]
        out: Index = np.flatnonzero(~np.array(inside))
        without = left_out(found, out)
        residuals[out] = corrected(rows, without, levels(rows, without, inside))[out]
        known = coverage([row for row, kept in zip(rows, inside, strict=True) if kept], found.problem.generation_of)
        for index in out.tolist():
            lines[index] = line_of(rows[index], known, found.problem.generation_of)
    return LeftOut(residuals, tuple(lines))


def coverage(rows: Sequence[SpeedRow], generation_of: Mapping[str, str]) -> Coverage:
    """Return what was measured, by combination."""
    counts = Counter(
        (r.device.name, r.device.architecture_class, generation_of[r.engine.name], r.engine.name, r.family, r.weights)
        for r in rows
    )
    return Coverage(tuple(CoverageRow(*key, n, True) for key, n in sorted(counts.items())))


def line_of(row: SpeedRow, known: Coverage, generation_of: Mapping[str, str]) -> str:
    """Return the line of the table of bands that a row is judged by."""
    generation = generation_of[row.engine.name]
    return provenance_of(known, row.combination, row.device.architecture_class, generation).line


def bands(rows: Sequence[SpeedRow], out: LeftOut) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by line and metric, the factors that 80 and 95 % of rows of unseen sources stay within.

    Errors of one source on one GPU go together, so such a group of n rows counts n^0.3, as in the fit. A line that hardly any row tells lies between its neighbours, and no line is narrower than a stronger one. Levels say
    nothing about the time to first token, so that class A is one there; C and D are one as few sources tell either.
    """
    steps = {line: _sizes(rows, out, LEVELLED, {line}) for line in (PUBLISHED, *CLASSES)}
    weak = _sizes(rows, out, FIRST, {"C", "D"})
    first = {"B": _sizes(rows, out, FIRST, {"B"}), "C": weak, "D": weak}
    known = _sizes(rows, out, FIRST, {PUBLISHED, CLASSES[0]})
    widths = {
        "throughput": _ordered({OWN: own_sizes(rows, out), **steps}, FALLBACK["throughput"]),
        "ttft": _ordered({OWN: known, PUBLISHED: known, CLASSES[0]: known, **first}, FALLBACK["ttft"]),
    }
    return {line: {metric: of[line] for metric, of in widths.items()} for line in widths["ttft"]}


Group = list[float]
"""How far the rows of one source on one GPU, or of one combination of it, are off: sizes of logarithms."""


def own_sizes(rows: Sequence[SpeedRow], out: LeftOut) -> list[Group]:
    """Return how far rows of an unseen source are off once `OWN_ROWS` of their combination, spread over it, made a level."""
    late = time_residuals(rows, out.residuals)
    groups: dict[tuple[str, Combination], list[float]] = {}
    for row, value in zip(rows, late.tolist(), strict=True):
        if row.target.name in LEVELLED:
            groups.setdefault((row.source, row.combination), []).append(value)
    found: list[Group] = []
    for values in groups.values():
        picked = {int((k + 0.5) * len(values) / OWN_ROWS) for k in range(OWN_ROWS)}
        if len(values) > len(picked) == OWN_ROWS:
            level = median(values[i] for i in picked) * OWN_ROWS / (OWN_ROWS + SHRINKAGE)
            found.append([abs(value - level) for i, value in enumerate(values) if i not in picked])
    return found


def _sizes(rows: Sequence[SpeedRow], out: LeftOut, metrics: frozenset[str], lines: set[str]) -> list[Group]:
    groups: dict[tuple[str, str], Group] = {}
    for row, residual, line in zip(rows, out.residuals.tolist(), out.lines, strict=True):
        if row.target.name in metrics and line in lines:
            groups.setdefault((row.source, row.gpu), []).append(abs(residual))
    return list(groups.values())


def _ordered(groups: Mapping[str, Sequence[Group]], fallback: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return a width for every line, none narrower than the one before; the last is at least the fallback."""
    told = {line: _width(of) for line, of in groups.items()}
    last = list(groups)[-1]
    told[last] = {key: max(value, (told[last] or {}).get(key, 0.0)) for key, value in fallback.items()}
    before = {"p80": 1.0, "p95": 1.0}
    found: dict[str, dict[str, float]] = {}
    for position, line in enumerate(groups):
        weaker = next(width for later in list(groups)[position:] if (width := told[later]) is not None)
        own = told[line] or {key: _up(math.sqrt(before[key] * weaker[key])) for key in weaker}
        before = {key: max(own[key], before[key]) for key in own}
        found[line] = dict(before)
    return found


def _width(groups: Sequence[Group]) -> dict[str, float] | None:
    sizes = np.array([size for of in groups for size in of])
    if sizes.size < LEAST_CLASS_ROWS:
        return None
    counted = np.array([group_weight(len(of)) for of in groups for _ in of])
    quantiles = np.quantile(sizes, (0.80, 0.95), weights=counted, method="inverted_cdf")
    return {key: _up(math.exp(size)) for key, size in zip(("p80", "p95"), quantiles.tolist(), strict=True)}


def _up(value: float) -> float:
    """Round up to two decimals, so that a band never covers less than it says."""
    return math.ceil(value * 100.0 - 1e-9) / 100.0
