"""`planner solve` from the outside: wrong input, flags, what it prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from cli_run import INFEASIBLE, NO_SPECS, ROOT, TINY, UNSERVED, WriteSpec, run

from planner.pipeline import Options
from planner.plan.schema import Plan

BAD_SPECS = sorted((ROOT / "tests" / "data" / "bad_specs").glob("*.yaml"))
LOCATED = re.compile(r"^ *--> .*:\d+:\d+$", re.MULTILINE)


@pytest.mark.parametrize("path", BAD_SPECS, ids=lambda path: path.stem)
def test_every_wrong_spec_is_a_located_error(path: Path) -> None:
    """All kinds of mistakes that `check` knows; none reaches the solver."""
    done = run("solve", path)

    assert (done.code, done.out) == (1, "")
    assert "error[" in done.err
    assert LOCATED.search(done.err)
    assert "Traceback" not in done.err


@NO_SPECS
def test_files_that_are_no_specs(content: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(content)
    done = run("solve", path)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[{code}]: ")
    assert run("solve", "-", stdin=content).code == 1


def test_all_mistakes_in_one_run(spec_file: WriteSpec) -> None:
    """Mistakes of the grammar and names that the catalog lacks, sorted by line."""
    spec = spec_file(TINY.replace("ttft_p95", "ttft_p59").replace("L40S", "L40X").replace("llama-3.1-8b", "lama-3.1"))
    codes = re.findall(r"error\[(.*?)\]", run("solve", spec).err)

    assert codes == ["catalog/unknown-model", "spec/unknown-key", "catalog/unknown-gpu"]


def test_the_table_says_what_matters(no_solver: Plan, spec_file: WriteSpec) -> None:
    spec = spec_file(TINY)
    out = run("solve", spec).out
    assert no_solver.objective is not None

    titles = ("Pools", "Nodes to buy", "Workloads", "Latency", "HBM per GPU in GiB", "What limits the pools")
    assert all(f"\n{title}\n" in out for title in titles)
    assert f"${no_solver.objective.usd_per_month:,.0f} per month (730 h)" in out
    assert "\n  Not included: egress, storage, support, tax, staff.\n" in out
    assert out.splitlines()[-1].startswith(f"Next: planner solve {spec} --out plan.json")


def test_infeasible_shows_the_line_and_the_way_out(spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(INFEASIBLE))
    _, _, rest = done.out.partition("error[solve/infeasible]: no fleet meets this spec\n")
    excerpt, _, ways = rest.partition("What would make it feasible\n")

    assert "12 |   limits: {gpus: {L40S: 2}}\n" in excerpt
    assert "^ in the way: supply.limits.gpus.L40S\n" in excerpt
    assert re.search(r"1 +supply\.limits\.gpus\.L40S +2 +\d+ +[\d.,]+\n", ways)
    assert done.out.splitlines()[-1].startswith("Next: change one of these keys")


def test_infeasible_as_json(spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(INFEASIBLE), "--format", "json")
    report = json.loads(done.out)["infeasible"]
    way, less = report["relaxations"]

    assert (way["way"], less["way"]) == (1, 2)
    assert less["key"] == "workloads.assistant.traffic.rate"
    assert report["conflict"] == [{"key": "supply.limits.gpus.L40S", "value": "2"}]
    assert int(way["to"]) > int(way["from"]) == 2
    assert way["usd_per_hour"] > 0


def test_a_model_that_fits_on_no_offer(spec_file: WriteSpec) -> None:
    out = run("solve", spec_file(UNSERVED)).out

    assert "no candidate can serve workload assistant of model chat: memory; the nearest shape, L40S-tp1-" in out
    assert re.search(r"= L40S: \S+: short by [\d.]+ GiB per GPU", out)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, no_solver: Plan) -> list[Options]:
    """The options that the pipeline was given."""
    options: list[Options] = []
    fake: Callable[..., Plan] = lambda _prepared, given, *_: options.append(given) or no_solver  # noqa: E731
    monkeypatch.setattr("planner.pipeline.make_plan", fake)
    return options


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--gap", "0.1 %"], "gap", 0.001),
        (["--gap", "0.002"], "gap", 0.002),
        (["--time-limit", "60s"], "time_limit_s", 60.0),
        (["--time-limit", "2 min"], "time_limit_s", 120.0),
        (["--as-of", "2026-12-01"], "as_of", date(2026, 12, 1)),
        ([], "gap", None),
    ],
)
def test_flags_reach_the_pipeline(
    flags: list[str], field: str, value: Any, seen: list[Options], spec_file: WriteSpec
) -> None:
    assert run("solve", spec_file(TINY), *flags).code == 0
    assert getattr(seen[0], field) == value


def test_as_of_is_the_date_of_the_plan(spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(TINY), "--as-of", "2026-12-01", "--format", "json")

    assert json.loads(done.out)["as_of"] == "2026-12-01"


def test_show_config_solves_nothing(seen: list[Options], spec_file: WriteSpec) -> None:
    spec = spec_file(TINY)
    done = run("solve", spec, "--show-config", "--gap", "0.1 %")
    lines = {line.split(":")[0].strip(): line for line in done.out.splitlines()}

    assert (done.code, done.err, seen) == (0, "", [])
    assert re.fullmatch(rf" +max_model_len: 8k +# {re.escape(str(spec))}:4", lines["max_model_len"])
    assert re.fullmatch(r" +gap: 0\.1 % +# --gap", lines["gap"])
    assert re.fullmatch(r" +confidence: 80 % +# default", lines["confidence"])


def test_the_catalog_of_the_environment(spec_file: WriteSpec) -> None:
    catalog = str(ROOT / "catalog")
    done = run("solve", spec_file(TINY), "--show-config", env={"PLANNER_CATALOG": catalog})

    assert f"# catalog: {catalog} " in done.out
