"""The text of a calibration file: the same fit gives the same bytes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from planner.physics.bands import Coverage
from planner.validation.least_squares import robust
from planner.validation.speed_fit import HUBER, Fit
from planner.validation.speed_levels import LeftOut, bands, coverage, levels

DIGITS = 4
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
LEAST_SHARE = 0.05
MOST_SOURCES = 3
_HEADER = """\
# Constants of the speed model: rooflines per component, collectives, fixed overheads (planner/physics/speed.py).
#
# Written by `planner calibrate MEASUREMENTS --full --out FILE`: do not edit by hand. Robust least squares on log residuals
# (Huber {huber}) with Gaussian priors on the logarithms. Use the set as a whole: weight_bandwidth_share with the engines'
# gpu_time, layer_s with overhead and kv_bandwidth_share with the group exponent are correlated. Values are in base units.
# `prior` and `prior_log_sd` are those of the fit; `width` is posterior over prior spread (near 1: the data say nothing,
# the value is the prior); `sources` are the shares of the information. Entries with a `source` are not fitted.
"""
_OFFSETS = """
# Logarithms to add to the logarithm of the global constant: weights to weight_bandwidth_share, kv to kv_bandwidth_share,
# compute to gemm_compute_share, layer to layer_s. What has no line has zeros. Families are relative to dense models.
"""
_ENGINES = """
# Multipliers: gpu_time on GPU time (below 1 is faster), overhead on the fixed times per layer and step, sequence on the
# time per running sequence, prefill on the cost of prompts, request on the request path outside the GPU. A generation's
# line is what an unknown engine takes. layer_split: pipeline stages run one after the other. capped_kernels: saturate at
# kernel_flops_per_s.
"""
_BANDS = """
# Half-widths of the error as factors: 80 % and 95 % of the rows of sources that the fit had not seen lie within prediction
# divided by and multiplied by the factor. Classes, from what is measured on an engine of the same generation:
"""
_LEVELS = """
# Levels: logarithm of the factor on all step times of one combination, a shrunken mean over medians by source and metric.
"""
_COVERAGE = """
# What was measured: number of scored rows per combination, which decides the class of a prediction.
"""
_MEASURED = {
    "own": "this combination of engine, GPU, family and weights, by five rows of one's own",
    "published": "this combination of engine, GPU, family and weights, by others or fewer own rows",
    "A": "this GPU and this model family",
    "B": "the architecture class and the family",
    "C": "the family with this engine, or on this architecture",
    "D": "none of these; not below what a study of the same form found",
}


def calibration_text(found: Fit, out: LeftOut, base: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Return a whole calibration file. `base` is the calibration whose priors were used, `facts` are name, date, digest."""
    rows = found.problem.batch.rows
    lines = [_HEADER.format(huber=HUBER)]
    lines += [f"{key}: {flow(value)}\n" for key, value in facts.items()]
    lines += ["\nconstants:\n", *_constants(found, base["constants"]), _OFFSETS]
    lines += [*_offsets(found, "architectures"), "gpus: {}\n", *_offsets(found, "families"), _ENGINES]
    lines += _engine_lines(found, base)
    lines += [_BANDS, "bands:\n"]
    for name, of in bands(rows, out).items():
        lines.append(f"  {name}: {mapping({**of, 'measured': _MEASURED[name]})}\n")
    told = levels(rows, found.residuals, [True] * len(rows))
    lines += [_LEVELS, "levels:\n" if told else "levels: []\n"]
    for combination, level in told.items():
        engine, gpu, family, weights = combination
        entry = {"engine_class": engine, "gpu": gpu, "family": family, "weights": weights}
        lines.append(f"  - {mapping({**entry, 'log_time': rounded(level.log_time), 'rows': level.rows})}\n")
    lines += [_COVERAGE, "coverage:\n", *coverage_lines(coverage(rows, found.problem.generation_of))]
    return "".join(lines)


def coverage_lines(known: Coverage, own: bool = False) -> Iterable[str]:
    """Yield a line for each combination that was measured, by the user's `own` rows or others."""
    for row in known.rows:
        entry: dict[str, Any] = {
            "gpu": row.gpu, "architecture_class": row.architecture_class, "generation": row.generation,
            "engine_class": row.engine_class, "family": row.family, "weights": row.weights,
        }  # fmt: skip
        entry |= {"rows": row.rows, "fitted": True} | ({"own": True} if own else {})
        yield f"  - {mapping(entry)}\n"


def _constants(found: Fit, known: Mapping[str, Any]) -> Iterable[str]:
    fitted = {p.name: i for i, p in enumerate(found.problem.parameters) if p.table == "constants"}
    for name, row in sorted(known.items()):
        entry = dict(row)
        if name in fitted:
            index = fitted[name]
            entry["value"] = rounded(math.exp(float(found.theta[index])))
            entry["width"] = round(float(found.widths[index]), 2)
            entry["sources"] = _information(found, index)
        yield f"  {name}:\n    {mapping(entry)}\n"


def _information(found: Fit, index: int) -> dict[str, float]:
    """Return the sources that tell a parameter, by their share of the information, largest first."""
    told = robust(found.residuals, found.problem.weights, HUBER) * found.jacobian[:, index] ** 2
    shares: dict[str, float] = {}
    for row, value in zip(found.problem.batch.rows, told.tolist(), strict=True):
        shares[row.source] = shares.get(row.source, 0.0) + value
    total = sum(shares.values()) or 1.0
    ordered = sorted(((value / total, source) for source, value in shares.items()), key=lambda x: (-x[0], x[1]))
    return {source: round(share, 2) for share, source in ordered[:MOST_SOURCES] if share >= LEAST_SHARE}


def _offsets(found: Fit, table: str) -> Iterable[str]:
    rows: dict[str, dict[str, float]] = {}
    for parameter, value in zip(found.problem.parameters, found.theta.tolist(), strict=True):
        if parameter.table == table:
            rows.setdefault(parameter.line, {})[parameter.name] = round(value, 3) + 0.0
    yield f"{table}:\n" if rows else f"{table}: {{}}\n"
    for line, entry in sorted(rows.items()):
        yield f"  {line}: {mapping(entry)}\n"


def _engine_lines(found: Fit, base: Mapping[str, Any]) -> Iterable[str]:
    constants = found.constants
    for table, lines in (("generations", constants.generations), ("engines", constants.engines)):
        yield f"{table}:\n"
        for name, multipliers in sorted(lines.items()):
            known = base[table].get(name, {})
            entry: dict[str, Any] = {"generation": multipliers.generation}
            for key in ("gpu_time", "overhead", "sequence", "prefill", "request"):
                entry[key] = rounded(getattr(multipliers, key))
            entry |= {key: True for key in ("layer_split", "capped_kernels") if getattr(multipliers, key)}
            entry |= {"what": known["what"]} if "what" in known else {}
            yield f"  {name}: {mapping(entry)}\n"
        for name, known in sorted(base[table].items()):
            if name not in lines:  # no row of this kind: the line stays as it was
                yield f"  {name}: {mapping(known)}\n"


def rounded(value: float) -> float:
    """Return a number with the digits that a fit earns."""
    return float(f"{value:.{DIGITS}g}") + 0.0


def mapping(entry: Mapping[str, Any]) -> str:
    """Return a mapping on one line of YAML."""
    return "{" + ", ".join(f"{plain(key)}: {flow(value)}" for key, value in entry.items()) + "}"


def plain(key: str) -> str:
    """Return a key of YAML, quoted where it is not a plain word: names of sources are text from anybody."""
    return key if _WORD.fullmatch(key) and key.casefold() not in _RESERVED else json.dumps(key, ensure_ascii=True)


def flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return mapping(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return str(value) if isinstance(value, int) else json.dumps(str(value), ensure_ascii=True)
