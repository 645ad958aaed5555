"""Reading whole specs: values in base units, defaults, places, all mistakes in one run."""

from __future__ import annotations

from datetime import date

import pytest
from small_specs import EVERYTHING, MINIMAL, codes, loaded, spec_of

from planner.diagnostics import Severity
from planner.spec import FleetSpec, load_spec
from planner.spec.gate import is_satisfied


def test_prod_values(prod_text: str) -> None:
    """The production example in base units."""
    result = load_spec(prod_text, "specs/prod.yaml")

    assert result.diagnostics == ()
    spec = result.spec
    assert spec is not None
    assert spec.fleet == "prod"
    assert spec.models["code"].engine.max_num_batched_tokens == 2048
    assert spec.models["code"].engine.version == "0.33"
    assert spec.models["reason"].weights is None
    assert spec.models["chat"].min_quality == 0.99
    assert spec.workloads["assistant"].slo == {"ttft_p95": 2.0, "tpot_p95": 0.06}
    assert spec.supply.budget_usd_per_month == 400_000.0
    assert spec.supply.limits.gpus == {"H200-SXM-141GB": 32}
    assert spec.supply.offers[1].terms == ("on-demand", "1y", "3y")
    assert spec.supply.offers[2].price_usd_per_gpu_h == 1.10
    assert spec.supply.offers[2].price_usd_per_node_h is None
    assert spec.supply.offers[2].is_owned
    assert spec.reliability.spare_replicas == 1
    assert spec.planning.gap == 0.001
    assert [(p.rule, p.label) for p in spec.policies] == [
        ("max_monthly_cost", "cap"),
        ("max_monthly_cost_increase", "growth"),
    ]


def test_stated_defaults() -> None:
    """What the grammar promises for keys that are absent."""
    spec = spec_of()
    model, engine = spec.models["chat"], spec.models["chat"].engine
    assert (model.min_quality, model.quality_evidence, model.max_shapes, model.uniform_format) == (0.99, "any", 2, True)
    assert (model.weights, model.kv_cache, model.max_model_len) == (None, None, None)
    assert (engine.name, engine.version, engine.gpu_memory_utilization) == ("vllm", "0.33", 0.90)
    assert (engine.max_num_batched_tokens, engine.max_num_seqs, engine.block_size) == (8192, None, 16)
    assert engine.chunked_prefill
    assert engine.prefix_caching
    traffic = spec.workloads["assistant"].traffic
    assert (traffic.arrival_cv2, traffic.peak_to_mean_30s) == (1.0, 1.0)
    assert (spec.reliability.spare_replicas, spec.reliability.headroom) == (0, 0.0)
    assert (spec.planning.confidence, spec.planning.gap, spec.planning.hours_per_month) == (0.8, 0.005, 730.0)
    assert spec.supply.offers[0].terms == ("on-demand",)


def test_every_built_key_is_read() -> None:
    """The whole grammar that is built, each key with a value of its own."""
    spec = load_spec(EVERYTHING, "f.yaml").spec
    assert spec is not None
    model = spec.models["chat"]
    assert model.weights == ("bf16", "fp8")
    assert model.quality == {"fp8": 0.996}
    assert model.parallelism.tensor == (1, 2, 4)
    assert model.allow.countries == ("DE", "FR")
    assert model.allow.regions == ("eu-*",)
    assert (model.deny.all_providers, model.deny.all_regions, model.deny.all_countries) == (
        ("gcp",),
        ("us-west1",),
        ("US",),
    )
    assert model.prefer is not None
    assert (model.prefer.gpus, model.prefer.penalty) == (("L40S",), 0.07)
    assert model.checkpoints == {"fp8": "org/repo"}
    assert spec.reliability_of("chat").spare_replicas == 2
    assert spec.reliability_of("chat").survive == "zone"
    spot = spec.workloads["assistant"].spot
    assert spot is not None
    assert (spot.max_share, spot.on_demand_floor) == (0.4, False)
    assert spec.reliability_of("chat").headroom == 0.1
    assert spec.catalog is not None
    assert spec.catalog.path == "../catalog"
    offer = spec.supply.offers[0]
    assert offer.all_regions == ("us-east-1", "us-west-2")
    assert (offer.nodes, offer.committed, offer.until, offer.upfront) == (6, 4, date(2027, 9, 30), "none")
    assert offer.price_usd_per_node_h == 5.2
    rack = spec.supply.offers[1]
    assert (rack.host_power_w, rack.pue, rack.electricity_usd_per_kwh) == (1800.0, 1.3, 0.12)
    assert spec.supply.limits.gpu_types == 3
    assert spec.supply.limits.power_w == 120e3
    assert [(r.measure, r.most) for r in spec.supply.limits.rules] == [
        ("gpus", 64.0),
        ("nodes", 8.0),
        ("vcpus", 1000.0),
        ("usd_per_month", 300e3),
        ("share", 0.6),
    ]
    assert spec.planning.as_of == date(2026, 12, 1)
    assert spec.policies[1].waive is not None
    assert spec.policies[1].waive.until == date(2027, 1, 31)
    assert spec.policies[1].forbid is not None
    assert spec.policies[1].level == "warn"
    required, by_provider, in_us = (p.value for p in spec.policies[2:5])
    assert (required.weights, required.kv_cache) == (("fp8",), ("fp8", "bf16"))
    assert (by_provider.each, by_provider.match, by_provider.share) == ("provider", None, 0.6)
    assert (in_us.match.all_regions, in_us.share, spec.policies[4].label) == (("us-*",), 0.7, "us")
    assert spec.policies[6].workloads == ("assis*",)
    assert [(p.rule, p.value) for p in spec.policies[5:]] == [
        ("max_price_age", 30 * 86400.0),
        ("min_latency_margin", 0.05),
        ("max_cost_per_million_tokens", 0.8),
        ("min_capacity_margin", 0.1),
        ("max_monthly_cost_increase", 0.15),
        ("max_gap", 0.01),
        ("min_provenance", "B"),
        ("min_certificate", "inconclusive"),
    ]
    api = spec.workloads["assistant"].compare_api
    assert api is not None
    assert (api.name, api.input_usd_per_mtok, api.cached_input_usd_per_mtok, api.output_usd_per_mtok) == (
        "api, 2026",
        0.15,
        0.075,
        0.6,
    )


def test_defaults_merge_key_by_key() -> None:
    """A model keeps its own keys; mappings below are merged, lists replaced."""
    spec = load_spec(EVERYTHING, "f.yaml").spec
    assert spec is not None
    model = spec.models["chat"]
    assert model.min_quality == 0.98
    assert model.engine.version == "0.20"
    assert model.engine.max_num_seqs == 64


def test_error_in_defaults_is_told_once_at_its_place() -> None:
    """Two models inherit the mistake; it is written once, and so it is told once."""
    result = loaded(
        ("models:\n", "defaults:\n  engine: {name: vlm, max_num_seqs: 8}\nmodels:\n  code: {use: llama-3.3-70b}\n"),
        ("  chat: {use: llama-3.3-70b}", "  chat: {use: llama-3.3-70b, engine: {block_size: 7}}"),
    )

    errors = [d for d in result.diagnostics if d.severity is Severity.ERROR]
    assert [(d.code, d.span.line, d.span.column) for d in errors if d.span] == [
        ("spec/unknown-value", 4, 18),
        ("spec/out-of-range", 7, 51),
    ]


def test_spans_follow_inheritance() -> None:
    """A path into a model leads to `defaults` where the model inherits, to the model where it does not."""
    result = load_spec(EVERYTHING, "f.yaml")

    assert result.span(("models", "chat", "min_quality")).line == 6
    assert result.span(("models", "chat", "engine", "version")).line == 6
    assert result.span(("models", "chat", "engine", "block_size")).line == 15
    assert result.span(("models", "chat", "engine", "gpu_memory_utilization")).line == 15
    assert result.span(("supply", "offers", 0, "nodes"), key=True).line == 48


def test_all_mistakes_in_one_run() -> None:
    """Mistakes of every stage are told together, sorted by place."""
    result = loaded(
        ("fleet: small", "fleet: small\nfleet: again"),
        ("rate: 2 req/s", "rate: -2 req/s"),
        ("model: chat", "modl: chat"),
        ("gpus: [L40S]", "gpus: [L40S], name: a}, {provider: aws, gpus: [L4], nme: b, name: a"),
        add="planning: {objective: speed}\npolices: []\n",
    )

    assert result.spec is None
    assert codes(result) == [
        ("yaml/duplicate-key", 3, 1),
        ("spec/missing-key", 7, 3),
        ("spec/unknown-key", 8, 5),
        ("spec/out-of-range", 9, 21),
        ("spec/unknown-key", 11, 80),
        ("spec/duplicate-name", 11, 94),
        ("spec/unknown-value", 12, 23),
        ("spec/unknown-key", 13, 1),
    ]


def test_requirement_comes_before_everything() -> None:
    """A spec for another release is not judged by this one."""
    result = loaded(("fleet: small", 'requires_planner: ">=99"\nflet: small'))

    assert codes(result) == [("spec/requires-planner", 2, 19)]


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (">=0.1", True),
        (">=0.1, <1", True),
        ("==0.1.0", True),
        ("==0.1", True),
        ("~=0.1", True),
        ("~=0.1.0", True),
        ("!=0.1", False),
        (">0.1", False),
        ("<0.1.1", True),
        ("<=0.0.9", False),
        ("~=1.2", False),
        ("newest", None),
        (">=", None),
        ("", None),
        ("0.1", None),
    ],
)
def test_requirements(requirement: str, holds: bool | None) -> None:
    """Comparisons of releases, judged by release 0.1.0."""
    assert holds is is_satisfied(requirement, "0.1.0")


def test_extension_keys_are_ignored_in_sections_only() -> None:
    """`x-` keys are for notes; a model or workload may still be called `x-1`."""
    result = loaded(
        ("fleet: small", "fleet: small\nx-a: {b: }"),
        ("chat: {use: llama-3.3-70b}", "x-1: {use: llama-3.3-70b, x-b: }"),
        ("model: chat", "model: x-1\n    x-c: [1]"),
    )

    assert result.diagnostics == ()
    assert result.spec is not None
    assert list(result.spec.models) == ["x-1"]


def test_warnings_leave_the_spec_usable() -> None:
    """Tokens per day that disagree, cut lengths and unused models warn; the plan goes on."""
    result = loaded(
        ("rate: 2 req/s, input_tokens: 1000, output_tokens: 200", TOKENS),
        ("  chat: {", "  spare: {use: llama-3.3-70b}\n  chat: {max_model_len: 8000, "),
    )

    assert result.spec is not None
    assert [(d.code, d.severity) for d in result.diagnostics] == [
        ("spec/unused-model", Severity.WARNING),
        ("spec/tokens-disagree", Severity.WARNING),
        ("spec/truncated-lengths", Severity.WARNING),
    ]
    assert "the larger is used (`output`)" in result.diagnostics[1].label
    assert result.spec.workloads["assistant"].traffic.peak_requests_per_s() == pytest.approx(20e6 / 200 / 86400)


@pytest.mark.parametrize(("spot", "warnings"), [("", ["spec/unused-spot"]), ("\n    spot: {max_share: 50 %}", [])])
def test_spot_nodes_that_nothing_may_use(spot: str, warnings: list[str]) -> None:
    """Buying spot without a workload for it is legal and surely not meant."""
    result = loaded(
        ("gpus: [L40S]", "gpus: [L40S], terms: [on-demand, spot]"), ("    model: chat", f"    model: chat{spot}")
    )

    assert [d.code for d in result.diagnostics] == warnings


TOKENS = "tokens_per_day: {input: 380M, output: 20M}, input_tokens: {mean: 6000, p95: 12000}, output_tokens: 200"


def test_models_are_frozen() -> None:
    """Nothing is written back into a spec."""
    spec = spec_of()

    with pytest.raises(ValueError, match="frozen"):
        spec.fleet = "other"  # type: ignore[misc]


def test_offer_labels_are_unique() -> None:
    """Offers without a name are numbered by provider and region."""
    spec = spec_of(
        (
            "[{provider: aws, gpus: [L40S]}]",
            "[{provider: aws, gpus: [L40S]}, {provider: aws, gpus: [L4]}, {name: aws-3, provider: gcp, gpus: [L4]},"
            " {provider: aws, region: us-east-1, gpus: [L4]}, {provider: aws, gpus: [A10G]}]",
        )
    )

    assert spec.supply.offer_labels() == ("aws", "aws-2", "aws-3", "aws-us-east-1", "aws-4")


def test_workloads_of_a_model() -> None:
    """The workloads that a model serves, in order."""
    spec = spec_of()

    assert isinstance(spec, FleetSpec)
    assert list(spec.workloads_of("chat")) == ["assistant"]


def test_crlf_files_have_the_same_places() -> None:
    """Windows line ends do not move lines or columns."""
    text = MINIMAL.replace("2 req/s", "2 rps")

    unix, windows = load_spec(text, "f"), load_spec(text.replace("\n", "\r\n"), "f")

    assert codes(unix) == codes(windows) == [("spec/unknown-unit", 8, 23)]


@pytest.mark.parametrize("name", ["-rf", "@", "../../x", " x", ""])
def test_a_name_that_starts_wrong_is_told_how_names_start(name: str) -> None:
    """The characters of these are all legal further on: a list of legal ones would not help."""
    found = load_spec(f"version: 1\nfleet: f\nmodels:\n  '{name}': {{use: llama-3.1-8b}}\n", "f").diagnostics
    labels = [d.label for d in found if "cannot be a name" in d.message]

    assert labels == ["start with a letter, a digit or _, and go on with letters, digits, spaces and . _ : / + @ -"]


def test_a_name_that_is_too_long_is_told_how_long_names_are() -> None:
    found = load_spec(f"version: 1\nfleet: f\nmodels:\n  {'x' * 301}: {{use: llama-3.1-8b}}\n", "f").diagnostics

    assert "use up to 300 characters" in [d.label for d in found]
