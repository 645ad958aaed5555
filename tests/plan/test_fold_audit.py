"""The audit of a plan of several periods finds what was tampered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_periods import few_periods

from planner import audited
from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.fold_audit import audit_fold
from planner.plan.schema import Plan
from planner.spec import FleetSpec, load_spec

Asked = tuple[Any, ...]
"""What `audit_fold` is asked about: plan, plans of the periods, spec, table, catalog."""


@pytest.fixture(scope="module")
def asked(catalog: Catalog) -> Asked:
    calls: list[Asked] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audited, "audit_fold", lambda *found: calls.append(found) or ())
        make_plan(prepare(load_spec(few_periods(), "hourly.yaml"), catalog), Options())
    return calls[0]


def checks(asked: Asked, plan: Plan | None = None, spec: FleetSpec | None = None) -> set[str]:
    _, parts, own, table, catalog = asked
    found = audit_fold(plan or asked[0], parts, spec or own, table, catalog)
    return {violation.check for violation in found}


def test_a_plan_as_it_was_made_holds(asked: Asked) -> None:
    assert checks(asked) == set()


def first(plan: Plan, kind: str, **update: object) -> Plan:
    head, *rest = getattr(plan, kind)
    return plan.model_copy(update={kind: (head.model_copy(update=update), *rest)})


def objective(plan: Plan, **factors: float) -> Plan:
    assert plan.objective is not None
    values = {name: factor * getattr(plan.objective, name) for name, factor in factors.items()}
    return plan.model_copy(update={"objective": plan.objective.model_copy(update=values)})


TAMPERED: dict[str, tuple[Callable[[Plan], Plan], str]] = {
    "hours": (lambda p: first(p, "periods", hours_per_month=700.0), "periods"),
    "demand": (lambda p: p.model_copy(update={"demand_by_period": {n.name: {"ask": 6.0} for n in p.periods}}), "periods"),
    "reserved": (lambda p: first(p, "nodes", nodes_by_period={"peak": p.nodes[0].nodes, "p2": 0}), "reserved"),
    "nodes": (lambda p: first(p, "nodes", nodes=1), "periods"),
    "node cost": (lambda p: first(p, "nodes", usd_per_hour=0.1), "money"),
    "cost": (lambda p: objective(p, usd_per_hour=0.9), "money"),
    "peak cost": (lambda p: objective(p, peak_usd_per_hour=0.9), "money"),
    "bound": (lambda p: objective(p, bound=1.1), "money"),
    "pool cost": (lambda p: first(p, "pools", usd_per_hour=0.0), "money"),
    "replicas": (lambda p: first(p, "pools", replicas_by_period={"peak": 1, "p2": 1}), "periods"),
    "traffic": (lambda p: first(p, "pools", workloads={"ask": 1.0}), "demand"),
    "rates": (lambda p: first(p, "pools", workloads_by_period={n.name: {"ask": 1.0} for n in p.periods}), "periods"),
    "rates missing": (lambda p: first(p, "pools", workloads_by_period=None), "periods"),
    "prediction": (lambda p: first(p, "pools", predicted=p.pools[0].predicted.model_copy(update={"requests_per_s": 1.0})), "periods"),
    "latency": (lambda p: first(p, "workloads", slo=tuple(c.model_copy(update={"predicted_s": 0.0}) for c in p.workloads[0].slo)), "latency"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TAMPERED))
def test_what_was_tampered_with_is_found(name: str, asked: Asked) -> None:
    change, check = TAMPERED[name]
    assert check in checks(asked, change(asked[0]))


def test_limits_on_all_periods_are_checked(asked: Asked) -> None:
    spec = asked[2]
    assert asked[0].objective is not None
    budget = 0.99 * asked[0].objective.usd_per_month
    supply = spec.supply.model_copy(update={"budget_usd_per_month": budget})
    assert checks(asked, spec=spec.model_copy(update={"supply": supply})) == {"budget"}
