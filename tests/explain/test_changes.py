"""Changes of a spec: the values that are tried between two, and what is read once they are written into its text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.explain.change import Place, change_at, is_given, key_of, path_of
from planner.explain.limit import Scale, fine_step
from planner.spec import FleetSpec, LoadedSpec, load_spec
from planner.spec.variants import with_texts

TEXT = """\
version: 1
fleet: "0123"
x-note: &note {en: "a: b # c", ü: "\\U0001F600"}
defaults: {engine: {version: "0.20"}, deny: {gpus: [L4]}}
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, min_quality: 98e-2}
workloads:
  a.b:
    model: chat
    traffic: {rate: 1 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s}
supply:
  offers:
    - {provider: aws, region: us-east-1, gpus: [L40S], until: 2030-01-01}
    - {provider: aws, region: us-east-1, gpus: [A10G]}
  budget: 5000 USD/month
"""


@pytest.fixture(scope="module")
def loaded() -> LoadedSpec:
    return load_spec(TEXT, "fleet.yaml")


@pytest.fixture(scope="module")
def spec(loaded: LoadedSpec) -> FleetSpec:
    assert loaded.spec is not None
    return loaded.spec


values = st.integers(0, 2000)


@given(values, values, st.sampled_from([1.0, 0.01, 100.0]))
def test_a_scale_leads_from_one_value_to_another(now: int, enough: int, step: float) -> None:
    scale = Scale(now * step / 10.0, enough * step / 10.0, step)
    found = [scale.at(index) for index in range(len(scale))]
    steps = [b - a for a, b in pairwise(found)]

    assert found[-1] == scale.enough
    assert all(0.0 < abs(each) <= step * 1.001 for each in steps)
    assert all(each > 0.0 for each in steps) or all(each < 0.0 for each in steps)
    assert abs(found[0] - scale.now) <= step * 1.001 or now == enough
    assert scale.now not in found[:-1]


def test_a_scale_without_steps_has_one_value() -> None:
    assert [Scale(1.0, 9.0, 0.0).at(index) for index in range(len(Scale(1.0, 9.0, 0.0)))] == [9.0]


@pytest.mark.parametrize(("value", "step"), [(0.0, 1.0), (7.0, 1.0), (1000.0, 10.0), (123456.0, 1000.0)])
def test_amounts_are_tried_to_three_digits(value: float, step: float) -> None:
    assert fine_step(value) == step


@pytest.mark.parametrize(
    ("place", "key", "given"),
    [
        (("supply", "budget_usd_per_month"), "supply.budget", True),
        (("supply", "limits", "power_w"), "supply.limits.power", False),
        (("supply", "offers", 1, "gpus"), "supply.offers.aws-us-east-1-2.gpus", True),
        (("supply", "offers", 1, "terms"), "supply.offers.aws-us-east-1-2.terms", False),
        (("models", "chat", "max_shapes"), "models.chat.max_shapes", False),
        (("models", "chat", "deny"), "models.chat.deny", True),
        (("workloads", "a.b", "spot"), "workloads.a.b.spot", False),
        (("workloads", "a.b", "spot", "max_share"), "workloads.a.b.spot.max_share", False),
        (("workloads", "a.b", "slo", "ttft_p95"), "workloads.a.b.slo.ttft_p95", True),
        (("workloads", "a.b", "slo", "tpot_p95"), "workloads.a.b.slo.tpot_p95", False),
    ],
)
def test_keys_are_those_of_the_text(place: Place, key: str, given: bool, spec: FleetSpec) -> None:
    assert key_of(spec, place) == key
    assert is_given(spec, place) is given
    assert path_of(spec, place)[:1] == place[:1]


def test_a_text_without_changes_is_read_as_it_was(loaded: LoadedSpec) -> None:
    assert with_texts(loaded, []).spec == loaded.spec


@pytest.mark.parametrize(
    ("place", "to", "value"),
    [
        (("supply", "budget_usd_per_month"), "6000 USD/month", 6000.0),
        (("models", "chat", "max_shapes"), "1", 1),
        (("models", "chat", "engine", "max_num_seqs"), "7", 7),
        (("workloads", "a.b", "spot", "max_share"), "60 %", 0.6),
        (("supply", "offers", 1, "region"), "us-east-2", "us-east-2"),
        (("supply", "offers", 0, "gpus"), "[L40S, L4]", ("L40S", "L4")),
        (("models", "chat", "deny", "gpus"), "[]", ()),
    ],
)
def test_changes_are_read_from_the_text(place: Place, to: str, value: object, loaded: LoadedSpec) -> None:
    assert loaded.spec is not None
    found = with_texts(loaded, [(path_of(loaded.spec, place), to)])

    assert found.spec is not None
    node: object = found.spec
    for part in place:
        node = node[part] if isinstance(node, dict | tuple) else getattr(node, str(part))
    assert node == value


def test_what_the_checks_refuse_is_found(loaded: LoadedSpec) -> None:
    assert loaded.spec is not None
    short = change_at(loaded.spec, ("models", "chat", "max_model_len"), "8k", "500", 500)

    assert with_texts(loaded, [(short.path, short.to)]).spec is None
