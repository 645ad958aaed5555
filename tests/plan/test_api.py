"""Workloads against an API: money by hand, the break-even, and that shares sum to all that is paid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planned import spec_of

from planner.candidates.types import ResolvedWorkload
from planner.catalog import Catalog
from planner.plan.api import compare, paid_usd_per_month, usd_per_request_of, with_apis
from planner.plan.io import dump, load
from planner.plan.schema import Plan, WorkloadPlan
from planner.spec.api import ApiSpec

PLANS = Path(__file__).parents[1] / "data" / "plans"
HOURS = 730.0
PRICES = {"input": "0.50 USD/Mtok", "cached_input": "0.10 USD/Mtok", "output": "2 USD/Mtok"}
SPEC = """\
version: 1
fleet: f
models:
  chat: {use: llama-3.1-8b-instruct, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic:
      rate: {peak: 12 req/s, mean: 6 req/s}
      input_tokens: 1000
      output_tokens: 200
      cached_input: 40 %
    slo: {}
    compare_api: PRICES
supply:
  offers: [{provider: aws, gpus: [L40S]}]
"""


def prices(**changes: str) -> ApiSpec:
    """Return the prices of the API with changes."""
    return ApiSpec.model_validate({**PRICES, **changes})


@pytest.fixture(scope="module")
def prod() -> Plan:
    """The stored plan of the production fleet."""
    return load(PLANS / "prod.json")


def planned(plan: Plan, **changes: float) -> WorkloadPlan:
    """Return the assistant of a plan with changes."""
    return next(w for w in plan.workloads if w.name == "assistant").model_copy(update=changes)


def resolved(text: str, catalog: Catalog) -> ResolvedWorkload:
    """Return the assistant of a spec, with its lengths as they are."""
    workload = spec_of(text, catalog).workloads["assistant"]
    traffic = workload.traffic
    lengths = {key: np.full(2, getattr(traffic, key).mean) for key in ("input_tokens", "output_tokens")}
    return ResolvedWorkload(
        name="assistant",
        spec=workload,
        model="chat",
        peak_requests_per_s=traffic.peak_requests_per_s(),
        mean_requests_per_s=traffic.mean_requests_per_s(),
        headroom=0.0,
        prefill_tokens=lengths["input_tokens"],
        prefill_weights=np.full(2, 0.5),
        shared_tokens=0.0,
        shared_hit_rate=0.0,
        truncated_share=0.0,
        **lengths,
    )


@pytest.fixture(scope="module")
def assistant(catalog: Catalog) -> ResolvedWorkload:
    """1,000 prompt tokens, 40 % of them cached, and 200 generated ones, at 12 req/s and 6 on average."""
    flow = ", ".join(f"{key}: {value}" for key, value in PRICES.items())
    return resolved(SPEC.replace("PRICES", f"{{{flow}}}"), catalog)


def test_a_request_costs_what_its_tokens_do() -> None:
    """600 at 0.50, 400 at 0.10 and 200 at 2 USD per million: 300 + 40 + 400 millionths."""
    assert usd_per_request_of(prices(), 1000.0, 0.4, 200.0) == pytest.approx(740e-6)


def test_cached_tokens_cost_what_others_do_where_no_price_is_given() -> None:
    assert usd_per_request_of(ApiSpec.model_validate({k: v for k, v in PRICES.items() if k != "cached_input"}),
                              1000.0, 0.4, 200.0) == pytest.approx(900e-6)  # fmt: skip


def test_money_at_the_mean_load_and_break_even(assistant: ResolvedWorkload, prod: Plan) -> None:
    """6 req/s of 740 millionths are 11,668.32 a month; 5,834.16 are paid for at 3 req/s, 3/8 of the mean of 8 it carries."""
    workload = planned(prod, demand_requests_per_s=12.0, capacity_requests_per_s=16.0)
    found = compare(prices(), assistant, workload, 5834.16, HOURS)

    assert found.usd_per_month == pytest.approx(11668.32)
    assert (found.cheaper, found.requests_per_s, found.cached_input_share) == ("self", 6.0, 0.4)
    assert found.break_even_requests_per_s == pytest.approx(3.0)
    assert found.break_even_utilization == pytest.approx(0.375)


def test_above_its_capacity_no_load_pays(assistant: ResolvedWorkload, prod: Plan) -> None:
    workload = planned(prod, demand_requests_per_s=12.0, capacity_requests_per_s=16.0)
    found = compare(prices(), assistant, workload, 23336.64, HOURS)

    assert (found.cheaper, found.break_even_requests_per_s) == ("api", pytest.approx(12.0))
    assert found.break_even_utilization == pytest.approx(1.5)


def test_without_a_mean_the_peak_counts(catalog: Catalog, prod: Plan) -> None:
    text = SPEC.replace("PRICES", "{input: 1 USD/Mtok, output: 1 USD/Mtok}").replace(
        "{peak: 12 req/s, mean: 6 req/s}", "12 req/s"
    )
    found = compare(prices(), resolved(text, catalog), planned(prod), 100.0, HOURS)

    assert found.requests_per_s == 12.0


def test_hours_count_by_their_mean(catalog: Catalog, prod: Plan) -> None:
    """An API is paid for what is used: 12 hours of 10 req/s and 12 of 2 are 6 on average."""
    hours = str([10] * 12 + [2] * 12)
    text = SPEC.replace("PRICES", "{input: 1 USD/Mtok, output: 1 USD/Mtok}").replace(
        "rate: {peak: 12 req/s, mean: 6 req/s}", f"hourly: {hours}"
    )
    found = compare(prices(), resolved(text, catalog), planned(prod), 100.0, HOURS)

    assert found.requests_per_s == pytest.approx(6.0)


MONEY = st.floats(0.01, 1e9)


@given(MONEY, st.floats(0.0, 100.0), st.floats(1e-3, 100.0), st.floats(0.0, 1.0))
def test_at_the_break_even_rate_both_cost_the_same(
    assistant: ResolvedWorkload, prod: Plan, paid: float, prompt: float, output: float, cached: float
) -> None:
    api = prices(input=f"{prompt} USD/Mtok", cached_input=f"{prompt * cached} USD/Mtok", output=f"{output} USD/Mtok")
    found = compare(api, assistant, planned(prod), paid, HOURS)

    assert found.break_even_requests_per_s * found.usd_per_request * 3600.0 * HOURS == pytest.approx(paid)
    assert (found.cheaper == "self") == (found.break_even_requests_per_s <= found.requests_per_s * (1 + 1e-12)) or (
        found.break_even_requests_per_s == pytest.approx(found.requests_per_s)
    )


@given(st.lists(st.integers(0, 10**6), min_size=5, max_size=5), st.integers(0, 10**6))
def test_what_is_paid_is_shared_out_whole(prod: Plan, used: list[int], idle: int) -> None:
    workloads = tuple(w.model_copy(update={"usd_per_month": usd}) for w, usd in zip(prod.workloads, used, strict=True))
    total = sum(used) + idle
    paid = paid_usd_per_month(workloads, total)

    assert sum(paid.values()) == pytest.approx(total)
    assert all(paid[w.name] >= w.usd_per_month * (1 - 1e-9) for w in workloads)


def test_a_plan_says_what_is_compared_and_what_is_assumed(
    assistant: ResolvedWorkload, catalog: Catalog, prod: Plan
) -> None:
    """Other workloads have no such key, and neither has a plan without prices of an API."""
    without = resolved(SPEC.replace("    compare_api: PRICES\n", ""), catalog)
    default = resolved(SPEC.replace("PRICES", "{input: 1 USD/Mtok, output: 2 USD/Mtok}"), catalog)
    compared = with_apis(prod, {"assistant": assistant})

    assert dump(with_apis(prod, {"assistant": without})) == dump(prod)
    assert dump(compared).count('"api": {') == 1
    assert compared.digests.plan != prod.digests.plan
    assert compared.assumptions == prod.assumptions
    assert with_apis(prod, {"assistant": default}).assumptions[-1].key == "workloads.assistant.compare_api.cached_input"
