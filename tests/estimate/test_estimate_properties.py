"""What must hold for any deployment: more memory, more GPUs and shorter sequences never make it fit worse."""

from __future__ import annotations

from dataclasses import replace

from estimate_cases import CATALOG, GPT_OSS, LLAMA_8B, LLAMA_70B, R1, VLM_8B, deployed
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.estimate.deployment import Deployment, legal_tensor_degrees
from planner.estimate.memory import fit
from planner.estimate.remedies import remedies

MODELS = [LLAMA_8B, LLAMA_70B, R1, GPT_OSS, VLM_8B, "google/gemma-3-27b-it", "Qwen/Qwen3-Next-80B-A3B-Instruct"]
GPUS = ["H100-SXM-80GB", "H200-SXM-141GB", "L4", "A100-SXM-40GB", "MI300X"]
some = settings(max_examples=80, derandomize=True, deadline=None)


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """A deployment of some model, fitting or not."""
    model = draw(st.sampled_from(MODELS))
    chunked = draw(st.sampled_from([None, True, False]))
    steps = None if chunked is False else draw(st.sampled_from([512, 2048, 8192, 32768]))
    degrees = [d for d in legal_tensor_degrees(CATALOG.architecture(model)) if d & (d - 1) == 0 and d <= 16]
    return deployed(
        model,
        draw(st.sampled_from(GPUS)),
        tensor=draw(st.sampled_from(degrees)),
        kv=draw(st.sampled_from(["bf16", "fp8"])),
        utilization=draw(st.floats(0.3, 1.0)),
        max_model_len=draw(st.integers(1, CATALOG.architecture(model).max_position)),
        max_num_batched_tokens=steps,
        chunked_prefill=chunked,
    )


@some
@given(deployments(), st.floats(0.0, 0.5))
def test_a_higher_fraction_never_shrinks_the_pool(d: Deployment, more: float) -> None:
    higher = d.changed(utilization=min(d.utilization + more, 1.0))

    assert fit(higher).budget.kv_pool_bytes >= fit(d).budget.kv_pool_bytes


@some
@given(deployments(), st.floats(0.0, 1.0))
def test_a_shorter_length_never_fits_worse(d: Deployment, share: float) -> None:
    shorter = d.changed(max_model_len=max(1, int(d.max_model_len * share)))

    assert fit(shorter).short_bytes <= fit(d).short_bytes
    assert not (fit(d).fits and not fit(shorter).fits)


@some
@given(deployments())
def test_more_tensor_ranks_never_hold_more_weights_each(d: Deployment) -> None:
    double = 2 * d.layout.tensor
    if double in legal_tensor_degrees(d.architecture):
        wider = d.changed(layout=replace(d.layout, tensor=double))
        assert fit(wider).budget.weights_bytes <= fit(d).budget.weights_bytes
        assert fit(wider).budget.kv.global_bytes_per_token <= fit(d).budget.kv.global_bytes_per_token


@some
@given(deployments())
def test_an_outcome_agrees_with_its_numbers(d: Deployment) -> None:
    held = fit(d)

    assert held.fits == (held.short_bytes == 0.0)
    assert held.fits == (held.spare_bytes >= 0.0 and held.budget.free_bytes >= 0.0 and held.outcome.value == "ok")
    assert held.sequences(d.max_model_len) >= (1 if held.fits else 0)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(deployments())
def test_remedies_fit_whatever_the_deployment(d: Deployment) -> None:
    if not fit(d).fits:
        assert all(fit(remedy.deployment).fits for remedy in remedies(d, CATALOG))
