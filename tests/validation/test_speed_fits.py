"""Fits: of all constants on a few rows, the file that they write, and a calibration from a user's own measurements."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from speed_inputs import median_error, read, residuals, rows_of_gpu, shipped, table
from validation_inputs import catalog

from planner.catalog.calibration import OwnCalibration
from planner.physics.bands import PUBLISHED, Bands, Coverage
from planner.physics.constants import EngineMultipliers, Offsets, SpeedConstants
from planner.source import parse
from planner.validation.calibration_file import calibration_text
from planner.validation.own import fit_own, own_calibration, with_own
from planner.validation.speed import Readable, calibration_of, compared, fit_speed, readable
from planner.validation.speed_fit import (
    GROUP_EXPONENT,
    WEIGHTS,
    Fit,
    Problem,
    left_out,
    make_problem,
    point_of,
    row_weights,
)
from planner.validation.speed_levels import LEVELLED, LeftOut, bands, coverage, levels, line_of
from planner.validation.speed_predict import Batch, predict
from planner.validation.speed_rows import SpeedRow

CALIBRATIONS = Path(__file__).parents[1] / "data" / "calibration"
FEW_GPUS = ("L40S", "A10G")
NEW_GPUS = ("Gaudi2", "MI300X", "RTX-PRO-6000-Server")
HALF_DIGIT = 5e-4
"""Half of the last of four digits, relative to the leading one."""


def few() -> Readable:
    return replace(read(), rows=rows_of_gpu(*FEW_GPUS))


@cache
def fitted() -> tuple[Fit, LeftOut]:
    return fit_speed(few(), catalog(), from_priors=True)


@cache
def text() -> str:
    found, out = fitted()
    rows = found.problem.batch.rows
    digest = f"sha256:{hashlib.sha256(b'few').hexdigest()}"
    facts = {"name": "few", "rows": len(rows), "sources": len({row.source for row in rows}), "digest": digest}
    return calibration_text(found, out, catalog().calibration(), facts)


def parsed(calibration: str) -> Mapping[str, Any]:
    document = parse(calibration, "calibration.yaml")[0]
    assert document is not None
    data: Mapping[str, Any] = document.data
    return data


@cache
def problem() -> Problem:
    return make_problem(rows_of_gpu(*FEW_GPUS), shipped(), catalog().calibration())


def some_point() -> np.ndarray[Any, np.dtype[np.float64]]:
    return problem().centres + np.random.default_rng(7).uniform(-0.2, 0.2, problem().centres.size)


def test_constants_of_a_point_lead_back_to_the_point() -> None:
    theta = some_point()
    assert point_of(problem(), problem().constants(theta)) == pytest.approx(theta, abs=1e-12)


def test_a_fit_starts_at_the_priors() -> None:
    constants = problem().constants(problem().centres)
    priors = {n: row["prior"] for n, row in catalog().calibration()["constants"].items() if "prior" in row}
    assert priors
    assert {name: getattr(constants, name) for name in priors} == pytest.approx(priors)
    assert set(constants.architectures.values()) == {Offsets()}


def test_a_fit_lies_nearer_to_its_rows_than_the_priors() -> None:
    found, _ = fitted()
    before = np.median(np.abs(found.problem.residuals(found.problem.centres)))
    assert np.median(np.abs(found.residuals)) < 0.5 * before


def test_the_residuals_of_a_fit_are_those_of_its_constants() -> None:
    found, _ = fitted()
    assert residuals(found.problem.batch.rows, found.constants) == pytest.approx(found.residuals)


def test_what_no_row_tells_stays_at_its_prior() -> None:
    found, _ = fitted()
    index = [p.name for p in found.problem.parameters].index("allreduce_latency_xgmi_s")
    assert found.theta[index] == found.problem.parameters[index].centre
    assert found.widths[index] == pytest.approx(1.0)


def test_no_parameter_is_wider_than_its_prior() -> None:
    found, _ = fitted()
    assert found.widths.max() <= 1.0 + 1e-9
    assert found.widths.min() < 0.5


def test_a_group_weighs_a_power_of_its_rows() -> None:
    row = rows_of_gpu("L40S")[0]
    assert row_weights([row] * 8).sum() == pytest.approx(WEIGHTS[row.target.name] * 8**GROUP_EXPONENT)


def test_leaving_nothing_out_stays_at_the_optimum() -> None:
    found, _ = fitted()
    assert left_out(found, np.zeros(0, dtype=np.intp)) == pytest.approx(found.residuals, abs=0.02)


def test_a_source_left_out_is_predicted_worse() -> None:
    found, out = fitted()
    assert np.median(np.abs(out.residuals)) > 1.2 * np.median(np.abs(found.residuals))


def test_the_same_rows_give_the_same_bytes() -> None:
    again = readable([row for row in table().rows if row["gpu"] in ("L40S 48GB", "A10G 24GB")], catalog())
    assert calibration_of(again, catalog(), "few", b"few") == text()


def test_the_file_names_what_it_is_fitted_to() -> None:
    data = parsed(text())
    sources = {row.source for row in few().rows}
    assert (data["name"], data["rows"], data["sources"]) == ("few", len(few().rows), len(sources))
    assert data["digest"].startswith("sha256:")
    assert {s for row in data["constants"].values() if "prior" in row for s in row["sources"]} <= sources


def test_the_file_holds_the_constants_of_the_fit_up_to_its_digits() -> None:
    expected, _ = fitted()
    written = SpeedConstants.from_mapping(parsed(text()))
    for name in (f.name for f in fields(SpeedConstants) if f.type == "float"):
        assert getattr(written, name) == pytest.approx(getattr(expected.constants, name), rel=HALF_DIGIT), name


@pytest.mark.parametrize("section", ["architectures", "families"])
def test_the_file_holds_the_offsets_of_the_fit_to_three_decimals(section: str) -> None:
    expected: Mapping[str, Offsets] = getattr(fitted()[0].constants, section)
    written: Mapping[str, Offsets] = getattr(SpeedConstants.from_mapping(parsed(text())), section)
    assert written.keys() == expected.keys()
    for line, offsets in expected.items():
        for field in fields(Offsets):
            assert getattr(written[line], field.name) == pytest.approx(
                getattr(offsets, field.name), abs=HALF_DIGIT + 1e-9
            )


@pytest.mark.parametrize("section", ["generations", "engines"])
def test_the_file_holds_the_multipliers_of_the_fit_up_to_its_digits(section: str) -> None:
    expected: Mapping[str, EngineMultipliers] = getattr(fitted()[0].constants, section)
    written: Mapping[str, EngineMultipliers] = getattr(SpeedConstants.from_mapping(parsed(text())), section)
    assert expected
    for line, multipliers in expected.items():
        for field in fields(EngineMultipliers):
            told = getattr(multipliers, field.name)
            assert getattr(written[line], field.name) == (
                pytest.approx(told, rel=HALF_DIGIT) if isinstance(told, float) else told
            )


def test_an_engine_without_rows_keeps_its_line() -> None:
    written = SpeedConstants.from_mapping(parsed(text()))
    assert "ds_hpu" not in fitted()[0].constants.engines
    assert written.engines["ds_hpu"] == shipped().engines["ds_hpu"]


def test_the_file_holds_levels_bands_and_coverage_of_the_fit() -> None:
    found, out = fitted()
    rows, data = found.problem.batch.rows, parsed(text())
    told = {key: level.log_time for key, level in levels(rows, found.residuals, [True] * len(rows)).items()}
    assert SpeedConstants.from_mapping(data).levels == pytest.approx(told, rel=HALF_DIGIT)
    assert Bands.from_mapping(data) == Bands.from_mapping({"bands": bands(rows, out)})
    assert Coverage.from_mapping(data) == coverage(rows, found.problem.generation_of)


def test_bands_count_a_group_by_a_small_power_of_its_rows() -> None:
    row = next(row for row in read().rows if row.target.name in LEVELLED)
    sizes = {"large": (600, 0.1)} | {f"small {index}": (20, 0.5) for index in range(6)}
    rows = [replace(row, source=source) for source, (n, _) in sizes.items() for _ in range(n)]
    off = np.array([size for n, size in sizes.values() for _ in range(n)])
    widths = bands(rows, LeftOut(off, (PUBLISHED,) * len(rows)))[PUBLISHED]["throughput"]
    assert np.quantile(off, 0.8) == 0.1
    assert math.log(widths["p80"]) == pytest.approx(0.5, abs=0.01)


def test_a_level_is_the_median_of_late_rows_halved_for_a_single_one() -> None:
    row = rows_of_gpu("L40S")[0]
    slower = replace(row, value=row.value * (0.8 if row.target.statistic == "rate" else 1.25))
    late = abs(float(residuals([slower], shipped())[0]))
    one = levels([slower], residuals([slower], shipped()), [True])[slower.combination]
    four = levels([slower] * 4, residuals([slower] * 4, shipped()), [True] * 4)[slower.combination]
    assert abs(one.log_time) == pytest.approx(0.5 * late)
    assert abs(four.log_time) == pytest.approx(0.8 * late)


def test_a_full_calibration_is_compared_in_sample() -> None:
    changes = compared(few(), catalog(), text(), full=True)
    assert sum(change.rows for change in changes) == len(few().rows)
    written = SpeedConstants.from_mapping(parsed(text()))
    for change in changes:
        rows = [row for row in few().rows if row.target.name == change.metric]
        assert change.before == pytest.approx(median_error(rows, shipped()))
        assert change.after == pytest.approx(median_error(rows, written))


def extended(data: Mapping[str, Any]) -> SpeedConstants:
    """The shipped constants with an own calibration put over them."""
    return SpeedConstants.from_mapping(OwnCalibration.model_validate(data).over(catalog().calibration()))


def own(rows: tuple[SpeedRow, ...]) -> SpeedConstants:
    return extended(parsed(own_calibration(rows, catalog(), "own", b"own")))


def one_row() -> SpeedRow:
    return next(r for r in rows_of_gpu("H100-SXM-80GB") if r.target.name == "output_tok_s_closed_loop")


def doubled(row: SpeedRow) -> SpeedRow:
    return replace(row, value=row.value * 2.0)


def test_one_own_row_moves_its_combination_and_gpu_only() -> None:
    row = doubled(one_row())
    after, before = own((row,)), shipped()
    assert {c for c in after.levels if after.levels[c] != before.levels.get(c)} == {row.combination}
    assert {g for g in after.gpus if after.gpus[g] != before.gpus.get(g)} == {row.device.name}


def test_own_rows_never_move_shared_constants() -> None:
    after = own(tuple(doubled(row) for row in rows_of_gpu("H100-SXM-80GB")[:8]))
    assert replace(after, gpus=shipped().gpus, levels=shipped().levels) == shipped()
    assert after != shipped()


def test_own_rows_of_one_gpu_leave_predictions_of_all_others_alone() -> None:
    after = own(tuple(doubled(row) for row in rows_of_gpu("H100-SXM-80GB")[:8]))
    others = Batch.of([row for row in read().rows if row.device.name != "H100-SXM-80GB"])
    assert np.array_equal(predict(others, after), predict(others, shipped()))


def test_one_own_row_pulls_its_prediction_part_of_the_way() -> None:
    row = doubled(one_row())
    before, after = (float(residuals([row], constants)[0]) for constants in (shipped(), own((row,))))
    assert before < after < 0.0


def test_more_own_rows_pull_further() -> None:
    row = doubled(one_row())
    once, often = (float(residuals([row], own((row,) * n))[0]) for n in (1, 20))
    assert abs(often) < 0.5 * abs(once)


def test_own_rows_that_agree_change_next_to_nothing() -> None:
    row = one_row()
    exact = replace(row, value=float(predict(Batch.of([row]), shipped())[0]))
    assert residuals([exact], own((exact,)))[0] == pytest.approx(0.0, abs=1e-3)


def test_no_rows_write_an_empty_calibration() -> None:
    data = parsed(own_calibration((), catalog(), "own", b""))
    assert (data["rows"], data["gpus"], data["levels"], data["coverage"]) == (0, {}, [], [])
    assert extended(data) == shipped()


def test_own_rows_are_covered_afterwards() -> None:
    row = one_row()
    data = parsed(own_calibration((row,), catalog(), "own", b""))
    assert [(c.gpu, c.engine_class, c.family, c.weights, c.rows) for c in Coverage.from_mapping(data).rows] == [
        (row.device.name, row.engine.name, row.family, row.weights, 1)
    ]


@cache
def without(gpu: str) -> Mapping[str, Any]:
    """A calibration whose fit saw every row of the table but those of one GPU; engines of no other GPU are unknown, too."""
    data = parsed((CALIBRATIONS / f"without_{gpu}.yaml").read_text(encoding="utf-8"))
    seen = {entry["engine_class"] for entry in data["coverage"]}
    lines = {
        name: line if name in seen else {**line, **data["generations"][line["generation"]]}
        for name, line in data["engines"].items()
    }
    return {**data, "engines": lines}


def told_rows(gpu: str) -> list[SpeedRow]:
    return [row for row in rows_of_gpu(gpu) if row.target.name in LEVELLED]


@pytest.mark.parametrize("gpu", NEW_GPUS)
def test_a_calibration_without_a_gpu_knows_nothing_of_it(gpu: str) -> None:
    data = without(gpu)
    assert gpu not in data["gpus"]
    assert all(entry["gpu"] != gpu for section in ("levels", "coverage") for entry in data[section])


@pytest.mark.parametrize("gpu", NEW_GPUS)
def test_five_rows_of_a_new_gpu_cut_the_error_of_its_others_by_a_third(gpu: str) -> None:
    base, rows = SpeedConstants.from_mapping(without(gpu)), told_rows(gpu)
    shares = []
    for seed in range(9):
        picked = random.Random(seed).sample(range(len(rows)), 5)
        after = with_own(base, *fit_own([rows[i] for i in picked], base))
        rest = [row for i, row in enumerate(rows) if i not in picked]
        shares.append(median_error(rest, after) / median_error(rest, base))
    assert np.median(shares) <= 2 / 3


@pytest.mark.parametrize(("gpu", "least"), [("Gaudi2", 0.75), ("MI300X", 0.55), ("RTX-PRO-6000-Server", 0.75)])
def test_a_gpu_known_by_its_datasheet_lies_within_its_band(gpu: str, least: float) -> None:
    """Of MI300X fewer rows lie within: early engines on ROCm were up to twice slower than its datasheet lets one think."""
    data, rows = without(gpu), told_rows(gpu)
    constants, known, wide = SpeedConstants.from_mapping(data), Coverage.from_mapping(data), Bands.from_mapping(data)
    generation_of = {row.engine.name: constants.engine(row.engine.name).generation for row in rows}
    lines = [line_of(row, known, generation_of) for row in rows]
    widths = np.log([wide.by_line[line]["throughput"].p80 for line in lines])
    assert set(lines) <= set("BCD")
    assert np.mean(np.abs(residuals(rows, constants)) <= widths) >= least
