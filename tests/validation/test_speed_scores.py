"""Predictions of published speeds against the scalar physics, and the errors, bands and counts of the suite's rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from speed_inputs import MEASUREMENTS, read, residuals, scored, shipped, speed, table
from validation_inputs import catalog

from planner.physics.bands import CLASSES, METRICS, Bands
from planner.physics.loads import (
    batch_cap,
    closed_loop,
    decode_step_s,
    lone_prompt_s,
    max_throughput,
    mean_context,
)
from planner.physics.speed import coefficients, step_s
from planner.physics.step import StepCoefficients
from planner.report.validation import speed_data, speed_text
from planner.validation.speed import NAMES, REPORTED_ONLY, fitted_rows, not_fitted, readable, validate_speed
from planner.validation.speed_fit import WEIGHTS
from planner.validation.speed_levels import LEVELLED
from planner.validation.speed_predict import Batch, predict
from planner.validation.speed_rows import SpeedRow

EXACT = 1e-9
LIMITS = {
    "output_tok_s_offline": 0.12,
    "output_tok_s_closed_loop": 0.10,
    "static_latency": 0.16,
    "decode_tok_s_batch1": 0.07,
    "tpot_ms": 0.09,
    "ttft_ms": 0.40,
    "prefill": 0.45,
    "mlperf_offline": 0.055,
}
"""Largest median error of a metric over the suite's rows."""


def predicted(row: SpeedRow) -> float:
    return float(predict(Batch.of([row]), shipped())[0])


def shape(row: SpeedRow) -> StepCoefficients:
    return coefficients(row.arch, row.device, row.layout, row.weights, row.kv, row.engine.name, shipped())


def cap(row: SpeedRow) -> float:
    return batch_cap(
        row.arch, row.device, row.layout, row.weights, row.kv, shipped(), row.prompt_tokens, row.output_tokens,
        reserving=row.engine.reserving, max_sequences=row.max_sequences,
    )  # fmt: skip


def suite_row(scenario: str, statistic: str, gpu: str) -> SpeedRow:
    return next(
        row
        for row in read().rows
        if (row.scenario, row.target.statistic, row.device.name) == (scenario, statistic, gpu)
        and row.prefill_layout is None
    )


@pytest.mark.parametrize(
    ("scenario", "gpu"),
    [
        ("offline_max", "H100-SXM-80GB"),
        ("offline_max", "B200-SXM-180GB"),
        ("offline_max", "MI300X"),
        ("mlperf_offline", "H200-SXM-141GB"),
        ("mlperf_offline", "MI325X"),
    ],
)
def test_an_offline_run_is_the_largest_throughput_of_all_replicas(scenario: str, gpu: str) -> None:
    row = suite_row(scenario, "rate", gpu)
    each = max(row.load / row.replicas, 1.0)
    run = max_throughput(shape(row), cap(row), row.prompt_tokens, row.output_tokens, row.engine.budget_tokens, each)
    assert predicted(row) == pytest.approx(float(run.output_tokens_per_s) * row.replicas, rel=EXACT)


@pytest.mark.parametrize("gpu", ["H100-SXM-80GB", "B200-SXM-180GB", "MI355X", "MI300X", "A10G"])
def test_a_closed_loop_is_that_of_one_replica(gpu: str) -> None:
    row = suite_row("closed_loop", "rate", gpu)
    each = max(row.load / row.replicas, 1.0)
    run = closed_loop(
        shape(row),
        each,
        row.prompt_tokens,
        row.output_tokens,
        cap(row),
        row.engine.budget_tokens,
        shipped().burst_weight,
    )
    assert predicted(row) == pytest.approx(float(run.output_tokens_per_s) * row.replicas, rel=EXACT)


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("statistic", ["ttft_mean", "ttft_p50", "tpot_mean"])
def test_latencies_of_a_closed_loop_are_those_of_one_replica(statistic: str, equal: bool) -> None:
    row = speed(metric=f"{statistic.replace('_', '_ms_')}", notes="uniform lengths" if equal else "")
    run = closed_loop(
        shape(row), row.load, row.prompt_tokens, row.output_tokens, cap(row), row.engine.budget_tokens,
        shipped().burst_weight, equal_lengths=equal,
    )  # fmt: skip
    expected = {"ttft_mean": run.ttft_mean_s, "ttft_p50": run.ttft_median_s, "tpot_mean": run.tpot_s}[statistic]
    assert predicted(row) == pytest.approx(float(expected), rel=EXACT)


@pytest.mark.parametrize("gpu", ["Gaudi2", "H100-SXM-80GB", "MI300X"])
def test_a_static_batch_is_its_prompts_and_then_its_steps(gpu: str) -> None:
    row = suite_row("static_batch", "static", gpu)
    c, batch = shape(row), min(row.load, cap(row))
    total = batch * row.prompt_tokens
    chunk = min(row.engine.budget_tokens, total)
    prompts = c.prefill_factor * float(step_s(c, chunk, 0.0, 0.0, chunk, row.prompt_tokens)) * total / chunk
    step = float(decode_step_s(c, batch, mean_context(row.prompt_tokens, row.output_tokens)))
    seconds = math.ceil(row.load / batch) * (prompts + (row.output_tokens - 1.0) * step)
    assert predicted(row) == pytest.approx(seconds, rel=EXACT)


@pytest.mark.parametrize("gpu", ["RTX-4090", "A40", "H100-PCIe-80GB"])
def test_one_sequence_decodes_a_token_per_step(gpu: str) -> None:
    row = suite_row("batch1", "decode", gpu)
    context = mean_context(row.prompt_tokens, row.output_tokens)
    assert predicted(row) == pytest.approx(1.0 / float(step_s(shape(row), 1.0, 1.0, context)), rel=EXACT)


def test_a_prompt_alone_is_computed_at_once() -> None:
    row = suite_row("batch1", "prompt_rate", "RTX-4090")
    assert predicted(row) == pytest.approx(
        row.prompt_tokens / float(lone_prompt_s(shape(row), row.prompt_tokens)), rel=EXACT
    )


def test_an_idle_open_loop_waits_for_next_to_nothing() -> None:
    slow = {"scenario": "open_loop", "concurrency": "", "request_rate": "0.001"}
    row = speed(**slow, metric="ttft_ms_mean")
    c = shape(row)
    step = float(decode_step_s(c, 1.0, mean_context(row.prompt_tokens, row.output_tokens)))
    alone = c.request_s + float(lone_prompt_s(c, row.prompt_tokens)) + 0.5 * step
    assert predicted(row) == pytest.approx(alone, rel=0.02)


def test_an_open_loop_beyond_capacity_serves_late() -> None:
    def ttft(rate: str) -> float:
        return predicted(speed(scenario="open_loop", concurrency="", request_rate=rate, metric="ttft_ms_mean"))

    assert ttft("1") < ttft("10") < ttft("1000")
    assert ttft("1000") > 5.0


def test_a_burst_ends_with_the_rate_of_an_offline_run() -> None:
    burst = speed(scenario="burst_all_at_once", concurrency="64", metric="tpot_ms_mean")
    offline = speed(scenario="offline_max", concurrency="64")
    first = predicted(speed(scenario="burst_all_at_once", concurrency="64", metric="ttft_ms_mean"))
    seconds = first + burst.output_tokens * predicted(burst)
    assert 64 * burst.output_tokens / seconds == pytest.approx(predicted(offline), rel=0.3)


def test_more_prefill_gpus_never_slow_a_split_deployment() -> None:
    row = next(row for row in read().rows if row.prefill_layout is not None and row.target.statistic == "rate")
    wider = replace(row, prefill_ranks=row.prefill_ranks * 4.0)
    assert predicted(row) <= predicted(wider)


def split(users: str, metric: str, attention_data: bool = False) -> SpeedRow:
    ranks = "true" if attention_data else "false"
    return speed(
        model="deepseek-ai/DeepSeek-R1", gpu="H200 SXM 141GB", weight_dtype="fp8", n_gpus="", tp="", concurrency=users, metric=metric,
        parallel_extra=f"disagg prefill 1x(tp8 ep8 dpattn={ranks}); decode 1x(tp8 ep1 dpattn=false) on 8 GPUs",
    )  # fmt: skip


def test_all_ranks_of_a_split_deployment_compute_prompts() -> None:
    together, apart = (predicted(split("1000", "output_tok_s_total", ranks)) for ranks in (False, True))
    assert 0.5 < apart / together < 2.0


def test_users_of_a_split_deployment_wait_for_prompts_of_others() -> None:
    few, some, many = (predicted(split(users, "ttft_ms_mean")) for users in ("1", "16", "64"))
    assert few < some < many
    assert predicted(split("64", "ttft_ms_p50")) < many


def test_two_copies_of_a_replica_serve_twice_as_much() -> None:
    one, two = speed(concurrency="16"), speed(n_gpus="2", concurrency="32")
    assert two.replicas == 2.0
    assert predicted(two) == pytest.approx(2.0 * predicted(one), rel=EXACT)


def test_rows_are_predicted_alike_alone_and_together() -> None:
    rows = read().rows[::17]
    together = predict(Batch.of(rows), shipped())
    assert together == pytest.approx([predicted(row) for row in rows], rel=EXACT)


def test_rows_taken_from_a_batch_keep_their_predictions() -> None:
    batch = Batch.of(read().rows)
    index = np.arange(len(batch.rows))[::-13]
    taken = batch.take(index)
    assert predict(taken, shipped()) == pytest.approx(predict(batch, shipped())[index], rel=EXACT)
    assert len(taken.deployments) < len(batch.deployments)


def test_every_row_of_the_suite_has_a_prediction() -> None:
    values = predict(Batch.of(read().rows), shipped())
    assert np.all(np.isfinite(values))
    assert np.all(values > 0.0)


@pytest.mark.parametrize("metric", sorted(LIMITS))
def test_errors_lie_under_their_limits(metric: str) -> None:
    rows = [row for row in read().rows if row.target.name == metric]
    assert np.median(np.abs(np.expm1(residuals(rows, shipped())))) <= LIMITS[metric]


def test_every_metric_has_a_limit_or_is_only_reported() -> None:
    assert set(LIMITS) | REPORTED_ONLY == set(NAMES)
    assert set(WEIGHTS) == set(LIMITS)


def test_step_times_are_not_biased() -> None:
    rows = [row for row in read().rows if row.target.name in LEVELLED]
    assert abs(np.median(residuals(rows, shipped()))) < 0.05


@pytest.mark.parametrize("metric", METRICS)
def test_bands_widen_with_what_is_unknown(metric: str) -> None:
    table_of = Bands.from_mapping(catalog().calibration()).by_line
    bands = [table_of[name][metric] for name in CLASSES]
    assert all(1.0 < band.p80 <= band.p95 for band in bands)
    assert [band.p80 for band in bands] == sorted(band.p80 for band in bands)
    assert [band.p95 for band in bands] == sorted(band.p95 for band in bands)


def test_most_rows_lie_inside_their_80_percent_band() -> None:
    told = [of["throughput"] for of in scored().coverage.values() if "throughput" in of]
    rows = sum(n for n, _ in told)
    assert rows == sum(1 for row in read().rows if row.target.name in LEVELLED)
    assert sum(n * share for n, share in told) / rows >= 0.8


def test_first_tokens_lie_inside_their_band_more_often_than_not() -> None:
    told = [of["ttft"] for of in scored().coverage.values() if "ttft" in of]
    assert sum(n for n, _ in told) == scored().metrics["ttft_ms"].rows
    assert sum(n * share for n, share in told) / sum(n for n, _ in told) >= 0.6


def test_skipped_rows_and_scored_rows_are_all_rows() -> None:
    found = scored()
    assert found.rows == len(table().rows)
    assert found.scored + sum(found.skipped.values()) == found.rows
    assert found.scorable == found.scored + found.skipped_scorable
    assert found.skipped_scorable < sum(found.skipped.values())


def test_reasons_are_ordered_by_how_often_they_hold() -> None:
    counts = list(scored().skipped.values())
    assert len(counts) > 3
    assert counts == sorted(counts, reverse=True)


def test_groups_of_a_metric_hold_all_its_rows_worst_first() -> None:
    per_metric = Counter(row.target.name for row in read().rows)
    for name, metric in scored().metrics.items():
        assert metric.rows == sum(group.n for group in metric.groups) == per_metric[name]
        medians = [group.median_ape for group in metric.groups]
        assert medians == sorted(medians, reverse=True)
        assert metric.mean_of_group_medians == pytest.approx(np.mean(medians))
        assert metric.modern_groups <= len(metric.groups)


def test_a_rank_is_a_correlation_and_none_for_few_rows() -> None:
    groups = [group for metric in scored().metrics.values() for group in metric.groups]
    assert all(group.rank is None for group in groups if group.n < 4)
    ranks = [group.rank for group in groups if group.rank is not None]
    assert ranks
    assert all(-1.0 <= rank <= 1.0 + 1e-12 for rank in ranks)
    assert np.median(ranks) > 0.8


def test_a_group_is_summed_up_by_median_bias_and_ninth_decile() -> None:
    base = speed()
    truth = predicted(base)
    rows = tuple(replace(base, value=truth / factor) for factor in (0.5, 0.9, 1.1, 1.2, 1.3))
    group = validate_speed(replace(read(), rows=rows), catalog()).metrics["output_tok_s_closed_loop"].groups[0]
    assert group.median_ape == pytest.approx(0.2)
    assert group.bias == pytest.approx(0.1)
    assert group.p90_ape == pytest.approx(0.3 + 0.6 * 0.2)


def test_the_answer_as_data_has_the_keys_of_the_contract() -> None:
    data = json.loads(json.dumps(speed_data(scored()), allow_nan=False))
    assert set(data) == {
        "kind", "rows", "scorable", "scored", "skipped", "skipped_scorable", "left_out", "metrics", "band_coverage",
        "worst",
    }  # fmt: skip
    assert list(data["metrics"]) == [name for name in NAMES if name in data["metrics"]]
    for metric in data["metrics"].values():
        assert set(metric) == {"rows", "mean_of_group_medians", "modern_engines", "groups"}
        assert set(metric["modern_engines"]) == {"groups", "mean_of_group_medians"}
        assert set(metric["groups"][0]) == {
            "source", "gpu", "n", "median_ape", "p90_ape", "bias", "coverage80", "rank_correlation",
        }  # fmt: skip
    for of in data["band_coverage"].values():
        assert all(set(told) == {"rows", "coverage80"} for told in of.values())


def test_the_answer_as_text_states_counts_and_reasons() -> None:
    lines = speed_text(scored())
    found = scored()
    assert lines[0] == f"{found.rows} speed measurements: {found.scorable} scorable, {found.scored} scored"
    reason, count = next(iter(found.skipped.items()))
    assert any(line.startswith(f"  {count} x {reason} ({MEASUREMENTS}:") for line in lines)


def test_nothing_to_score_is_an_answer_too() -> None:
    nothing = validate_speed(
        readable([{"model": "", "gpu": "", "scenario": "", "metric": "", "value": ""}], catalog()), catalog()
    )
    assert (nothing.rows, nothing.scored, nothing.metrics, nothing.coverage) == (1, 0, {}, {})
    assert speed_text(nothing)[0].endswith(": 0 scorable, 0 scored")


@pytest.mark.parametrize(
    ("full", "metrics"),
    [(False, {"ttft_ms", "prefill", "tail_ms", "mlperf_latency"}), (True, {"tail_ms", "mlperf_latency"})],
)
def test_rows_that_no_fit_uses_are_counted_by_metric(full: bool, metrics: set[str]) -> None:
    found = not_fitted(read(), full)
    assert {skip.reason.partition(":")[0] for skip in found} == metrics
    assert len(fitted_rows(read(), full)) + len(found) == len(read().rows)
    assert all(skip.place.startswith(f"{MEASUREMENTS}:") for skip in found)
