"""A stored plan, bent where a test needs it, and policies given as text judged on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from planner.catalog import Catalog
from planner.plan.io import load
from planner.plan.replayed import Certificate, Replayed, Verdict
from planner.plan.schema import NodePlan, Plan, PolicyResult, PriceTag
from planner.policy import PlacedPolicy, PlanFacts, evaluate, placed
from planner.spec import load_policies

AS_OF = date(2026, 7, 30)
"""Day of the stored plan, and of its prices."""
GCP, RACK = "gcp/us-central1/a3-highgpu-8g/3y", "rack-7/owned"
"""Offers of the stored plan."""


@cache
def prod() -> Plan:
    """Return the stored plan of the production fleet: three nodes of GCP in Iowa, two owned ones."""
    return load(Path(__file__).parents[1] / "data" / "plans" / "older.json")


def policies_of(text: str, file: str | None = None) -> tuple[PlacedPolicy, ...]:
    """Return the policies of a list in flow style, which must be right."""
    loaded = load_policies(f"policies: [{text}]\n", file or "fleet.yaml")
    assert loaded.diagnostics == ()
    assert loaded.policies is not None
    return placed(loaded.policies, file)


def judged(
    text: str, catalog: Catalog, plan: Plan | None = None, as_of: date = AS_OF, before: float | None = None
) -> tuple[PolicyResult, ...]:
    """Return what policies say of a plan, the stored one by default."""
    return evaluate(policies_of(text), PlanFacts(plan or prod(), catalog, as_of, before))


def only(text: str, catalog: Catalog, plan: Plan | None = None, as_of: date = AS_OF) -> PolicyResult:
    """Return what one policy says of a plan."""
    (result,) = judged(text, catalog, plan, as_of)
    return result


def with_nodes(changes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return the stored plan with changes to the nodes of some offers."""
    nodes = tuple(n.model_copy(update=dict(changes.get(n.offer, {}))) for n in prod().nodes)
    return prod().model_copy(update={"nodes": nodes})


def with_price(day: str) -> Plan:
    """Return the stored plan with GCP priced from a list of some date."""
    return with_nodes({GCP: {"price": PriceTag(basis="listed", date=day, source="list")}})


def node(offer: str) -> NodePlan:
    """Return the nodes of an offer of the stored plan."""
    return next(n for n in prod().nodes if n.offer == offer)


def certified(verdict: Verdict) -> Plan:
    """Return the stored plan with a certificate."""
    replayed = Replayed(verdict=verdict, seed=1, replications=5, router="round-robin", traces=(), pools=())
    certificate = Certificate(replayed=replayed, rounds=1, tightened=(), first_usd_per_hour=1.0, price_usd_per_hour=0.0)
    return prod().model_copy(update={"certificate": certificate})
