"""The same spec gives the same bytes: twice in one process, and under any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from planned import SHARED

from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump
from planner.plan.schema import Plan
from planner.spec import load_spec

SCRIPT = """\
import sys
from planner.catalog import Catalog
from planner.pipeline import Options, make_plan, prepare
from planner.plan.io import dump
from planner.spec import load_spec
text = open(sys.argv[1], encoding="utf-8").read()
sys.stdout.write(dump(make_plan(prepare(load_spec(text, "fleet.yaml"), Catalog.open()), Options())))
"""


def here(text: str, catalog: Catalog) -> Plan:
    return make_plan(prepare(load_spec(text, "fleet.yaml"), catalog), Options())


def elsewhere(path: Path, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def expected(catalog: Catalog) -> Plan:
    return here(SHARED, catalog)


def test_twice_in_one_process(expected: Plan, catalog: Catalog) -> None:
    assert dump(here(SHARED, catalog)) == dump(expected)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_in_another_process_with_another_hash_seed(seed: str, expected: Plan, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(SHARED, encoding="utf-8")
    assert elsewhere(tmp_path / "fleet.yaml", seed) == dump(expected)


def test_the_order_of_the_spec_does_not_matter(expected: Plan, catalog: Catalog) -> None:
    """Models, workloads and offers are sets: written in another order they give the same fleet at the same cost."""
    head, rest = SHARED.split("workloads:\n")
    workloads, tail = rest.split("supply:\n")
    blocks = [b for b in workloads.split("  assistant:") if b]
    first, second = f"  assistant:{blocks[-1]}".split("  batch:")
    swapped = f"{head}workloads:\n  batch:{second}{first}supply:\n{tail}"
    one, two = expected, here(swapped, catalog)
    assert swapped != SHARED
    assert (two.objective, two.pools, two.nodes, two.workloads) == (one.objective, one.pools, one.nodes, one.workloads)
