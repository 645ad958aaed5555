"""`planner sweep`: formats, executors, going on, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_run import TINY, Run, WriteSpec, run

from planner.cli.progress import Progress
from planner.plan.io import loads

RATE = "workloads.assistant.traffic.rate"
GRID = ("--set", f"{RATE}=1 req/s,4 req/s,200 req/s", "--set", "supply.limits.gpus.L40S=2", "--set", "planning.gap=1 %")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A folder with the spec, results and plans of a sweep, and what was printed."""
    folder = tmp_path_factory.mktemp("sweep")
    spec = folder / "fleet.yaml"
    spec.write_text(TINY, encoding="utf-8")
    done = run("sweep", spec, *GRID, "--results", folder / "r.jsonl", "--plans", folder / "plans", "--format", "json")
    return folder, done


def again(folder: Path, *arguments: str | Path) -> Run:
    return run("sweep", folder / "fleet.yaml", *GRID, "--results", folder / "r.jsonl", *arguments)


def rows(done: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.out)["scenarios"]
    return found


def test_every_scenario_has_its_answer(swept: tuple[Path, Run]) -> None:
    _, done = swept
    assert done.code == 0
    assert done.err == ""
    assert [(row["scenario"], row["values"][RATE], row["status"]) for row in rows(done)] == [
        (1, "1 req/s", "solved"),
        (2, "4 req/s", "solved"),
        (3, "200 req/s", "infeasible"),
    ]
    assert rows(done)[2]["usd_per_month"] is None
    assert rows(done)[2]["reason"]


def test_plans_are_saved_beside(swept: tuple[Path, Run]) -> None:
    folder, done = swept
    plans = {path.name: loads(path.read_bytes(), path.name) for path in (folder / "plans").iterdir()}

    assert sorted(plans) == ["00001.plan.json", "00002.plan.json"]
    for row, plan in zip(rows(done), plans.values(), strict=False):
        assert row["plan"] == plan.digests.plan


def test_finished_scenarios_are_not_planned_again(swept: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, done = swept
    monkeypatch.setattr("planner.sweep.run.executor", None)

    second = again(folder, "--format", "json")

    assert second.out == done.out
    assert second.err == f"3 of 3 scenarios are in {folder / 'r.jsonl'} already\n"
    assert again(folder, "--format", "json", "--quiet").err == ""


def test_formats_say_the_same(swept: tuple[Path, Run]) -> None:
    folder, done = swept
    table = again(folder).out
    lines = list(csv.DictReader(io.StringIO(again(folder, "--format", "csv").out)))

    assert [line["status"] for line in lines] == ["solved", "solved", "infeasible"]
    assert float(lines[1]["usd_per_month"]) == rows(done)[1]["usd_per_month"]
    assert float(lines[0]["margin.assistant"]) == rows(done)[0]["margins"]["assistant"]
    assert table.startswith("tiny: 3 scenarios\n")
    assert "2 planned, 1 without any fleet." in table


def test_the_answer_is_saved_by_its_ending(swept: tuple[Path, Run]) -> None:
    folder, done = swept
    assert again(folder, "--out", folder / "out.json").err.endswith(f"wrote {folder / 'out.json'}\n")
    assert (folder / "out.json").read_text(encoding="utf-8") == done.out


def test_parquet_says_what_it_needs_before_anything_is_planned(
    swept: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.cli.sweep.find_spec", lambda _name: None)
    refused = run("sweep", swept[0] / "no.yaml", *GRID, "--out", swept[0] / "out.parquet")
    assert refused.code == 64
    assert "llm-fleet-planner[parquet]" in refused.err


def test_parquet_has_a_column_for_every_figure(swept: tuple[Path, Run]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder, done = swept
    assert again(folder, "--out", folder / "out.parquet").code == 0

    table = parquet.read_table(folder / "out.parquet").to_pylist()

    assert [line["usd_per_month"] for line in table] == [row["usd_per_month"] for row in rows(done)]
    assert table[0][RATE] == "1 req/s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "--zip"], "give one of them"),
        (["--zip", "--sample", "3"], "give one of them"),
        (["--executor", "lcal"], "did you mean `local`?"),
        (["--executor", "local:none"], "`none` is no number of processes"),
        (["--executor", "dask://"], "dask://HOST:PORT"),
        (["--executor", "dask://127.0.0.1:1"], "no scheduler answers at 127.0.0.1:1"),
        (["--executor", "dask://127.0.0.1:99999"], "no scheduler answers at 127.0.0.1:99999"),
        (["--format", "parquet"], "--out"),
        (["--out", "scenarios.xlsx"], "cannot tell the format"),
        (["--results", "no/where/r.jsonl"], "cannot write no/where/r.jsonl"),
        (["--set", f"{RATE}~uniform(1 req/s, 2 req/s)"], "--sample"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, spec_file: WriteSpec) -> None:
    done = run("sweep", spec_file(TINY), "--set", "planning.gap=1 %", *arguments)

    assert (done.code, done.out) == (64, "")
    assert len(done.err.splitlines()) == 1
    assert message in done.err


def test_wrong_settings_are_located(spec_file: WriteSpec) -> None:
    done = run("sweep", spec_file(TINY), "--set", "workloads.asistant.traffic.rate=1 req/s", "--set", f"{RATE}=3 GB")

    assert (done.code, done.out) == (1, "")
    assert "error[sweep/unknown-path]: `asistant` is not one of the workloads" in done.err
    assert "did you mean `assistant`?" in done.err
    assert f"2 | {RATE}=3 GB" in done.err
    assert "`GB` measures memory; this field is a request rate" in done.err


def test_settings_are_shown_as_they_were_given(spec_file: WriteSpec) -> None:
    done = run("sweep", spec_file(TINY), "--set", "planing.gap=1 %")
    assert [line.strip() for line in done.err.splitlines()[1:4]] == ["--> --set:1:1", "|", "1 | planing.gap=1 %"]


@pytest.mark.parametrize("command", [["sweep", "--set", f"{RATE}=1 req/s"], ["frontier", "--trade", "cost:gpus"]])
@pytest.mark.parametrize("read", ["fleet.yaml", "r.jsonl"])
def test_nothing_that_is_read_is_written_over(swept: tuple[Path, Run], command: list[str], read: str) -> None:
    folder, before = swept[0], (swept[0] / read).read_bytes()
    name, *rest = command
    paths = ["--results", folder / "r.jsonl", "--out", folder / "." / read, "--format", "csv"]

    done = run(name, folder / "fleet.yaml", *rest, *paths)

    assert (done.code, done.out) == (64, "")
    assert "it is one of the files that are read" in done.err
    assert (folder / read).read_bytes() == before


def test_results_of_another_spec_are_refused(swept: tuple[Path, Run], spec_file: WriteSpec) -> None:
    other = spec_file(TINY.replace("fleet: tiny", "fleet: other"))
    done = run("sweep", other, *GRID, "--results", swept[0] / "r.jsonl")

    assert (done.code, done.out) == (1, "")
    assert f"{swept[0] / 'r.jsonl'}:1:1" in done.err
    assert "the spec is another one, or was changed" in done.err


class Terminal(io.StringIO):
    """Standard error on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("total", "said"), [(4, "2 of 4 scenarios, 10 s each, 20 s left"), (None, "2 scenarios, 10 s each")]
)
def test_progress_is_for_terminals(total: int | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 10.0])
    monkeypatch.setattr("planner.cli.progress.time.monotonic", lambda: next(times))
    monkeypatch.setattr("sys.stderr", Terminal())
    with Progress("scenarios", total, 1, quiet=False) as progress:
        progress.finished()

    assert sys.stderr.getvalue().replace("\r\x1b[K", "") == said  # type: ignore[attr-defined]


def test_a_spec_that_is_wrong_is_not_swept(spec_file: WriteSpec) -> None:
    done = run("sweep", spec_file(TINY.replace("ttft_p95", "ttft_p59")), "--set", "planning.gap=1 %")
    assert done.code == 1
    assert "did you mean `ttft_p95`?" in done.err
