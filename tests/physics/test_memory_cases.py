"""The HBM budget against start-up logs of real engines (tests/data/memory/cases.csv)."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import pytest
from memory_inputs import GIB, device, engine_constants, model_shape

from planner.physics.memory import HbmBudget, hbm_budget
from planner.physics.types import Device, Layout

CASES = list(csv.DictReader((Path(__file__).parents[1] / "data" / "memory" / "cases.csv").open()))
WEIGHT_LIMIT = 0.01
LARGE_POOL_LIMIT = 0.015
SMALL_POOL_LIMIT = 0.08
SMALL_POOL_GIB = 5.0


def budget_of(case: dict[str, str]) -> HbmBudget:
    gpu: Device = device(float(case["total_gpu_gib"]))
    return hbm_budget(
        model_shape(case["catalog_model"]),
        gpu,
        Layout(tensor=int(case["tp"]), pipeline=int(case["pp"])),
        case["weights"],
        case["kv"],
        engine_constants(case["engine"], case["engine_version"]),
        int(case["max_num_seqs"]),
        int(case["max_num_batched_tokens"]),
        int(case["max_model_len"]),
        float(case["memory_fraction"]),
        case["chunked_prefill"] == "yes",
    )


def error(predicted: float, measured: str) -> float:
    return predicted / float(measured) - 1.0


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["case_id"])
def test_weights_agree_with_the_log(case: dict[str, str]) -> None:
    limit = 0.011 if case["weights"] == "mxfp4" else WEIGHT_LIMIT
    assert abs(error(budget_of(case).weights_bytes / GIB, case["weights_gib"])) <= limit


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["case_id"])
def test_kv_pool_agrees_with_the_log(case: dict[str, str]) -> None:
    limit = SMALL_POOL_LIMIT if float(case["kv_gib"]) < SMALL_POOL_GIB else LARGE_POOL_LIMIT
    assert abs(error(budget_of(case).kv_pool_bytes / GIB, case["kv_gib"])) <= limit


@pytest.mark.parametrize("case", [c for c in CASES if c["max_concurrency"]], ids=lambda c: c["case_id"])
def test_concurrency_agrees_with_the_log(case: dict[str, str]) -> None:
    limit = SMALL_POOL_LIMIT if float(case["kv_gib"]) < SMALL_POOL_GIB else LARGE_POOL_LIMIT
    assert abs(error(budget_of(case).max_concurrency, case["max_concurrency"])) <= limit


def test_median_errors_are_a_fraction_of_a_percent() -> None:
    budgets = [(budget_of(case), case) for case in CASES]
    assert median(abs(error(b.weights_bytes / GIB, c["weights_gib"])) for b, c in budgets) <= 0.001
    assert median(abs(error(b.kv_pool_bytes / GIB, c["kv_gib"])) for b, c in budgets) <= 0.003
