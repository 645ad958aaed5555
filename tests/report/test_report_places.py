"""Keys of a plan find their line in the spec."""

from __future__ import annotations

import pytest

from planner.spec import load_spec
from planner.spec.keys import locate

SPEC = """\
version: 1
fleet: f
defaults: {max_model_len: 8k}
models:
  chat: {use: llama-3.1-8b}
  chat.long: {use: llama-3.1-8b, max_model_len: 32k}
workloads:
  a:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s}
  a.b:
    model: chat.long
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s}
supply:
  offers:
    - {provider: aws, region: us-east-1, gpus: [L40S]}
    - {name: rack.7, provider: owned, gpus: [L40S], gpus_per_node: 8, nodes: 2, price: 1 USD/gpu/h}
  limits: {gpus: {l40s: 8}}
"""


@pytest.mark.parametrize(
    ("key", "line", "column"),
    [
        ("workloads.a.slo.ttft_p95", 11, 21),
        ("workloads.a.b.slo.ttft_p95", 15, 21),
        ("models.chat.long.max_model_len", 6, 49),
        ("models.chat.max_model_len", 3, 27),
        ("supply.offers.rack.7.nodes", 19, 78),
        ("supply.offers.aws-us-east-1.nodes", 18, 7),
        ("supply.limits.gpus.L40S", 20, 25),
        ("supply.limits.gpu_types", 20, 11),
        ("supply.offers", 17, 3),
    ],
)
def test_keys_have_places(key: str, line: int, column: int) -> None:
    span = locate(load_spec(SPEC, "f.yaml"), key)

    assert span is not None
    assert (span.line, span.column) == (line, column)


def test_keys_of_no_spec_have_none() -> None:
    assert locate(load_spec(SPEC, "f.yaml"), "prices.aws") is None
    assert locate(load_spec("", "f.yaml"), "supply.offers") is None
