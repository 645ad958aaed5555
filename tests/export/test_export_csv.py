"""The nodes to buy as a table."""

from __future__ import annotations

import csv
import io

import pytest
from export_plans import chat, exported, of_pools, prod

from planner.export.targets.csv import COLUMNS
from planner.plan.schema import Plan
from planner.report.figures import visible


def rows(plan: Plan) -> list[dict[str, str]]:
    """Return the rows of the table by column."""
    return list(csv.DictReader(io.StringIO(exported(plan, "csv").text)))


def test_every_node_of_the_plan_with_what_it_costs() -> None:
    found = rows(prod())
    month = sum(float(row["usd_per_month"]) for row in found)

    assert tuple(found[0]) == COLUMNS
    assert [row["offer"] for row in found] == [node.offer for node in prod().nodes]
    assert found[0]["nodes"] == "3"
    assert found[0]["gpus"] == "24"
    assert (found[0]["price_basis"], found[0]["price_date"]) == ("listed", "2026-07-30")
    assert prod().objective is not None
    assert month == pytest.approx(prod().objective.usd_per_month, abs=0.02)  # type: ignore[union-attr]
    assert {row["plan"] for row in found} == {prod().digests.plan}


@pytest.mark.parametrize(
    "start", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"]
)
def test_no_cell_is_a_formula(start: str) -> None:
    nodes = (prod().nodes[0].model_copy(update={"offer": start, "region": start, "instance": start}),)
    (row,) = rows(prod().model_copy(update={"nodes": nodes, "fleet": start}))

    assert {row[key] for key in ("offer", "region", "instance", "fleet")} == {"'" + visible(start)}


def test_every_cell_is_quoted() -> None:
    """A separator of another locale, or a quotation mark inside, does not begin a cell."""
    nodes = (prod().nodes[0].model_copy(update={"offer": 'a;"=1'}),)
    text = exported(prod().model_copy(update={"nodes": nodes}), "csv").text

    assert text.splitlines()[1].startswith('"a;""=1","')
    assert all(line.startswith('"') and line.endswith('"') for line in text.splitlines())


def test_a_table_needs_no_weights_and_no_engine() -> None:
    assert rows(of_pools(chat(weights="int4", engine="llama.cpp"))) == rows(prod())
