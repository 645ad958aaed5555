"""Each policy rule on a plan: limits, the worst named, and what is not there to be judged."""

from __future__ import annotations

from datetime import date

import pytest
from judging import AS_OF, GCP, RACK, certified, judged, node, only, prod, with_nodes, with_price

from planner.catalog import Catalog
from planner.plan.replayed import Verdict
from planner.plan.schema import Plan
from planner.policy.rules.max_price_age import earliest


@pytest.mark.parametrize(("limit", "outcome"), [("97961.036", "ok"), ("97961", "deny"), ("100k", "ok")])
def test_cost_is_compared_with_its_limit(limit: str, outcome: str, catalog: Catalog) -> None:
    found = only(f"{{max_monthly_cost: {limit} USD}}", catalog)
    assert (found.outcome, found.actual) == (outcome, pytest.approx(97961.036))


def test_a_rise_without_a_baseline_is_left_open(catalog: Catalog) -> None:
    found = only("{max_monthly_cost_increase: 15 %, id: growth}", catalog)
    assert (found.id, found.outcome, found.actual) == ("growth", "not_evaluated", None)


@pytest.mark.parametrize(
    ("before", "outcome", "actual"),
    [
        (97961.036, "ok", 0.0),
        (2 * 97961.036, "ok", -0.5),
        (97961.036 / 1.15, "ok", 0.15),
        (97961.036 / 1.25, "deny", 0.25),
        (0.0, "deny", None),
    ],
)
def test_a_rise_is_compared_with_its_baseline(
    before: float, outcome: str, actual: float | None, catalog: Catalog
) -> None:
    (found,) = judged("{max_monthly_cost_increase: 15 %}", catalog, before=before)
    assert (found.outcome, found.limit, found.actual) == (outcome, 0.15, actual)


@pytest.mark.parametrize(
    ("workloads", "outcome", "worst"),
    [("", "deny", "assistant"), ("completion", "ok", "completion"), ("a*, summaries", "deny", "assistant")],
)
def test_the_dearest_workload_is_named(workloads: str, outcome: str, worst: str, catalog: Catalog) -> None:
    scope = f", workloads: [{workloads}]" if workloads else ""
    found = only(f"{{max_cost_per_million_tokens: 0.60 USD/Mtok{scope}}}", catalog)
    assert (found.outcome, found.at) == (outcome, worst)


@pytest.mark.parametrize(("least", "outcome"), [("8 %", "ok"), ("8.26 %", "deny"), ("0 %", "ok")])
def test_the_tightest_latency_limit_is_named(least: str, outcome: str, catalog: Catalog) -> None:
    found = only(f"{{min_latency_margin: {least}}}", catalog)
    assert (found.outcome, found.at) == (outcome, "completion tpot_p95")
    assert found.actual == pytest.approx(1.0 - 0.0917446461885 / 0.1)


def test_margins_of_workloads_that_are_not_there_are_left_open(catalog: Catalog) -> None:
    """A file of policies is for many fleets; `summaries` has no latency limit."""
    for name in ("nowhere", "summaries"):
        assert only(f"{{min_latency_margin: 5 %, workloads: [{name}]}}", catalog).outcome == "not_evaluated"
    assert only("{min_capacity_margin: 5 %, workloads: [nowhere]}", catalog).outcome == "not_evaluated"


@pytest.mark.parametrize(
    ("text", "outcome", "at"),
    [
        ("min_capacity_margin: 2 %", "deny", "assistant"),
        ("min_capacity_margin: 1 %", "ok", "assistant"),
        ("min_capacity_margin: 20 %, workloads: [agent, deep-*]", "ok", "agent"),
    ],
)
def test_the_workload_with_least_room_is_named(text: str, outcome: str, at: str, catalog: Catalog) -> None:
    found = only(f"{{{text}}}", catalog)
    assert (found.outcome, found.at) == (outcome, at)


@pytest.mark.parametrize(("limit", "outcome"), [("0.001 %", "ok"), ("0.0001 %", "deny")])
def test_the_gap_is_compared_with_its_limit(limit: str, outcome: str, catalog: Catalog) -> None:
    assert only(f"{{max_gap: {limit}}}", catalog).outcome == outcome


@pytest.mark.parametrize(
    ("verdict", "least", "outcome"),
    [
        ("pass", "pass", "ok"),
        ("inconclusive", "pass", "deny"),
        ("inconclusive", "inconclusive", "ok"),
        ("fail", "inconclusive", "deny"),
        ("unstable", "inconclusive", "deny"),
    ],
)
def test_verdicts_are_compared(verdict: Verdict, least: str, outcome: str, catalog: Catalog) -> None:
    found = only(f"{{min_certificate: {least}}}", catalog, certified(verdict))
    assert (found.outcome, found.actual) == (outcome, verdict)


def test_a_plan_that_was_not_replayed_has_no_certificate(catalog: Catalog) -> None:
    found = only("{min_certificate: inconclusive}", catalog)
    assert (found.outcome, found.actual) == ("deny", "none")


@pytest.mark.parametrize(("least", "outcome"), [("A", "deny"), ("B", "deny"), ("C", "ok")])
def test_the_pool_that_is_known_least_is_named(least: str, outcome: str, catalog: Catalog) -> None:
    pools = tuple(
        p.model_copy(update={"band": p.band.model_copy(update={"provenance": "C"})}) if p.name == "reason" else p
        for p in prod().pools
    )
    found = only(f"{{min_provenance: {least}}}", catalog, prod().model_copy(update={"pools": pools}))
    assert (found.outcome, found.actual, found.at) == (outcome, "C", "reason")


@pytest.mark.parametrize(
    ("as_of", "outcome", "days"),
    [(AS_OF, "ok", 0.0), (date(2026, 8, 29), "ok", 30.0), (date(2026, 8, 30), "deny", 31.0)],
)
def test_the_oldest_price_is_named(as_of: date, outcome: str, days: float, catalog: Catalog) -> None:
    found = only("{max_price_age: 30 day}", catalog, as_of=as_of)
    assert (found.outcome, found.limit, found.actual, found.at) == (outcome, 30.0, days, GCP)


def test_own_prices_have_no_age(catalog: Catalog) -> None:
    owned = prod().model_copy(update={"nodes": (node(RACK),)})
    found = only("{max_price_age: 1 day}", catalog, owned, date(2036, 1, 1))
    assert (found.outcome, found.actual, found.at) == ("ok", "own prices only", None)


def test_a_price_without_any_date_is_as_old_as_can_be(catalog: Catalog) -> None:
    found = only("{max_price_age: 10000 day}", catalog, with_price("last spring"))
    assert (found.outcome, found.actual, found.at) == ("deny", "unknown", GCP)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-07-30", date(2026, 7, 30)),
        ("2026-07", date(2026, 7, 1)),
        ("2026", date(2026, 1, 1)),
        ("2025-12..2026-08", date(2025, 12, 1)),
        ("2025-2026", date(2025, 1, 1)),
        ("2026-13-40", None),
        ("spring", None),
        ("", None),
    ],
)
def test_dates_of_lists_are_read_as_their_first_day(text: str, day: date | None) -> None:
    assert earliest(text) == day


@pytest.mark.parametrize(
    ("text", "outcome", "share", "at"),
    [
        ("each: provider, share: 60 %", "deny", 116.5932 / 134.1932, "gcp"),
        ("each: provider, share: 90 %", "ok", 116.5932 / 134.1932, "gcp"),
        ("each: region, share: 60 %", "deny", 116.5932 / 134.1932, "gcp us-central1"),
        ("each: country, share: 60 %", "deny", 116.5932 / 134.1932, "US"),
        ("each: gpu, share: 60 %", "deny", 116.5932 / 134.1932, "H100-SXM-80GB"),
        ("each: term, share: 60 %", "deny", 116.5932 / 134.1932, "3y"),
        ("match: {provider: owned}, share: 10 %", "deny", 17.6 / 134.1932, "providers: owned"),
        ("match: {}, share: 99 %", "deny", 1.0, "all"),
        ("match: {provider: aws}, share: 0 %", "ok", 0.0, None),
    ],
)
def test_shares_of_the_cost(text: str, outcome: str, share: float, at: str | None, catalog: Catalog) -> None:
    found = only(f"{{max_share: {{{text}}}}}", catalog)
    assert (found.outcome, found.actual, found.at) == (outcome, pytest.approx(share), at)


def in_germany() -> Plan:
    """Return the stored plan with its rack in Germany."""
    return with_nodes({RACK: {"country": "DE"}})


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("gpus: [T4]", None),
        ("gpus: [H100-SXM-80GB]", GCP),
        ("gpus: [h100-sxm-80gb]", GCP),
        ("providers: [aws]", None),
        ("regions: [us-*]", GCP),
        ("regions: [eu-*]", None),
        ("countries: [US]", GCP),
        ("countries: [DE]", RACK),
        ("terms: [3y]", GCP),
        ("terms: [on-demand]", None),
        ("provider: owned", RACK),
        ("gpus: [A100-SXM-80GB], countries: [US]", None),
        ("weights: [int4]", None),
        ("weights: [mxfp4]", "reason (mxfp4 with bf16 KV)"),
        ("weights: [mxfp4], kv_cache: [fp8]", None),
        ("kv_cache: [fp8], provider: owned", "chat-1 (fp8 with fp8 KV), code-1 (fp8 with fp8 KV)"),
        ("kv_cache: [bf16], provider: owned", None),
    ],
)
def test_forbidden(selector: str, found: str | None, catalog: Catalog) -> None:
    result = only(f"{{forbid: {{{selector}}}}}", catalog, in_germany())
    assert (result.outcome, result.actual) == ("ok" if found is None else "deny", found)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("countries: [US, DE]", None),
        ("countries: [DE]", GCP),
        ("providers: [gcp, owned]", None),
        ("provider: gcp", RACK),
        ("terms: [3y]", None),  # owned nodes are not bought
        ("terms: [1y]", GCP),
        ("weights: [fp8, mxfp4]", None),
        ("weights: [fp8]", "reason (mxfp4 with bf16 KV)"),
        ("kv_cache: [bf16, fp8], gpus: [H100-SXM-80GB]", RACK),
    ],
)
def test_required(selector: str, found: str | None, catalog: Catalog) -> None:
    result = only(f"{{require: {{{selector}}}}}", catalog, in_germany())
    assert (result.outcome, result.actual) == ("ok" if found is None else "deny", found)


def test_a_country_that_is_not_known_is_not_one_that_is_required(catalog: Catalog) -> None:
    assert only("{require: {country: US}}", catalog).actual == RACK
    assert only("{forbid: {country: US}}", catalog).actual == GCP


def test_selectors_are_written_out(catalog: Catalog) -> None:
    assert only("{forbid: {gpus: [A10G], countries: [US], kv_cache: [fp8]}}", catalog).limit == (
        "countries: US, gpus: A10G, kv_cache: fp8"
    )
