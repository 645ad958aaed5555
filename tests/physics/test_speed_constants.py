"""The calibration file: complete, documented, and refused with the name of what is wrong."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from speed_cases import calibration, constants

from planner.physics.constants import Offsets, SpeedConstants


def changed(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return the shipped calibration with one value replaced (None: removed)."""
    data: dict[str, Any] = copy.deepcopy(calibration())
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


def test_every_constant_states_meaning_unit_and_source() -> None:
    rows: Any = calibration()["constants"]
    for name, row in rows.items():
        assert row["meaning"], name
        assert row["unit"], name
        assert row.get("sources") or row.get("source"), name
        fitted = "sources" in row
        assert fitted == ("prior" in row) == ("width" in row), name
        assert not fitted or 0 < sum(row["sources"].values()) <= 1, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight_bandwidth_share", 0.892),
        ("layer_s", 19.3e-6),
        ("step_s", 0.442e-3),
        ("runtime_bytes", 2.78 * 2**30),
        ("kernel_flops_per_s", 151e12),
        ("request_path_s", 25.7e-3),
        ("roofline_exponent", 3.17),
    ],
)
def test_values_are_in_base_units(name: str, value: float) -> None:
    assert getattr(constants(), name) == pytest.approx(value, rel=1e-6)


def test_tables_are_whole() -> None:
    c = constants()
    assert len(c.architectures) == 13
    assert len(c.engines) == 16
    assert sorted(c.generations) == ["local", "modern", "old"]
    assert {line.generation for line in c.engines.values()} == {"local", "modern", "old"}
    assert c.engine("vllm_new").gpu_time == 0.79
    assert c.engine("old").overhead == 5.02
    assert c.engine("sglang_new") is c.engine("modern")


def test_offsets_of_class_and_gpu_add_up() -> None:
    both = constants().offsets("H100-SXM-80GB", "Hopper")
    assert (both.weights, both.kv, both.compute, both.layer) == pytest.approx((-0.25, -0.01, -0.04, 0.32))
    assert constants().offsets("new", "new") == Offsets()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("constants",), None, "constants is missing"),
        (("constants", "layer_s"), None, "constants.layer_s is missing"),
        (("constants", "layer_s", "value"), None, "constants.layer_s.value is missing"),
        (("constants", "layer_s", "value"), "fast", "constants.layer_s.value must be a finite number, got 'fast'"),
        (("constants", "layer_s", "value"), math.nan, "must be a finite number, got nan"),
        (("constants", "layer_s", "value"), True, "must be a finite number, got True"),
        (("constants", "layer_s", "value"), -1e-6, "must not be negative"),
        (("constants", "layer_ms"), {"value": 1.0}, "constants.layer_ms is not a constant"),
        (("architectures", "Hopper", "kv"), None, "architectures.Hopper.kv is missing"),
        (("gpus",), [], "gpus must be a mapping"),
        (("engines", "tgi", "gpu_time"), 0, "engines.tgi.gpu_time must be above zero"),
        (("engines", "tgi", "generation"), 3, "engines.tgi.generation must be a name"),
        (("generations", "modern"), None, "generations.modern is missing"),
    ],
)
def test_a_wrong_file_names_the_place(path: tuple[str, ...], value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpeedConstants.from_mapping(changed(path, value))
