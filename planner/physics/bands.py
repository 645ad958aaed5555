"""How sure a predicted time is: the class of knowledge behind it, and the factor that a chosen confidence asks for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

from planner.physics.constants import Combination
from planner.physics.types import Architecture

CLASSES = ("A", "B", "C", "D")
OWN, PUBLISHED = "own", "published"
LINES = (OWN, PUBLISHED, *CLASSES)
"""Lines of the table of bands: class A is split where this very combination has a level, by own rows or published ones."""
OWN_ROWS = 5
"""Own rows of a combination from which on they count: the narrowest band was measured with this number, fewer say little."""
METRICS = ("throughput", "ttft")
FAMILIES = ("dense", "moe", "mla-moe", "hybrid")

_NORMAL = NormalDist()
SCORE_80 = _NORMAL.inv_cdf(0.90)
"""Normal score of a two-sided 80 % band: one-sided 90 %."""
SCORE_95 = _NORMAL.inv_cdf(0.975)
"""Normal score of a two-sided 95 % band: one-sided 97.5 %."""


@dataclass(frozen=True, slots=True)
class Band:
    """Factors that 80 % and 95 % of measured deployments stay within, on either side of the prediction.

    Quantiles of the errors in predicting whole sources that the fit had not seen. Rows of one source on one GPU err
    together, so a group of n of them counts n^0.3 (`planner.validation.speed_levels.bands`).
    """

    p80: float
    p95: float


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A combination that was measured, and how often. Only `fitted` rows shaped the constants.

    `own` rows are the user's; `calibration` is the name of the own calibration that they stand in.
    """

    gpu: str
    architecture_class: str
    generation: str
    engine_class: str
    family: str
    weights: str
    rows: int
    fitted: bool
    own: bool = False
    calibration: str = ""

    @property
    def combination(self) -> Combination:
        """Engine class, GPU, kind of model family and weight format."""
        return self.engine_class, self.gpu, self.family, self.weights


@dataclass(frozen=True, slots=True)
class Provenance:
    """What stands behind a prediction: its class, A to D, and how this very combination was measured: own, published or none."""

    letter: str
    measured: str

    @property
    def line(self) -> str:
        """Name of the line of the table of bands."""
        return self.letter if self.measured == "none" else self.measured


@dataclass(frozen=True, slots=True)
class OwnRows:
    """What the user measured: the own calibration that decides and its rows, of the `same` combination or of others on the GPU."""

    calibration: str
    rows: int
    same: bool

    def __str__(self) -> str:
        """Return the calibration and its rows in words."""
        return f"own calibration {self.calibration}, {self.rows:,} {'row' if self.rows == 1 else 'rows'}"


@dataclass(frozen=True)
class Coverage:
    """All measured combinations."""

    rows: tuple[CoverageRow, ...]

    @cached_property
    def telling(self) -> tuple[CoverageRow, ...]:
        """What shaped the constants, without combinations that were measured by too few own rows."""
        own: Counter[Combination] = Counter()
        for row in self.rows:
            if row.fitted and row.own:
                own[row.combination] += row.rows
        return tuple(row for row in self.rows if row.fitted and (not row.own or own[row.combination] >= OWN_ROWS))

    def own_rows(self, combination: Combination) -> OwnRows | None:
        """Return the own rows that decide the speed of a combination: its level, or at least the constants of its GPU.

        Of several own calibrations the last one decides, as it is put over the others.
        """
        own = [row for row in self.rows if row.own and row.gpu == combination[1]]
        same = [row for row in own if row.combination == combination]
        known = same or own
        if not known:
            return None
        last = known[-1].calibration
        return OwnRows(last, sum(row.rows for row in known if row.calibration == last), bool(same))

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Coverage:
        """Read the section `coverage` of a calibration file. Raises `ValueError` naming what is missing."""
        rows = data.get("coverage")
        if not isinstance(rows, list):
            raise ValueError("calibration: coverage must be a list")
        return cls(tuple(_coverage_row(row, index) for index, row in enumerate(rows)))


@dataclass(frozen=True, slots=True)
class Bands:
    """Bands by line and metric; `throughput` also holds for time per output token."""

    by_line: Mapping[str, Mapping[str, Band]]

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Bands:
        """Read the section `bands` of a calibration file. Raises `ValueError` naming what is missing or wrong."""
        table = data.get("bands")
        if not isinstance(table, Mapping):
            raise ValueError("calibration: bands must be a mapping")
        lines = {name: name if name in table else CLASSES[0] for name in LINES[:2]} | dict(
            zip(CLASSES, CLASSES, strict=True)
        )
        return cls({name: {metric: _band(table, line, metric) for metric in METRICS} for name, line in lines.items()})


def family_kind(arch: Architecture) -> str:
    """Return the family of a model that decides what was measured of it: one of `FAMILIES`."""
    if arch.n_state_layers:
        return "hybrid"
    if arch.is_moe:
        return "mla-moe" if arch.is_mla else "moe"
    return "dense"


def provenance_class(coverage: Coverage, combination: Combination, architecture_class: str, generation: str) -> str:
    """Return the class of knowledge of a prediction, by what was measured on an engine of the same generation.

    A: this GPU and model family. B: its architecture class and the family. C: the family with this engine class on any
    GPU, or on this architecture with any engine. D: none of these. A few own rows of a combination make no class better.
    """
    engine_class, gpu, family, _ = combination
    known = [row for row in coverage.telling if row.family == family]
    same_class = [row for row in known if architecture_class and row.architecture_class == architecture_class]
    if any(row.gpu == gpu and row.generation == generation for row in known):
        return "A"
    if any(row.generation == generation for row in same_class):
        return "B"
    if same_class or any(row.engine_class == engine_class for row in known):
        return "C"
    return "D"


def provenance_of(coverage: Coverage, combination: Combination, architecture_class: str, generation: str) -> Provenance:
    """Return what stands behind a prediction for a combination on an engine of a generation."""
    letter = provenance_class(coverage, combination, architecture_class, generation)
    rows = [row for row in coverage.telling if row.combination == combination]
    if any(row.own for row in rows):
        return Provenance("A", OWN)
    return Provenance("A", PUBLISHED) if rows else Provenance(letter, "none")


def factor(bands: Bands, line: str, metric: str, confidence: float) -> float:
    """Return the factor on a predicted time that a share `confidence` of measured deployments stays under.

    The logarithm of the factor is piecewise linear in the one-sided normal score z(confidence): 0 at the median, the
    logarithm of the two-sided 80 % figure at z = 1.2816 and of the 95 % figure at z = 1.9600, on with that slope
    beyond, and odd in z below the median (so a confidence below one half gives a factor below 1). Raises `ValueError`
    for an unknown class or metric, or a confidence outside of (0, 1).
    """
    if line not in bands.by_line or metric not in METRICS:
        raise ValueError(f"no band for class {line!r} and metric {metric!r}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, both excluded, got {confidence:g}")
    band = bands.by_line[line][metric]
    score = _NORMAL.inv_cdf(confidence)
    return math.exp(math.copysign(_log_factor(band, abs(score)), score))


def _log_factor(band: Band, score: float) -> float:
    near, far = math.log(band.p80), math.log(band.p95)
    if score <= SCORE_80:
        return near * score / SCORE_80
    return near + (far - near) * (score - SCORE_80) / (SCORE_95 - SCORE_80)


def _band(table: Mapping[str, Any], name: str, metric: str) -> Band:
    row = table.get(name)
    figures = row.get(metric) if isinstance(row, Mapping) else None
    where = f"calibration: bands.{name}.{metric}"
    if not isinstance(figures, Mapping):
        raise ValueError(f"{where} is missing")
    for key in ("p80", "p95"):
        value = figures.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{where}.{key} must be a number")
        if not math.isfinite(value):
            raise ValueError(f"{where}.{key} must be a finite number, got {value!r}")
    band = Band(float(figures["p80"]), float(figures["p95"]))
    if not 1.0 <= band.p80 <= band.p95:
        raise ValueError(f"{where} must satisfy 1 <= p80 <= p95")
    return band


_COVERAGE_TYPES: dict[str, type] = {
    "gpu": str,
    "architecture_class": str,
    "generation": str,
    "engine_class": str,
    "family": str,
    "weights": str,
    "rows": int,
    "fitted": bool,
}


def _coverage_row(row: Any, index: int) -> CoverageRow:
    for key, kind in _COVERAGE_TYPES.items():
        if not isinstance(row, Mapping) or not isinstance(row.get(key), kind):
            raise ValueError(f"calibration: coverage[{index}].{key} must be a {kind.__name__}")
    return CoverageRow(**{key: row[key] for key in _COVERAGE_TYPES}, **_owner(row))


def _owner(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"own": row.get("own") is True, "calibration": str(row.get("calibration", ""))}
