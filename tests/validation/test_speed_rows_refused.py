"""Rows of published speeds that are not scored: what is impossible, unreadable or not modelled, and the reason given."""

from __future__ import annotations

import pytest
from speed_inputs import speed, speed_cells
from validation_inputs import catalog

from planner.physics.types import Layout
from planner.validation.cells import PLACE, NotScored
from planner.validation.speed import readable

SPLIT = "disagg prefill {pn}x(tp{pt} ep1 dpattn={pd}) on 8 GPUs; decode {dn}x(tp{dt} ep1 dpattn={dd}) on {dg} GPUs"


def refused(**changes: str) -> NotScored:
    with pytest.raises(NotScored) as caught:
        speed(**changes)
    return caught.value


@pytest.mark.parametrize(
    ("scenario", "metric", "reason"),
    [
        ("closed_loop", "ttft_ms_unspecified", "is without a defined statistic, or not modelled"),
        ("closed_loop", "output_tok_s_unspecified_scope", "is without a defined statistic"),
        ("closed_loop_spec_decode", "output_tok_s_total", "speculative decoding is not modelled"),
        ("closed_loop", "e2e_latency_ms_p50", "is without a defined statistic"),
        ("closed_loop", "ttft_ms_p90", "metric `ttft_ms_p90` is without a defined statistic, or not modelled"),
        ("closed_loop", "itl_fit_slope_ms_per_token", "is without a defined statistic"),
        ("closed_loop", "tpot_ms_men", "did you mean `tpot_ms_mean`?"),
        ("offline_max", "total_tok_s", "is without a defined statistic"),
        ("offline_max", "ttft_ms_mean", "`ttft_ms_mean` is not scored in scenario offline_max"),
        ("offline_max", "req_s", "is without a defined statistic"),
        ("open_loop", "output_tok_s_total", "is not scored in scenario open_loop"),
        ("mlperf_server", "output_tok_s_total", "is not scored in scenario mlperf_server"),
        ("batch1", "output_tok_s_total", "is not scored in scenario batch1"),
        ("closed-loop", "decode_tok_s_batch1", "unknown scenario `closed-loop`; did you mean `closed_loop`?"),
        ("mlperf_offlin", "output_tok_s_total", "unknown scenario `mlperf_offlin`; did you mean `mlperf_offline`?"),
        ("zzz", "output_tok_s_total", "unknown scenario `zzz`; known: offline_max, closed_loop"),
        ("", "", "no scenario is named"),
        ("closed_loop", "", "no metric is named"),
    ],
)
def test_other_metrics_are_not_scored(scenario: str, metric: str, reason: str) -> None:
    caught = refused(scenario=scenario, metric=metric)
    assert reason in caught.reason
    assert not caught.scorable


@pytest.mark.parametrize(
    ("changes", "reason", "scorable"),
    [
        ({"value": ""}, "no value is stated", True),
        ({"value": "0"}, "value 0 is no positive number", True),
        ({"value": "inf"}, "value `inf` is no number", True),
        ({"value": "1,500"}, "value `1,500` is no number", True),
        ({"gpu": ""}, "no GPU is named", False),
        ({"gpu": "Voodoo 2"}, "GPU Voodoo 2: not in the catalog", True),
        ({"gpu": "MI250"}, "GPU MI250: no figures", True),
        ({"model": ""}, "no model is named", False),
        ({"model_inferred": "Yes"}, "the model is inferred", False),
        ({"model": "acme/roadrunner-7b"}, "model acme/roadrunner-7b: not in the catalog", True),
        ({"engine": ""}, "engine not named", True),
        ({"engine": "aphrodite"}, "engine aphrodite: no class", True),
        ({"weight_dtype": "fp3"}, "weight format fp3: not known", True),
        ({"tp": "two"}, "tp `two` is no number", True),
        ({"tp": "1.5"}, "tp 1.5 is no count", True),
        ({"pp": "-1"}, "pp -1 is no count", True),
        ({"tp": "65"}, "more than 64 GPUs", True),
        ({"parallel_extra": "DEP128"}, "more than 64 GPUs", True),
        ({"parallel_extra": "disagg, somehow"}, "disaggregated deployment is not readable", True),
        ({"isl": ""}, "no prompt length", False),
        ({"osl": ""}, "no output length", False),
        ({"scenario": "mlperf_offline", "isl": "", "model": "mistralai/Mistral-7B-v0.1"}, "no prompt length", False),
        ({"concurrency": ""}, "no concurrency", False),
        ({"scenario": "static_batch"}, "no batch", False),
        ({"scenario": "open_loop", "metric": "ttft_ms_mean"}, "no request rate", False),
        ({"metric": "decode_tok_s_batch1", "value": "1e6"}, "impossible", False),
        ({"concurrency": "1", "value": "2000"}, "impossible", False),
        ({"concurrency": "16", "value": "20000"}, "impossible", False),
        ({"scenario": "static_batch", "concurrency": "", "batch": "1", "value": "2000"}, "impossible", False),
        ({"concurrency": "32", "isl": "1000", "osl": "1", "value": "2500"}, "impossible", False),
        ({"concurrency": "32", "isl": "100000", "osl": "500", "value": "2500"}, "impossible", False),
        ({"scenario": "offline_max", "isl": "100000", "osl": "500", "value": "2500"}, "impossible", False),
        (
            {"model": "meta-llama/Llama-3.1-405B"},
            "impossible: meta-llama/Llama-3.1-405B-Instruct in bf16 takes 756 GiB of weights, 1 x H100-SXM-80GB hold 79 GiB",
            False,
        ),
        ({"model": "meta-llama/Llama-3.1-405B", "tp": "", "n_gpus": "8"}, "8 x H100-SXM-80GB hold 633 GiB", False),
        (
            {"isl": "131000"},
            "prompt and output of 131,200 tokens, meta-llama/Llama-3.1-8B-Instruct takes 131,072",
            False,
        ),
        ({"tp": "3", "n_gpus": "3"}, "impossible: tp 3 does not divide the 32 heads", True),
        ({"pp": "33", "n_gpus": "33"}, "impossible: pp 33 is more than the 32 layers", True),
        ({"isl": "1k"}, "isl `1k` is no number", True),
        ({"isl": "0"}, "isl 0 is no length in tokens", True),
        ({"isl": "0.5"}, "isl 0.5 is no length in tokens", True),
        ({"date": "banana"}, "date `banana` is no date (as in 2025-11)", True),
        ({"date": "2025-13"}, "date `2025-13` is no date", True),
        ({"date": "2025-02-30"}, "date `2025-02-30` is no date", True),
        ({"date": "11/2025"}, "date `11/2025` is no date", True),
        ({"osl": "-5"}, "osl -5 is no length in tokens", True),
        ({"concurrency": "1e30"}, "concurrency 1e30 is no number of requests in flight (at most 10,000,000)", True),
        ({"batch": "lots"}, "batch `lots` is no number", True),
        ({"request_rate": "fast"}, "request_rate `fast` is no number", True),
        ({"n_gpus": "two"}, "n_gpus `two` is no number", True),
        ({"kv_dtype": "fp3"}, "KV format fp3: not known", True),
        ({"gpu": "H100"}, "GPU H100 is not one of the catalog: it could mean H100-NVL-94GB, H100-PCIe-80GB", True),
        ({"gpu": "H100-SMX-80GB"}, "not in the catalog; did you mean H100-SXM-80GB", True),
    ],
)
def test_what_cannot_be_scored_says_why(changes: dict[str, str], reason: str, scorable: bool) -> None:
    caught = refused(**changes)
    assert reason in caught.reason
    assert caught.scorable is scorable


def test_prompts_may_come_from_a_prefix_cache_and_from_other_gpus() -> None:
    assert speed(concurrency="32", isl="10000", osl="500", value="2500").value == 2500.0
    split = SPLIT.format(pn=8, pt=1, pd="false", dn=1, dt=8, dd="false", dg=8)
    assert speed(concurrency="320", isl="100000", osl="500", value="2500", parallel_extra=split, n_gpus="16").value


def test_what_is_not_stated_is_not_called_impossible() -> None:
    large = {"model": "meta-llama/Llama-3.1-405B", "value": "50"}
    assert speed(**large, n_gpus="", tp="").layout == Layout(1)
    assert speed(**large, engine="llama.cpp b6000").layout == Layout(1)
    exl2 = {"model": "meta-llama/Llama-2-70b-hf", "weight_dtype": "EXL2 2.5 bpw", "gpu": "RTX 4090 24GB"}
    assert speed(**exl2, engine="ExLlamaV2", value="20").weights == "q3_k_m"


def test_a_rate_without_bound_is_a_blank_where_none_is_needed() -> None:
    assert speed(request_rate="inf").load == 16.0
    assert refused(scenario="open_loop", metric="ttft_ms_mean", request_rate="inf").reason == "no request rate"


def test_a_decode_may_start_from_an_empty_cache() -> None:
    row = speed(scenario="batch1", metric="decode_tok_s_batch1", value="50", isl="0")
    assert row.prompt_tokens == 512.0


def test_a_reason_is_one_printable_line() -> None:
    assert refused(gpu="Voo\ndoo\x1b[31m 2").reason.isprintable()


def test_a_row_that_is_there_twice_counts_once() -> None:
    again = {**speed_cells(), PLACE: "b.csv:2", "comment": ""}
    found = readable([speed_cells(), again, speed_cells(source="other"), speed_cells(value="1501")], catalog())
    assert len(found.rows) == 3
    assert [(s.place, s.scorable) for s in found.skips] == [("b.csv:2", False)]
    assert found.skips[0].reason.startswith("counted once: the same row")


def test_rows_are_numbered_as_in_the_file() -> None:
    found = readable([speed_cells(gpu=""), speed_cells(), speed_cells(value="x"), speed_cells(isl="900")], catalog())
    assert [row.row for row in found.rows] == [3, 5]
    assert (found.total, [s.scorable for s in found.skips]) == (4, [False, True])
