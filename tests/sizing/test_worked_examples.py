"""Public textbook figures of serving and training memory, printed by the calculators to the digits shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.cli.size import app

RUNNER = CliRunner()
LLAMA_3_8B = ("--model", "llama-3-8b")
H100 = ("--gpu", "h100-sxm")
A100_40 = ("--gpu", "a100-sxm-40gb")
CONCURRENCY = ("concurrency", "--model", "llama-2-7b", "--params", "7B", *A100_40, "--weights-memory", "14", "--workspace", "2")  # fmt: skip


def rows(*arguments: str) -> list[dict[str, Any]]:
    """Return the rows of a calculator."""
    done = RUNNER.invoke(app, [*arguments, "--format", "json"])
    assert done.exit_code == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["schema_version"] == 1
    return list(answer["rows"])


def row(*arguments: str) -> dict[str, Any]:
    """Return the one row of a calculator."""
    (only,) = rows(*arguments)
    return only


def shown(value: float, figure: str) -> bool:
    """Tell whether a value is a figure to the digits that the figure shows."""
    decimals = len(figure.partition(".")[2])
    return abs(value - float(figure)) <= 0.5 * 10**-decimals * (1 + 1e-9)


# 1. KV cache


def test_a_token_of_llama_3_8b() -> None:
    answer = row("kv", *LLAMA_3_8B)

    assert (answer["elements_per_token"], answer["bytes_per_token"]) == (65_536, 131_072)
    assert shown(answer["weights_gb"], "16.06")


@pytest.mark.parametrize(
    ("context", "batch", "gigabytes", "percent"),
    [
        (2_048, 1, "0.27", "2"),
        (8_192, 1, "1.07", "7"),
        (8_192, 32, "34.36", "214"),
        (8_192, 64, "68.72", "428"),
        (32_768, 1, "4.29", "27"),
        (128_000, 1, "16.78", "104"),
    ],
)
def test_kv_beside_the_weights(context: int, batch: int, gigabytes: str, percent: str) -> None:
    answer = row("kv", *LLAMA_3_8B, "--context", str(context), "--batch", str(batch))

    assert shown(answer["kv_gb"], gigabytes)
    assert shown(100 * answer["kv_over_weights_share"], percent)


def test_full_attention_caches_four_times_as_much() -> None:
    assert shown(row("kv", *LLAMA_3_8B, "--kv-heads", "32", "--context", "8192", "--batch", "32")["kv_gb"], "137.4")
    assert row("kv", *LLAMA_3_8B)["saving_over_multi_head"] == 4
    assert row("kv", *LLAMA_3_8B, "--kv-heads", "1")["saving_over_multi_head"] == 32


def test_narrow_formats_halve_and_quarter_the_cache() -> None:
    sizes = [r["bytes_per_token"] for r in rows("kv", *LLAMA_3_8B, "--kv", "bf16,fp8,int8,int4")]

    assert sizes == [131_072, 65_536, 65_536, 32_768]


def test_llama_2() -> None:
    short, long = rows("kv", "--model", "llama-2-7b", "--context", "4000,32000")

    assert short["bytes_per_token"] == 524_288
    assert shown(short["kv_gb"], "2.10")
    assert shown(long["kv_gb"], "16.8")
    assert row("kv", "--model", "llama-2-70b")["saving_over_multi_head"] == 8


def test_a_model_stated_by_its_shape_alone() -> None:
    shape = ("--layers", "32", "--heads", "32", "--kv-heads", "8", "--head-dim", "128")

    assert row("kv", *shape)["bytes_per_token"] == 131_072


# 2. Decode ceiling


def test_a_70b_in_int8_on_an_h100() -> None:
    answer = row("decode", "--params", "70B", "--weights", "int8", *H100)

    assert shown(answer["weights_ceiling_tok_s"], "47.9")
    assert answer["expected_low_tok_s"] == pytest.approx(0.70 * answer["ceiling_tok_s"])
    assert answer["expected_high_tok_s"] == pytest.approx(0.85 * answer["ceiling_tok_s"])


@pytest.mark.parametrize(
    ("model", "params", "ceilings"),
    [
        ("mistralai/Mistral-7B-v0.1", "7.24e9", ("231", "463", "925")),
        ("llama-3-8b", "8.03e9", ("209", "417", "834")),
        ("llama-3-70b", "70.6e9", ("24", "47", "95")),
    ],
)
@pytest.mark.parametrize("stated", [False, True], ids=["catalog", "stated"])
def test_ceilings_at_batch_one(model: str, params: str, ceilings: tuple[str, ...], stated: bool) -> None:
    about = ("--params", params) if stated else ("--model", model)
    answers = rows("decode", *about, *H100, "--weights", "bf16,int8,int4")

    assert all(shown(a["weights_ceiling_tok_s"], c) for a, c in zip(answers, ceilings, strict=True))


def test_gpus_compare_by_bandwidth_and_not_by_compute() -> None:
    _, answer = rows("decode", "--params", "7B", "--gpu", "a100-sxm-40gb,h100-sxm")

    assert shown(answer["bandwidth_over_first"], "2.15")
    assert shown(answer["compute_over_first"], "3.17")


def test_the_cache_counts_too() -> None:
    assert shown(row("decode", "--params", "7B", *A100_40, "--kv-memory", "16GB")["kv_ms"], "10.3")


# 3. Intensity


def test_ridges() -> None:
    h100, a100 = rows("intensity", "--gpu", "h100-sxm,a100-sxm-40gb", "--weights", "bf16")

    assert shown(h100["ridge_flop_per_byte"], "295")
    assert shown(a100["ridge_flop_per_byte"], "200.6")


def test_regimes_by_batch() -> None:
    answers = rows("intensity", *H100, "--batch", "1,8,32,128,256,295,512,1024")

    assert [a["regime"] for a in answers] == ["memory-bound"] * 5 + ["balanced"] + ["compute-bound"] * 2
    assert [a["decode_flop_per_byte"] for a in answers] == [1, 8, 32, 128, 256, 295, 512, 1024]


def test_attention_stays_at_one_or_two_whatever_the_batch() -> None:
    answers = rows("intensity", *H100, "--batch", "1,1024", "--kv", "bf16,int8")

    assert [a["attention_flop_per_byte"] for a in answers] == [1, 2, 1, 2]


def test_a_long_prompt_is_compute_bound() -> None:
    assert row("intensity", *H100, "--context", "8192")["prefill_regime"] == "compute-bound"


# 4. HBM budget


def test_a_13b_on_an_a100_with_40_gb() -> None:
    answer = row("hbm", "--params", "13B", "--weights", "fp16", *A100_40, "--workspace", "2GB")

    assert (answer["weights_gb"], answer["kv_room_gb"], answer["workspace_gb"]) == (26, 12, 2)
    shares = (answer["weights_share"], answer["kv_room_share"], answer["workspace_share"])
    assert shares == pytest.approx((0.65, 0.30, 0.05))


def test_what_fits_one_gpu() -> None:
    wide, narrow = rows("hbm", "--params", "70B", *H100, "--weights", "bf16,int8")
    small = row("hbm", "--params", "7B", "--weights", "fp16", "--memory", "8GB")

    assert (wide["weights_gb"], wide["fits"]) == (140, False)
    assert (narrow["after_weights_gb"], narrow["fits"]) == (10, True)
    assert (small["weights_gb"], small["fits"]) == (14, False)


def test_real_parts_stand_beside_the_rule() -> None:
    answer = row("hbm", *LLAMA_3_8B, *H100, "--context", "8192")
    parts = ("weights", "kv_pool", "activations", "runtime", "graphs", "outside")

    assert answer["workspace_gb"] == 8
    assert answer["engine"].startswith("vllm ")
    assert sum(answer[f"engine_{part}_gb"] for part in parts) == pytest.approx(answer["engine_usable_gb"])


# 5. Concurrency


def test_sequences_counted_in_gib() -> None:
    answers = rows(*CONCURRENCY, "--context", "4096,8192", "--kv", "fp16,int8,int4", "--units", "GiB")

    assert [a["sequences"] for a in answers] == [12, 24, 48, 6, 12, 24]
    assert {a["units"] for a in answers} == {"GiB"}
    assert (answers[0]["kv_room_gib"], answers[0]["sequence_gib"]) == (24, 2)


def test_sequences_counted_in_gb() -> None:
    answer = row(*CONCURRENCY, "--context", "4096", "--units", "GB")

    assert (answer["units"], answer["kv_room_gb"], answer["sequences"]) == ("GB", 24, 11)
    assert shown(answer["sequence_gb"], "2.147")


def test_a_step_of_twelve_sequences() -> None:
    answer = row(*CONCURRENCY, "--context", "4096", "--units", "GiB")
    traffic = answer["kv_traffic_gib"] * 2**30 / 1e9
    weights = answer["weights_traffic_gib"] * 2**30 / 1e9

    assert shown(traffic, "25.8")
    assert shown(answer["kv_alone_ms"], "16.6")
    assert shown(answer["kv_alone_tok_s"], "724")
    assert shown(weights, "14")
    assert shown(traffic + weights, "39.8")
    assert shown(answer["step_ms"], "25.6")
    assert shown(answer["tok_s"], "469")


def test_texts_that_round_the_cache_to_24_gb() -> None:
    answer = row("decode", "--params", "7B", *A100_40, "--batch", "12", "--kv-memory", "24GB")

    assert shown(answer["kv_ms"], "15.4")
    assert shown(answer["kv_alone_tok_s"], "778")
    assert shown(answer["step_ms"], "24.4")
    assert shown(answer["ceiling_tok_s"], "491")


def test_a_longer_context_halves_the_sequences_and_keeps_the_traffic() -> None:
    short, long = rows(*CONCURRENCY, "--context", "4096,8192", "--units", "GiB")

    assert short["sequences"] == 2 * long["sequences"]
    assert short["kv_traffic_gib"] == long["kv_traffic_gib"]


# 6. Techniques


def test_waste_of_a_reservation_and_of_pages() -> None:
    answer = row("kv", "--model", "llama-2-7b", "--context", "100", "--reserve", "8192")

    assert int(100 * answer["contiguous_waste_share"]) == 98
    assert answer["paged_waste_share"] == pytest.approx(12 / 112)


# 7. Training

TRAINING = ("training", *LLAMA_3_8B, "--batch", "8")
BOUNDARY_GB = 8 * 4096 * 4096 * 2 / 1e9


def test_activations_of_a_forward_pass() -> None:
    short, long = rows(*TRAINING, "--context", "4096,8192")

    assert shown(short["activations_gb"], "137.4")
    assert shown(long["activations_gb"], "274.9")
    assert shown(short["parameters_gb"], "16.06")
    assert short["parameters_gb"] == long["parameters_gb"]


def test_scores_of_attention_that_is_not_fused() -> None:
    fused, full = rows(*TRAINING, "--attention", "fused,full")

    assert full["activations_gb"] - fused["activations_gb"] == pytest.approx(32 * 8 * 32 * 4096**2 * 2 / 1e9)


def test_checkpoints() -> None:
    answers = rows(*TRAINING, "--checkpoint", "none,layer,sqrt")

    assert answers[1]["activations_gb"] == pytest.approx((32 + 16) * BOUNDARY_GB)
    assert answers[2]["activations_gb"] == pytest.approx((6 + 6 * 16) * BOUNDARY_GB)
    assert [round(100 * a["recompute_share"]) for a in answers] == [0, 33, 33]


def test_selective_checkpoints_drop_the_scores_for_little_compute() -> None:
    none, selective = rows(*TRAINING, "--attention", "full", "--checkpoint", "none,selective")
    fused = row(*TRAINING)

    assert none["activations_gb"] > selective["activations_gb"] > fused["activations_gb"]
    assert 0 < selective["recompute_share"] < 0.1


def test_adam_in_mixed_precision_and_zero() -> None:
    answers = rows("training", *LLAMA_3_8B, "--gpus", "8", "--zero", "0,1,2,3")
    states = [(a["parameters_gb"], a["gradients_gb"], a["optimizer_gb"]) for a in answers]
    whole = (16.06, 16.06, 96.36)
    divisors = [(1, 1, 1), (1, 1, 8), (1, 8, 8), (8, 8, 8)]

    expected = [tuple(w / d for w, d in zip(whole, each, strict=True)) for each in divisors]
    assert [pytest.approx(e) for e in expected] == states


def test_a_link_of_pcie_5_is_52_times_slower_than_hbm() -> None:
    answer = row(*TRAINING, *H100, "--offload", "optimizer")

    assert shown(answer["hbm_over_tier"], "52")
    assert answer["transfer_ms"] == pytest.approx(8.03e9 * 4 / 64e9 * 1e3)
    assert shown(row("offload", *LLAMA_3_8B, *H100)["hbm_over_host"], "52")


def test_remedies_come_in_order() -> None:
    roomy = ("--memory", "150GB")
    checkpoint = row(*TRAINING, *H100, *roomy)["remedy"]
    offload = row(*TRAINING, *H100)["remedy"]
    shard = row(*TRAINING, *H100, "--memory", "24GB")["remedy"]

    assert checkpoint == "checkpoint layer (33 % more compute)"
    assert offload == "checkpoint layer (33 % more compute), offload optimizer"
    assert "ZeRO" in shard


# 8. Offload


def test_a_step_is_the_sum_of_both_parts() -> None:
    answer = row("offload", "--params", "70B", "--weights", "int8", *H100, "--cpu-weights", "30%")

    assert answer["hbm_ms"] == pytest.approx(49 / 3350 * 1e3)
    assert answer["host_ms"] == pytest.approx(21 / 64 * 1e3)
    assert answer["step_ms"] == pytest.approx(answer["hbm_ms"] + answer["host_ms"])
    assert answer["ceiling_tok_s"] == pytest.approx(1e3 / answer["step_ms"])


# 9. Advice


@pytest.mark.parametrize(
    "arguments",
    [
        ("kv", *LLAMA_3_8B),
        ("decode", *LLAMA_3_8B, *H100),
        ("intensity", *H100),
        ("hbm", *LLAMA_3_8B, *H100),
        ("concurrency", *LLAMA_3_8B, *H100),
        ("training", *LLAMA_3_8B, *H100),
        ("offload", *LLAMA_3_8B, *H100),
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_answer_ends_with_the_scarce_resource_and_the_lever(arguments: tuple[str, ...]) -> None:
    answer = row(*arguments)

    assert list(answer)[-2:] == ["scarce", "lever"]
    assert answer["lever"]
    table = RUNNER.invoke(app, list(arguments)).stdout
    assert table.splitlines()[-1] == f"scarce: {answer['scarce']}; lever: {answer['lever']}"
