"""Every spec that ships with the repository: it is solved, its plan holds, and it is the golden one.

PLANNER_UPDATE_GOLDENS=1 writes the golden plans anew: look at the difference before you keep it.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.candidates.references import open_catalog
from planner.pipeline import Options, Prepared, make_plan, prepare
from planner.plan.io import dump
from planner.plan.schema import Plan, Pool
from planner.report.table import render
from planner.spec import load_spec
from planner.study.roofline import operating_points

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"
GOLDENS = ROOT / "tests" / "golden" / "plans"
README = ROOT / "README.md"
SHOWN = re.compile(r"(<!-- generated: prod -->\n).*?(<!-- end -->)", re.DOTALL)
LISTED = re.compile(r"^\| \[[^]]+\]\((specs/[^)]+\.yaml)\) \|", re.MULTILINE)
SHOWN_BEFORE = "\nPredicted at peak\n"
UPDATE = "PLANNER_UPDATE_GOLDENS"
SCHEMA_LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)")
NAMES = sorted(
    p.relative_to(SPECS).with_suffix("").as_posix() for p in SPECS.rglob("*.yaml") if p.parent.name != "scenarios"
)

every_spec = pytest.mark.parametrize("name", NAMES)


def prepared(name: str) -> Prepared:
    """Read a spec and check it against the catalog."""
    path = SPECS / f"{name}.yaml"
    loaded = load_spec(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    return prepare(loaded, open_catalog(loaded, ROOT / "catalog"))


@cache
def planned(name: str) -> Plan:
    """Plan a spec, once in a session."""
    return make_plan(prepared(name), Options())


def golden_path(name: str) -> Path:
    """Return where the golden plan of a spec lies."""
    return GOLDENS / f"{name.replace('/', '-')}.json"


def essentials(plan: Plan) -> dict[str, Any]:
    """Return what a reviewer would want to see change: money, pools and nodes."""
    assert plan.objective is not None
    return {
        "status": plan.status,
        "usd_per_hour": round(plan.objective.usd_per_hour, 2),
        "usd_per_month": round(plan.objective.usd_per_month),
        "pools": [
            {"name": p.name, "shape": shape(p), "replicas": p.replicas, "workloads": sorted(p.workloads)}
            for p in plan.pools
        ],
        "nodes": [{"offer": n.offer, "nodes": n.nodes} for n in plan.nodes],
    }


def shape(pool: Pool) -> str:
    """Return the shape of a pool in one line: GPU, parallel degrees above 1, formats."""
    degrees = {
        "tp": pool.tensor_parallel,
        "pp": pool.pipeline_parallel,
        "ep": pool.expert_parallel,
        "dp": pool.attention_data_parallel,
    }
    parallel = " ".join(f"{key}{degree}" for key, degree in degrees.items() if degree > 1) or "tp1"
    return f"{pool.gpu} {parallel} {pool.weights} kv {pool.kv_cache}"


def test_there_are_specs_to_learn_from() -> None:
    assert {"prod", "staging"} <= set(NAMES)
    assert sum(name.startswith("examples/") for name in NAMES) >= 6


@every_spec
def test_a_spec_names_its_schema_and_says_what_it_shows(name: str) -> None:
    path = SPECS / f"{name}.yaml"
    first, second = path.read_text(encoding="utf-8").splitlines()[:2]
    schema = SCHEMA_LINE.fullmatch(first)

    assert schema is not None
    assert (path.parent / schema[1]).is_file()
    assert second.startswith("# ")


@every_spec
def test_a_spec_has_nothing_to_warn_about(name: str) -> None:
    assert prepared(name).loaded.diagnostics == ()


@every_spec
def test_a_spec_is_solved_within_its_gap(name: str) -> None:
    plan = planned(name)

    assert plan.status == "solved"
    assert plan.objective is not None
    assert plan.objective.gap <= prepared(name).spec.planning.gap
    assert sum(node.usd_per_hour for node in plan.nodes) == pytest.approx(plan.objective.usd_per_hour, rel=1e-12)


@every_spec
def test_no_pool_works_above_the_roof_of_its_gpu(name: str) -> None:
    """Rows are over all GPUs of a pool: neither what they use nor what they offer is above the datasheet."""
    plan, catalog = planned(name), prepared(name).catalog
    devices = {p.name: catalog.gpu(p.gpu).device() for p in plan.pools}
    points = operating_points(plan, devices)

    assert [p.pool for p in points] == [p.name for p in plan.pools]
    for pool, point in zip(plan.pools, points, strict=True):
        device, rows = devices[pool.name], {r.row: r for r in pool.rows}
        assert 0.0 < point.bytes_per_s < rows["bandwidth_ceiling"].available * 1e9 / pool.gpus
        assert rows["bandwidth_ceiling"].available * 1e9 / pool.gpus <= device.bandwidth_bytes_per_s
        assert rows["compute_ceiling"].available * 1e12 / pool.gpus <= max(device.flops.values())
        assert 0.0 < point.flops_per_s < point.roof(point.flop_per_byte)


@every_spec
def test_no_latency_objective_is_missed(name: str) -> None:
    late = [(w.name, s.metric) for w in planned(name).workloads for s in w.slo if s.margin < -1e-6]

    assert late == []


@every_spec
def test_the_plan_is_the_golden_one(name: str) -> None:
    text = json.dumps(essentials(planned(name)), indent=2) + "\n"
    path = golden_path(name)
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8"), f"set {UPDATE}=1 to accept the new plan"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "prod"])
def test_a_second_run_gives_the_same_bytes(name: str) -> None:
    """That of `prod` takes as long as all others, and the page of its plan in README.md is compared anyway."""
    assert dump(make_plan(prepared(name), Options())) == dump(planned(name))


def test_every_golden_plan_has_its_spec() -> None:
    assert {p.name for p in GOLDENS.glob("*.json")} == {golden_path(name).name for name in NAMES}


def test_the_readme_lists_every_spec() -> None:
    listed = LISTED.findall(README.read_text(encoding="utf-8"))

    assert sorted(listed) == [f"specs/{name}.yaml" for name in NAMES]


def test_the_readme_shows_what_comes_out() -> None:
    readme = README.read_text(encoding="utf-8")
    shown = render(planned("prod")).partition(SHOWN_BEFORE)[0].rstrip()
    made = SHOWN.sub(lambda marks: f"{marks[1]}\n```text\n{shown}\n```\n\n{marks[2]}", readme)
    if os.environ.get(UPDATE):
        README.write_text(made, encoding="utf-8")

    assert SHOWN_BEFORE in render(planned("prod"))
    assert made == README.read_text(encoding="utf-8"), f"set {UPDATE}=1 to accept the new output"
