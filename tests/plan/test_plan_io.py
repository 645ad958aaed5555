"""Plans as text: the same plan back, one form for every number, and nothing else accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned import AS_OF, DIGESTS, SHARED, SMALL, VERSIONS, PlanOnce, problem_of

from planner.catalog import Catalog
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.plan.build import Context, infeasible_plan
from planner.plan.io import LARGEST_FILE_BYTES, SIGNIFICANT_DIGITS, dump, load, loads, sha256, with_digest
from planner.plan.schema import Conflict, InfeasibleReport, Plan, Relaxation

TOP_KEYS = {
    "schema_version", "fleet", "status", "as_of", "objective", "periods", "pools", "workloads", "nodes", "rejections",
    "assumptions", "excluded", "policies", "digests", "versions",
}  # fmt: skip


@pytest.fixture(scope="module")
def plan(plan_once: PlanOnce) -> Plan:
    return plan_once(SHARED).plan


@pytest.fixture(scope="module")
def infeasible(catalog: Catalog) -> Plan:
    spec, table, _ = problem_of(SMALL, catalog)
    report = InfeasibleReport(
        reason="too small",
        conflict=(Conflict(key="supply.budget", value="1"),),
        relaxations=(Relaxation(key="supply.budget", from_="1", to="2", usd_per_hour=2.0),),
    )
    return infeasible_plan(Context(spec, table, AS_OF, DIGESTS, VERSIONS), report)


def refused(data: bytes) -> list[Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        loads(data, "plan.json")
    return list(caught.value.diagnostics)


def edited(plan: Plan, edit: Callable[[Any], Any]) -> bytes:
    """Return the plan's text after a change by someone else's hand."""
    raw = json.loads(dump(plan))
    edit(raw)
    return json.dumps(raw).encode()


def test_a_plan_comes_back(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(dump(plan))
    back = load(tmp_path / "plan.json")
    assert dump(back) == dump(plan)
    assert dump(loads(dump(back).encode(), "again")) == dump(plan)


def test_an_infeasible_plan_comes_back(infeasible: Plan) -> None:
    text = dump(infeasible)
    assert json.loads(text)["infeasible"]["relaxations"][0]["from"] == "1"
    assert dump(loads(text.encode(), "plan.json")) == text


def test_top_level_keys(plan: Plan, infeasible: Plan) -> None:
    assert set(json.loads(dump(plan))) >= TOP_KEYS
    assert set(json.loads(dump(infeasible))) >= TOP_KEYS | {"infeasible"}


def test_numbers_have_one_form(plan: Plan) -> None:
    def numbers(value: Any) -> list[float]:
        if isinstance(value, dict | list):
            return [n for v in (value.values() if isinstance(value, dict) else value) for n in numbers(v)]
        return [value] if isinstance(value, float) else []

    found = numbers(json.loads(dump(plan)))
    assert found
    assert all(float(f"{n:.{SIGNIFICANT_DIGITS}g}") == n for n in found)


def test_the_digest_is_that_of_everything_else(plan: Plan) -> None:
    raw = json.loads(dump(plan))
    digest, raw["digests"]["plan"] = raw["digests"]["plan"], ""
    assert digest == sha256(json.dumps(raw, indent=2, ensure_ascii=False) + "\n")
    assert with_digest(with_digest(plan)) == with_digest(plan)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a replica": lambda raw: raw["pools"][0].update(replicas=99),
    "the last digits of a price": lambda raw: raw["nodes"][0].update(usd_per_hour=raw["nodes"][0]["usd_per_hour"] + 1e-9),
    "the digest": lambda raw: raw["digests"].update(plan=sha256("another")),
    "an assumption": lambda raw: raw["assumptions"].pop(),
    "the status": lambda raw: raw.update(status="unproven"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_that_was_changed_is_refused(name: str, plan: Plan) -> None:
    (found,) = refused(edited(plan, CHANGES[name]))
    assert found.code == "plan/unreadable"
    assert "digest" in found.message


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (lambda raw: raw["pools"][0].pop("replicas"), "pools.0.replicas"),
        (lambda raw: raw["pools"][0].update(extra=1), "pools.0.extra"),
        (lambda raw: raw["nodes"][0].update(nodes="many"), "nodes.0.nodes"),
        (lambda raw: raw.update(status="perfect"), "status"),
        (lambda raw: raw.update(pools=None), "pools"),
    ],
)
def test_a_wrong_field_is_named(edit: Callable[[Any], Any], where: str, plan: Plan) -> None:
    found = refused(edited(plan, edit))
    assert [d.code for d in found] == ["plan/wrong-field"]
    assert found[0].message.startswith(f"{where}: ")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"version: 1\n", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema_version 1"),
        (b"7", "schema_version 1"),
        (b"{}", "schema_version 1"),
        (b'{"schema_version": 2}', "schema_version 1"),
    ],
)
def test_other_files_are_refused(data: bytes, complaint: str) -> None:
    (found,) = refused(data)
    assert found.code == "plan/unreadable"
    assert complaint in found.message
    assert found.span is not None
    assert found.span.path == "plan.json"


def test_broken_json_is_located(plan: Plan) -> None:
    lines = dump(plan).splitlines()
    lines[9] += " oops"
    (found,) = refused("\n".join(lines).encode())
    assert found.span is not None
    assert found.span.line in (10, 11)


def test_a_huge_file_is_refused() -> None:
    (found,) = refused(b" " * (LARGEST_FILE_BYTES + 1))
    assert "no plan is that large" in found.message


@given(st.binary(max_size=300))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_no_bytes_make_a_traceback(data: bytes) -> None:
    assert refused(data)


@given(data=st.data())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_no_broken_plan_makes_a_traceback(plan: Plan, data: st.DataObject) -> None:
    """Anything at any place of a plan: it is refused with a message."""
    raw = json.loads(dump(plan))
    holder: Any = raw
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    old = holder[key]
    new = data.draw(st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({}))
    if new == old:
        return
    holder[key] = new
    try:
        back = loads(json.dumps(raw).encode(), "plan.json")
    except DiagnosticError:
        return
    assert dump(back) == dump(plan)


def test_a_plan_of_an_earlier_release_is_not_taken_for_a_changed_one(infeasible: Plan) -> None:
    data = json.loads(dump(infeasible))
    for way in data["infeasible"]["relaxations"]:
        del way["way"]
    data["digests"]["plan"] = ""
    data["digests"]["plan"] = sha256(json.dumps(data, indent=2, ensure_ascii=False) + "\n")

    assert loads(json.dumps(data).encode(), "plan.json").infeasible == infeasible.infeasible
