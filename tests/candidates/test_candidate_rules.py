"""Rules that rule shapes out: each with the numbers that its reason must hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from planned import SMALL, spec_of

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.rule import Draft, all_rules
from planner.candidates.shapes import enumerate_shapes
from planner.candidates.types import ResolvedModel, Shape
from planner.catalog import Catalog
from planner.physics.types import Layout

GIB = 2.0**30
RULES = {rule.name: rule for rule in all_rules()}

LARGE = SMALL.replace("{use: llama-3.1-8b-instruct, max_model_len: 8k}", "{use: llama-3.3-70b, max_model_len: 8k}")
GIANT = SMALL.replace("{use: llama-3.1-8b-instruct, max_model_len: 8k}", "{use: deepseek-r1, max_model_len: 8k}")


def model_of(text: str, catalog: Catalog) -> ResolvedModel:
    return resolve_models(spec_of(text, catalog), catalog)["chat"]


@pytest.fixture(scope="module")
def small(catalog: Catalog) -> ResolvedModel:
    """An 8B model with 32 heads and 32 layers."""
    return model_of(SMALL, catalog)


@pytest.fixture(scope="module")
def giant(catalog: Catalog) -> ResolvedModel:
    """A mixture of experts with latent attention, native in 8 bits, of 671 G parameters."""
    return model_of(GIANT, catalog)


def draft(
    model: ResolvedModel,
    catalog: Catalog,
    gpu: str = "L40S",
    layout: Layout | None = None,
    weights: str = "bf16",
    kv: str = "bf16",
) -> Draft:
    return Draft(model, catalog.gpu(gpu).device(), layout or Layout(), weights, kv, 8)


def test_rules_run_from_cheap_to_dear() -> None:
    assert list(RULES) == ["layout", "format-support", "quality-floor", "hbm-fit"]
    assert all(rule.sentence.endswith(".") for rule in RULES.values())


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Layout(tensor=1), None),
        (Layout(tensor=8), None),
        (Layout(tensor=2, pipeline=2, node_gpus=4), None),
        (Layout(tensor=8, pipeline=3, node_gpus=8), None),
        (Layout(tensor=3), "3 GPUs per replica"),
        (Layout(tensor=2, pipeline=3, node_gpus=6), "6 GPUs per replica"),
        (Layout(tensor=64, node_gpus=8), "tensor 64 does not divide 32 attention heads"),
        (Layout(tensor=1, pipeline=64, node_gpus=8), "pipeline 64 exceeds 32 layers"),
        (Layout(attention_data=2), "attention_data 2 is for mixture-of-experts models"),
        (Layout(tensor=4, expert=2), "expert 2 must cover the 4 GPUs of a stage"),
        (Layout(tensor=4, expert=4), None),
    ],
)
def test_layout(layout: Layout, reason: str | None, small: ResolvedModel, catalog: Catalog) -> None:
    found = RULES["layout"].check(draft(small, catalog, layout=layout))
    assert (found is None) == (reason is None)
    assert reason is None or (found is not None and reason in found)


def test_layout_of_experts(giant: ResolvedModel, catalog: Catalog) -> None:
    assert RULES["layout"].check(draft(giant, catalog, layout=Layout(attention_data=8, expert=8))) is None


@pytest.mark.parametrize(
    ("engine", "gpu", "weights", "kv", "reason"),
    [
        ("vllm", "L40S", "fp8", "fp8", None),
        ("vllm", "MI300X", "fp8", "bf16", None),
        ("vllm", "L40S", "q4_k_m", "bf16", "q4_k_m is a llama.cpp format; the engine is vllm"),
        ("llama.cpp", "L40S", "q4_k_m", "bf16", None),
        ("llama.cpp", "L40S", "fp8", "bf16", "not fp8"),
        ("tensorrt-llm", "MI300X", "fp8", "bf16", "does not run on AMD GPUs"),
        ("vllm", "H100-SXM-80GB", "fp8", "nvfp4", "nvfp4 KV cache needs native 4-bit floating point"),
        ("vllm", "B200-SXM-180GB", "fp8", "nvfp4", None),
    ],
)
def test_format_support(
    engine: str, gpu: str, weights: str, kv: str, reason: str | None, small: ResolvedModel, catalog: Catalog
) -> None:
    changed = replace(
        small,
        engine=catalog.engine(engine),
        spec=small.spec.model_copy(update={"engine": small.spec.engine.model_copy(update={"name": engine})}),
    )
    found = RULES["format-support"].check(draft(changed, catalog, gpu, weights=weights, kv=kv))
    assert (found is None) == (reason is None), found
    assert reason is None or (found is not None and reason in found)


def test_quality_floor(small: ResolvedModel, catalog: Catalog) -> None:
    kept = small.quality["fp8", "fp8"].recovery
    just_met = replace(small, spec=small.spec.model_copy(update={"min_quality": kept}))
    just_missed = replace(small, spec=small.spec.model_copy(update={"min_quality": kept + 1e-6}))
    assert 0.9 < kept < 1.0
    assert RULES["quality-floor"].check(draft(just_met, catalog, weights="fp8", kv="fp8")) is None
    reason = RULES["quality-floor"].check(draft(just_missed, catalog, weights="fp8", kv="fp8"))
    assert reason is not None
    assert f"keep {kept * 100:.1f} % of the quality" in reason
    assert "scores" in reason


def test_the_native_format_keeps_everything(small: ResolvedModel, catalog: Catalog) -> None:
    strict = replace(small, spec=small.spec.model_copy(update={"min_quality": 1.0}))
    assert RULES["quality-floor"].check(draft(strict, catalog)) is None


def test_without_evidence_a_format_is_refused_unless_the_user_measured_it(catalog: Catalog) -> None:
    own = SMALL.replace("max_model_len: 8k}", "max_model_len: 8k, quality_evidence: model, weights: [bf16, mxfp4]}")
    model = model_of(own, catalog)
    reason = RULES["quality-floor"].check(draft(model, catalog, weights="mxfp4"))
    assert reason is not None
    assert "no published score at evidence level model" in reason
    measured = model_of(own.replace("quality_evidence:", "quality: {mxfp4: 99.5 %}, quality_evidence:"), catalog)
    assert measured.quality["mxfp4", "bf16"].recovery == pytest.approx(0.995)
    assert RULES["quality-floor"].check(draft(measured, catalog, weights="mxfp4")) is None


def test_hbm_fit_counts_in_its_reason(catalog: Catalog) -> None:
    """70B in 16 bits is 131 GiB: four 48 GB GPUs hold it, two do not."""
    model = model_of(LARGE, catalog)
    assert RULES["hbm-fit"].check(draft(model, catalog, layout=Layout(tensor=4))) is None
    tight = draft(model, catalog, layout=Layout(tensor=2))
    reason = RULES["hbm-fit"].check(tight)
    assert reason is not None
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", reason)]
    short, weights, activations, runtime, graphs, usable, left = numbers[:7]
    budget = tight.budget
    assert short == pytest.approx(budget.shortfall_bytes / GIB, abs=0.06)
    assert weights == pytest.approx(65.7, rel=0.02)
    assert left == 0.0
    assert short > weights + activations + runtime + graphs - usable > 0.0


def test_hbm_fit_depends_on_the_longest_sequence(small: ResolvedModel, catalog: Catalog) -> None:
    """131072 tokens of 128 KiB are 16 GiB of KV beside 15 GiB of weights: too much for a 24 GB GPU."""
    longer = replace(small, max_model_len=131072)
    assert RULES["hbm-fit"].check(draft(small, catalog, "A10G")) is None
    assert RULES["hbm-fit"].check(draft(longer, catalog, "A10G")) is not None
    assert RULES["hbm-fit"].check(draft(longer, catalog, "L40S")) is None


class TestEnumeration:
    """Which shapes are made of a model on a GPU type."""

    def shapes(self, model: ResolvedModel, gpu: str, sizes: set[int], catalog: Catalog) -> list[Shape]:
        knowledge = Knowledge.of(catalog, 0.8)
        found, rejected = enumerate_shapes(model, catalog.gpu(gpu).device(), sizes, knowledge)
        assert all(r.gpu == gpu and r.model == "chat" and r.reason and r.shape for r in rejected)
        assert {r.rule for r in rejected} <= set(RULES)
        return found

    def test_layouts_stay_inside_the_largest_node(self, small: ResolvedModel, catalog: Catalog) -> None:
        found = self.shapes(small, "L40S", {1, 4}, catalog)
        assert {s.layout.tensor for s in found} == {1, 2, 4}
        assert all(s.nodes_spanned == 1 and s.node_gpus == s.gpus == s.layout.gpus for s in found)

    def test_degrees_of_the_spec_are_the_only_ones(self, catalog: Catalog) -> None:
        text = SMALL.replace("max_model_len: 8k}", "max_model_len: 8k, parallelism: {tensor: [2], pipeline: [1, 2]}}")
        found = self.shapes(model_of(text, catalog), "L40S", {8}, catalog)
        assert {(s.layout.tensor, s.layout.pipeline) for s in found} == {(2, 1), (2, 2)}

    def test_a_giant_takes_the_fewest_whole_nodes(self, giant: ResolvedModel, catalog: Catalog) -> None:
        """671 G parameters in 8 bits are 625 GiB; eight 80 GB GPUs hold 590 GiB at most, sixteen hold it."""
        found = self.shapes(giant, "H100-SXM-80GB", {8}, catalog)
        assert found
        assert {(s.node_gpus, s.nodes_spanned) for s in found} == {(8, 2)}
        assert {(s.layout.tensor, s.layout.pipeline) for s in found} == {(8, 2), (16, 1)}

    def test_nodes_are_joined_only_where_one_does_not_hold_the_model(
        self, giant: ResolvedModel, catalog: Catalog
    ) -> None:
        found = self.shapes(giant, "H200-SXM-141GB", {8}, catalog)
        assert found
        assert {s.nodes_spanned for s in found} == {1}
        assert any(s.layout.attention_data == 8 for s in found)

    def test_small_nodes_are_never_joined(self, giant: ResolvedModel, catalog: Catalog) -> None:
        assert self.shapes(giant, "H100-SXM-80GB", {4}, catalog) == []

    def test_names_tell_shapes_apart(self, small: ResolvedModel, catalog: Catalog) -> None:
        names = [s.name for s in self.shapes(small, "L40S", {8}, catalog)]
        assert len(set(names)) == len(names)
