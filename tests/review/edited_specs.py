"""A small fleet of two models, edited one key at a time, and the plan of what it was."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner.catalog import Catalog, find_catalog
from planner.pipeline import Options, Prepared, prepare
from planner.review.diff import Side, compare, planned_side
from planner.review.difference import Difference
from planner.spec import load_spec

PAIR = """\
version: 1
fleet: pair
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k, weights: [fp8], kv_cache: [fp8]}
  code: {use: qwen3-8b, max_model_len: 8k, weights: [bf16], kv_cache: [bf16], max_shapes: 1}
workloads:
  assistant:
    model: chat
    traffic: {rate: 6 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1500 ms, tpot_p95: 50 ms}
    deny: {gpus: [L4]}
  completion:
    model: code
    traffic: {rate: 3 req/s, input_tokens: 800, output_tokens: 100}
    slo: {ttft_p95: 2 s, tpot_p95: 60 ms}
supply:
  offers:
    - {name: cloud, provider: aws, region: us-east-1, gpus: [L40S], terms: [on-demand]}
    - {name: rack, provider: owned, gpus: [L4], gpus_per_node: 4, nodes: 2, price: 0.30 USD/gpu/h}
  limits: {gpus: {L40S: 24}}
  budget: 60000 USD/month
planning: {gap: 1 %}
policies:
  - {max_monthly_cost: 20000 USD, id: cap}
"""
CATALOG = Catalog.open(find_catalog(Path(__file__).parent))


def prepared(text: str, name: str = "new.yaml", catalog: Catalog = CATALOG) -> Prepared:
    """Return a spec with its catalog."""
    return prepare(load_spec(text, name), catalog)


@cache
def before() -> Side:
    """Return the fleet before any edit, planned once."""
    return planned_side("old.yaml", prepared(PAIR, "old.yaml"), Options())


def edited(*edits: tuple[str, str]) -> str:
    """Return the spec with pieces of its text replaced, each of which it has once."""
    text = PAIR
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def difference(text: str, catalog: Catalog = CATALOG, options: Options | None = None) -> Difference:
    """Return how the plan of another spec, or with another catalog, differs from the one before."""
    options = options or Options()
    after = planned_side("new.yaml", prepared(text, catalog=catalog), options, before())
    return compare(before(), after, options)
