"""Score the speed model against published measurements, and fit it again: what the commands call."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from planner.catalog import Catalog
from planner.catalog.calibration import OwnCalibration
from planner.physics.bands import LINES, Bands, Coverage
from planner.physics.constants import SpeedConstants
from planner.physics.memory import UnknownArchitecture, UnknownFormat
from planner.source import parse
from planner.validation.calibration_file import calibration_text
from planner.validation.cells import NotScored, Row
from planner.validation.memory import percentile
from planner.validation.skips import CountedRows, Repeats, Skip, skip
from planner.validation.speed_fit import Fit, fit, make_problem, point_of
from planner.validation.speed_levels import FIRST, LEVELLED, LeftOut, bands, leave_sources_out, line_of
from planner.validation.speed_predict import Array, Batch, predict
from planner.validation.speed_rows import SpeedRow, speed_row

NAMES = (
    "output_tok_s_offline", "output_tok_s_closed_loop", "static_latency", "decode_tok_s_batch1", "tpot_ms", "ttft_ms", "prefill",
    "mlperf_offline", "tail_ms", "mlperf_latency",
)  # fmt: skip
REPORTED_ONLY = frozenset({"tail_ms", "mlperf_latency"})
"""Metrics without a target: percentiles and servers near their limit, of which mean values say little."""
WORST_ROWS, WORST_OF_METRIC = 8, 3
LEAST_RANKED = 4
FAR = 100.0
TOO_FAR = f"more than a factor of {FAR:.0f} off its prediction: a cell or its unit is wrong"
LEAST_ROWS, LEAST_SOURCES = 200, 3
"""What a fit of all constants needs at least: some sixty numbers, and sources to leave out."""


@dataclass(frozen=True, slots=True)
class SpeedGroup:
    """Errors of one metric over the rows of one source on one GPU, as fractions.

    `coverage80` is the share of rows inside the 80 % band of their class, `rank` Spearman's correlation of predicted and
    measured values (None for few rows).
    """

    source: str
    gpu: str
    n: int
    median_ape: float
    p90_ape: float
    bias: float
    coverage80: float
    rank: float | None


@dataclass(frozen=True, slots=True)
class SpeedMetric:
    """Errors of one metric: groups, worst first, with the mean of their medians over all and over current engines."""

    rows: int
    groups: tuple[SpeedGroup, ...]
    mean_of_group_medians: float
    modern_mean_of_group_medians: float | None
    modern_groups: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A row with the error of its prediction, (predicted - measured) / measured."""

    row: SpeedRow
    error: float


def furthest_off(rows: Sequence[SpeedRow], residuals: Array, most: int) -> tuple[Missed, ...]:
    """Return the rows whose predictions are furthest off by their factor, the worst first."""
    order = sorted(range(len(rows)), key=lambda i: (-abs(residuals[i]), i))
    return tuple(Missed(rows[i], math.expm1(residuals[i])) for i in order[:most])


@dataclass(frozen=True, slots=True)
class SpeedValidation(CountedRows):
    """The answer of `planner validate` for speed measurements; `coverage` maps line of the bands and kind to the share in it."""

    scored: int
    metrics: Mapping[str, SpeedMetric]
    coverage: Mapping[str, Mapping[str, tuple[int, float]]]
    worst: tuple[Missed, ...] = ()


@dataclass(frozen=True, slots=True)
class Readable:
    """The rows of a table that can be predicted, and why the others cannot."""

    rows: tuple[SpeedRow, ...]
    total: int
    skips: tuple[Skip, ...] = ()


def readable(rows: Sequence[Row], catalog: Catalog) -> Readable:
    """Read all rows of a table of measurements."""
    found: list[SpeedRow] = []
    skips: list[Skip] = []
    repeats = Repeats()
    for number, row in enumerate(rows, start=2):
        try:
            read = speed_row(row, catalog, number)
            Batch.of([read])
            repeats.refuse(row)
        except (NotScored, UnknownArchitecture, UnknownFormat, ValueError) as reason:
            skips.append(skip(row, reason))
        else:
            found.append(read)
    return Readable(tuple(found), len(rows), tuple(skips))


def validate_speed(read: Readable, catalog: Catalog) -> SpeedValidation:
    """Score the rows with the constants of the catalog."""
    data = catalog.calibration()
    constants = SpeedConstants.from_mapping(data)
    residuals = np.zeros(0)
    if read.rows:
        batch = Batch.of(read.rows)
        residuals = np.log(predict(batch, constants) / np.array([row.value for row in read.rows]))
    known = Coverage.from_mapping(data)
    generations = {row.engine.name: constants.engine(row.engine.name).generation for row in read.rows}
    lines = tuple(line_of(row, known, generations) for row in read.rows)
    table = Bands.from_mapping(data).by_line
    widths = {line: {metric: band.p80 for metric, band in of.items()} for line, of in table.items()}
    judged = _Judged(residuals, lines, _within(read.rows, residuals, lines, [widths] * len(read.rows)))
    return _validation(read, judged, constants)


@dataclass(frozen=True)
class _Judged:
    """Residuals of rows with the line of the bands that each is judged by, and whether it lies within."""

    residuals: Array
    lines: tuple[str, ...]
    within: tuple[bool, ...]


Widths = Mapping[str, Mapping[str, float]]
"""The factor of the 80 % band by line and metric."""


def _within(
    rows: Sequence[SpeedRow], residuals: Array, lines: Sequence[str], widths: Sequence[Widths]
) -> tuple[bool, ...]:
    kinds = ("ttft" if "ttft" in row.target.statistic else "throughput" for row in rows)
    judged = zip(residuals.tolist(), lines, kinds, widths, strict=True)
    return tuple(abs(residual) <= math.log(of[line][kind]) for residual, line, kind, of in judged)


def fitted_rows(read: Readable, full: bool) -> list[SpeedRow]:
    """Return the rows that a calibration uses: those that tell step times, for a full one the time to first token as well."""
    return [row for row in read.rows if row.target.name in LEVELLED or (full and row.target.name not in REPORTED_ONLY)]


def without_far_rows(read: Readable, catalog: Catalog, full: bool) -> tuple[Readable, list[Skip]]:
    """Return the rows without those to be fitted that are so far off their prediction that a cell or a unit must be wrong."""
    rows = fitted_rows(read, full)
    if not rows:
        return read, []
    constants = SpeedConstants.from_mapping(catalog.shipped_calibration())
    measured = np.array([row.value for row in rows])
    residuals = np.log(predict(Batch.of(rows), constants) / measured)
    far = [row for row, residual in zip(rows, residuals.tolist(), strict=True) if abs(residual) > math.log(FAR)]
    out = {id(row) for row in far}
    kept = tuple(row for row in read.rows if id(row) not in out)
    return replace(read, rows=kept), [Skip(row.place, f"{row.target.name}: {TOO_FAR}", True) for row in far]


def not_fitted(read: Readable, full: bool) -> list[Skip]:
    """Return the rows that are scored and that a calibration does not use, with the reason."""
    used = {id(row) for row in fitted_rows(read, full)}
    left = (row for row in read.rows if id(row) not in used)
    return [Skip(row.place, f"{row.target.name}: {_why_not_fitted(row.target.name)}", True) for row in left]


def _why_not_fitted(name: str) -> str:
    if name in REPORTED_ONLY:
        return "scored, never fitted: it says more about queues and tails than about steps"
    return "scored, not fitted: it moves no level; --full fits it"


def fit_speed(read: Readable, catalog: Catalog, from_priors: bool) -> tuple[Fit, LeftOut]:
    """Fit all constants to the rows, and predict every source without it. Starts from the priors, or from the catalog."""
    data = catalog.shipped_calibration()
    base = SpeedConstants.from_mapping(data)
    rows = fitted_rows(read, full=True)
    problem = make_problem(rows, base, data)
    found = fit(problem, None if from_priors else point_of(problem, base))
    return found, leave_sources_out(found)


def cross_validated(read: Readable, catalog: Catalog) -> SpeedValidation:
    """Score the rows with constants, levels and bands fitted to all other sources of the same table."""
    found, out = fit_speed(read, catalog, from_priors=False)
    kept = replace(read, rows=found.problem.batch.rows)
    widths = _widths_of_others(kept.rows, out)
    judged = _Judged(out.residuals, out.lines, _within(kept.rows, out.residuals, out.lines, widths))
    return _validation(kept, judged, found.problem.base)


def _widths_of_others(rows: Sequence[SpeedRow], out: LeftOut) -> list[Widths]:
    """Return for each row the bands that rows of other sources tell."""
    found: dict[str, Widths] = {}
    for source in sorted({row.source for row in rows}):
        kept = [i for i, row in enumerate(rows) if row.source != source]
        others = LeftOut(out.residuals[kept], tuple(out.lines[i] for i in kept))
        table = bands([rows[i] for i in kept], others)
        found[source] = {line: {kind: width["p80"] for kind, width in of.items()} for line, of in table.items()}
    return [found[row.source] for row in rows]


def calibration_of(read: Readable, catalog: Catalog, name: str, data: bytes) -> str:
    """Return the text of a calibration file fitted to the rows from the priors; the same rows give the same bytes."""
    found, out = fit_speed(read, catalog, from_priors=True)
    facts = {
        "name": name,
        "rows": len(found.problem.batch.rows),
        "sources": len({row.source for row in found.problem.batch.rows}),
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
    }
    return calibration_text(found, out, catalog.shipped_calibration(), facts)


@dataclass(frozen=True, slots=True)
class Change:
    """Median size of the error (as a fraction) of one metric over all rows, before and after a calibration.

    `worst` are the rows that are furthest off afterwards.
    """

    metric: str
    rows: int
    before: float
    after: float
    worst: tuple[Missed, ...]


def compared(read: Readable, catalog: Catalog, text: str, full: bool) -> tuple[Change, ...]:
    """Return the in-sample errors before and after the calibration in `text`."""
    data = parse(text, "calibration")[0]
    assert data is not None
    before = SpeedConstants.from_mapping(catalog.calibration())
    whole = data.data if full else OwnCalibration.model_validate(data.data).over(catalog.calibration())
    after = SpeedConstants.from_mapping(whole)
    batch = Batch.of(read.rows)
    measured = np.array([row.value for row in read.rows])
    residuals = [np.log(predict(batch, constants) / measured) for constants in (before, after)]
    errors = [np.abs(np.expm1(residual)) for residual in residuals]
    found = []
    for name in NAMES:
        members = [i for i, row in enumerate(read.rows) if row.target.name == name]
        if members:
            medians = [float(np.median(e[members])) for e in errors]
            worst = furthest_off([read.rows[i] for i in members], residuals[1][members], WORST_OF_METRIC)
            found.append(Change(name, len(members), medians[0], medians[1], worst))
    return tuple(found)


def _validation(read: Readable, judged: _Judged, constants: SpeedConstants) -> SpeedValidation:
    metrics = {name: _metric(name, read.rows, judged, constants) for name in NAMES}
    return SpeedValidation(
        rows=read.total,
        skips=read.skips,
        scored=len(read.rows),
        metrics={name: metric for name, metric in metrics.items() if metric.rows},
        coverage=_coverage(read.rows, judged),
        worst=furthest_off(read.rows, judged.residuals, WORST_ROWS),
    )


def _metric(name: str, rows: Sequence[SpeedRow], judged: _Judged, constants: SpeedConstants) -> SpeedMetric:
    groups: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        if row.target.name == name:
            groups.setdefault((row.source, row.gpu), []).append(index)
    modern: list[float] = []
    found: list[SpeedGroup] = []
    for (source, gpu), members in sorted(groups.items()):
        found.append(_group(source, gpu, members, rows, judged))
        current = [i for i in members if constants.engine(rows[i].engine.name).generation == "modern"]
        if current:
            modern.append(median(_errors(judged.residuals, current)))
    found.sort(key=lambda g: (-g.median_ape, g.source, g.gpu))
    return SpeedMetric(
        rows=sum(g.n for g in found),
        groups=tuple(found),
        mean_of_group_medians=sum(g.median_ape for g in found) / len(found) if found else 0.0,
        modern_mean_of_group_medians=sum(modern) / len(modern) if modern else None,
        modern_groups=len(modern),
    )


def _errors(residuals: Array, members: Sequence[int]) -> list[float]:
    return sorted(abs(math.expm1(residuals[i])) for i in members)


def _group(source: str, gpu: str, members: Sequence[int], rows: Sequence[SpeedRow], judged: _Judged) -> SpeedGroup:
    errors = _errors(judged.residuals, members)
    return SpeedGroup(
        source,
        gpu,
        len(members),
        median(errors),
        percentile(errors, 0.9),
        median(math.expm1(judged.residuals[i]) for i in members),
        sum(judged.within[i] for i in members) / len(members),
        _rank(rows, judged.residuals, members),
    )


def _rank(rows: Sequence[SpeedRow], residuals: Array, members: Sequence[int]) -> float | None:
    """Return Spearman's rank correlation, None for few or equal values."""
    measured = np.array([rows[i].value for i in members])
    if len(members) < LEAST_RANKED or len(set(measured.tolist())) < LEAST_RANKED:
        return None
    predicted = measured * np.exp(residuals[list(members)])
    if np.ptp(predicted) == 0.0:
        return None
    return float(np.corrcoef(_ranks(measured), _ranks(predicted))[0, 1])


def _ranks(values: Array) -> Array:
    """Return the rank of every value, equal ones the mean of theirs."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - 0.5 * (counts - 1))[position], dtype=np.float64)


def _coverage(rows: Sequence[SpeedRow], judged: _Judged) -> dict[str, dict[str, tuple[int, float]]]:
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for kind, names in (("throughput", LEVELLED), ("ttft", FIRST)):
        for line in LINES:
            members = [i for i, row in enumerate(rows) if row.target.name in names and judged.lines[i] == line]
            if members:
                inside = sum(judged.within[i] for i in members)
                found.setdefault(line, {})[kind] = (len(members), inside / len(members))
    return found
