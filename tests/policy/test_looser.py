"""Whether an edit loosens is told on the safe side: where a plan passes that did not, the edit is said to loosen."""

from __future__ import annotations

from itertools import product

import pytest
from judging import AS_OF, GCP, RACK, certified, policies_of, prod, with_nodes, with_price

from planner.catalog import Catalog
from planner.plan.schema import Plan
from planner.policy import PlanFacts, evaluate
from planner.policy.rule import all_rules

LISTS = (
    "gpus: [H100-SXM-80GB]",
    "gpus: [H100-SXM-80GB, A100-SXM-80GB]",
    "countries: [US]",
    "countries: [US, DE]",
    "regions: [us-*]",
    "regions: ['*']",
    "regions: [us-central1, rack-7]",
    "regions: ['us-central?']",
    "providers: [gcp]",
    "terms: [3y]",
    "gpus: [H100-SXM-80GB], countries: [US]",
)
FORMATS = ("weights: [fp8]", "weights: [fp8, mxfp4]", "kv_cache: [bf16]", "weights: [mxfp4], provider: gcp")
LIMITS = {
    "max_monthly_cost": ("90k USD", "98k USD", "1M USD"),
    "max_monthly_cost_increase": ("0 %", "5 %"),
    "max_cost_per_million_tokens": ("0.5 USD/Mtok", "2 USD/Mtok"),
    "max_price_age": ("1 day", "30 day", "400 day"),
    "max_gap": ("0 %", "1 %"),
    "min_latency_margin": ("1 %", "9 %"),
    "min_capacity_margin": ("1 %", "9 %"),
    "min_provenance": ("A", "B", "C"),
    "min_certificate": ("pass", "inconclusive"),
    "forbid": tuple(f"{{{lists}}}" for lists in (*LISTS, *FORMATS)),
    "require": tuple(f"{{{lists}}}" for lists in (*LISTS, *FORMATS)),
    "max_share": tuple(
        f"{{{whose}, share: {share}}}"
        for whose in (*(f"match: {{{lists}}}" for lists in ("", *LISTS)), "each: provider", "each: country")
        for share in ("20 %", "90 %")
    ),
}


def plans() -> list[Plan]:
    """Return fleets at different places, prices, formats and verdicts."""
    places = ({"country": "US"}, {"country": "DE"}, {"region": "eu-north1", "country": "SE"}, {"term": "on-demand"})
    moved = [with_nodes({GCP: dict(a), RACK: dict(b)}) for a, b in product(places, places[:2])]
    narrow = tuple(p.model_copy(update={"weights": "fp8", "kv_cache": "bf16"}) for p in prod().pools)
    unknown = tuple(
        p.model_copy(update={"band": p.band.model_copy(update={"provenance": c})})
        for p, c in zip(prod().pools, "ABCBA", strict=True)
    )
    changed = [prod().model_copy(update={"pools": pools}) for pools in (narrow, unknown)]
    priced = [with_price(day) for day in ("2026-07", "2025", "once")]
    return [prod(), *moved, *changed, *priced, *(certified(v) for v in ("pass", "inconclusive", "fail"))]


@pytest.mark.parametrize("rule", LIMITS)
def test_what_passes_now_and_did_not_was_loosened(rule: str, catalog: Catalog) -> None:
    policies = policies_of(", ".join(f"{{{rule}: {limit}}}" for limit in LIMITS[rule]))
    facts = [PlanFacts(plan, catalog, AS_OF, before) for plan in plans() for before in (97_000.0, 90_000.0)]
    holds = [tuple(r.outcome == "ok" for r in evaluate(policies, each)) for each in facts]
    is_looser = all_rules()[rule].is_looser
    for (i, old), (j, new) in product(enumerate(policies), repeat=2):
        if any(passes[j] and not passes[i] for passes in holds):
            assert is_looser(old.policy, new.policy), (old.policy, new.policy)
        assert not is_looser(old.policy, old.policy)


def test_every_rule_is_tried() -> None:
    assert set(LIMITS) == set(all_rules())
