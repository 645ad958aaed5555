"""Remedies: every one that is named makes the deployment fit, and the cheapest come first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from estimate_cases import CATALOG, GPT_OSS, H100, LLAMA_8B, LLAMA_70B, LLAMA_405B_FP8, R1, VLM_8B, deployed

from planner.cli.estimate_options import tokens, utilization
from planner.estimate.deployment import Deployment, deploy, refusal
from planner.estimate.memory import fit, fits
from planner.estimate.notes import notes
from planner.estimate.remedies import Cost, remedies
from planner.physics.memory import Lora

CASES: list[tuple[str, str, dict[str, Any]]] = [
    (GPT_OSS, H100, {}),
    (GPT_OSS, H100, {"max_num_batched_tokens": 512, "max_model_len": 131072}),
    (GPT_OSS, "A100-SXM-40GB", {"max_num_batched_tokens": 512}),
    (LLAMA_8B, "L4", {"max_num_batched_tokens": 200}),
    (LLAMA_8B, "RTX-3090", {"chunked_prefill": False, "max_num_batched_tokens": 29_000, "max_model_len": 29_000}),
    (GPT_OSS, H100, {"max_model_len": 131072}),
    (R1, H100, {"tensor": 8}),
    (LLAMA_70B, H100, {}),
    (LLAMA_70B, H100, {"tensor": 2}),
    (LLAMA_70B, "L4", {"tensor": 8, "input_tokens": 20_000}),
    (LLAMA_405B_FP8, H100, {"tensor": 8, "max_model_len": 131072}),
    (LLAMA_8B, "RTX-3090", {"engine_version": "0.6", "max_model_len": 29_000}),
    (LLAMA_8B, "T4", {}),
    (VLM_8B, "L4", {}),
    (VLM_8B, "L4", {"images": 30, "videos": 30}),
    (LLAMA_70B, H100, {"engine": "sglang", "tensor": 2}),
    (LLAMA_70B, H100, {"engine": "tensorrt-llm", "tensor": 2, "max_model_len": 131072}),
    (LLAMA_8B, "RTX-4090", {"engine": "llama.cpp", "weights": "fp16", "max_num_seqs": 8}),
    ("deepseek-ai/DeepSeek-V2-Chat", "L40S", {"tensor": 8}),
]
ORDER = list(Cost)


@pytest.mark.parametrize(("model", "gpu", "asked"), CASES, ids=lambda value: str(value)[:40])
def test_every_remedy_fits_and_says_how(model: str, gpu: str, asked: dict[str, Any]) -> None:
    d = deployed(model, gpu, **asked)
    found = remedies(d, CATALOG)

    assert not fits(d)
    assert found
    for remedy in found:
        assert fit(remedy.deployment).fits
        assert fit(remedy.deployment).budget == remedy.fit.budget
        assert followed(d, remedy.flags) == settings_of(remedy.deployment), remedy.flags
        assert refusal(remedy.deployment) is None
        assert remedy.deployment.max_num_seqs <= remedy.deployment.max_num_batched_tokens or d.engine.name != "vllm"
    ranks = [ORDER.index(remedy.cost) for remedy in found]
    assert ranks == sorted(ranks)


def settings_of(d: Deployment) -> tuple[object, ...]:
    """Everything that a remedy may change."""
    return (
        d.device.name, d.layout.tensor, d.layout.expert, d.weights, d.kv, d.utilization, d.max_model_len, d.max_num_seqs,
        d.max_num_batched_tokens, d.chunks, d.images, d.videos,
    )  # fmt: skip


def followed(d: Deployment, flags: str) -> tuple[object, ...]:
    """Return the settings of a deployment that is asked for anew with the flags of a remedy added."""
    names = {"--tp": "tensor", "--ep": "expert", "--weights": "weights", "--kv": "kv"}
    names |= {"--gpu-memory-utilization": "utilization", "--chunked-prefill": "chunked_prefill"}
    asked, gpu = d.asked, d.device.name
    parts = flags.split()
    while parts:
        flag = parts.pop(0)
        if flag == "--chunked-prefill":
            asked = replace(asked, chunked_prefill=True)
            continue
        text = parts.pop(0)
        name = names.get(flag, flag.removeprefix("--").replace("-", "_"))
        if name == "gpu":
            gpu = text
        elif name in ("weights", "kv"):
            asked = replace(asked, **{name: text})
        elif name == "utilization":
            asked = replace(asked, utilization=utilization(flag, text))
        else:
            asked = replace(asked, **{name: int(text) if name in ("images", "videos") else tokens(flag, text)})
    return settings_of(deployed_again(d, gpu, asked))


def deployed_again(d: Deployment, gpu: str, asked: Any) -> Deployment:
    """Deploy a changed request."""
    return deploy(asked, CATALOG, d.model, gpu)


def test_one_change_is_named_where_it_is_enough() -> None:
    found = remedies(deployed(GPT_OSS, H100), CATALOG)

    assert len(found) > 1
    assert not any(", and " in remedy.change for remedy in found)


def test_a_pair_is_named_where_no_change_is_enough_alone() -> None:
    d = deployed("moonshotai/Kimi-K2-Instruct", "T4")
    (pair,) = remedies(d, CATALOG)
    first, second = pair.flags.split(" --gpu ")

    assert pair.fit.fits
    assert ", and " in pair.change
    assert first == "--tp 4"
    assert not fits(deployed(d.model, "T4", tensor=4))
    assert not fits(deployed(d.model, second))
    assert not fits(deployed(d.model, second, tensor=2))


def test_nothing_is_named_where_nothing_helps() -> None:
    assert remedies(deployed(LLAMA_8B, "T4", lora=Lora(10_000, 10_000)), CATALOG) == []


@pytest.mark.parametrize(("fraction", "way"), [(0.5, "raise"), (0.99, "lower")])
def test_sglang_fractions_go_both_ways(fraction: float, way: str) -> None:
    """Its fraction holds weights and cache: up when they do not load, down when what runs beside them has no room."""
    d = deployed(LLAMA_8B, "RTX-4090", engine="sglang", utilization=fraction, max_model_len=8192)
    found = [r for r in remedies(d, CATALOG) if r.flags.startswith("--gpu-memory-utilization")]

    assert not fits(d)
    assert [r.change.split()[0] for r in found] == [way]
    assert "mem_fraction_static" in found[0].change
    assert any("raise it when the model does not load" in note for note in notes(fit(d), CATALOG))


def test_a_larger_gpu_takes_its_own_batch_cap() -> None:
    larger = [r for r in remedies(deployed(LLAMA_8B, "T4"), CATALOG) if r.flags.startswith("--gpu ")]

    assert larger
    assert larger[0].deployment.max_num_seqs in (256, 1024)
