"""The results file: what is finished stays finished, what was cut off is planned again, what is of another sweep is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from swept import RATE, base, defined, job

from planner.diagnostics import DiagnosticError
from planner.plan.io import loads
from planner.sweep import run as running
from planner.sweep.frontier import Frontier
from planner.sweep.results import opened_results
from planner.sweep.row import Row
from planner.sweep.run import frontier, frontier_header, run, sweep_header, trade_called, unfinished
from planner.sweep.scenario import Definition, Mode, Scenario
from planner.sweep.work import Answer, Job

DEFINITION = defined(f"{RATE}=1..6/6 req/s")


class Counting:
    """An executor that plans nothing, and stops after some scenarios as if it were killed."""

    def __init__(self, most: int = 1000) -> None:
        self.asked: list[int] = []
        self._most = most

    def answers(self, _job: Job, scenarios: Sequence[Scenario]) -> Iterator[Answer]:
        for scenario in reversed(scenarios):  # whatever the order, the answer is sorted
            if len(self.asked) == self._most:
                raise KeyboardInterrupt
            self.asked.append(scenario.number)
            row = Row(scenario=scenario.number, values=dict(scenario.values), status="solved", usd_per_month=1.0)
            yield Answer(scenario.number, row.model_dump_json(), "{}")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The executor that all names stand for."""
    found = Counting()

    @contextmanager
    def executor(_name: str) -> Iterator[Counting]:
        yield found

    monkeypatch.setattr(running, "executor", executor)
    return found


def swept(path: Path | None, definition: Definition = DEFINITION, asked: Job | None = None) -> list[int]:
    wanted = asked or job()
    scenarios = definition.scenarios()
    with opened_results(path, sweep_header(wanted, definition), scenarios) as results:
        return [row.scenario for row in run(wanted, scenarios, "local", results)]


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "results.jsonl"
    counting._most = 4
    with pytest.raises(KeyboardInterrupt):
        swept(path)
    assert len(path.read_bytes().splitlines()) == 5
    counting._most = 1000

    assert swept(path) == [1, 2, 3, 4, 5, 6]
    assert sorted(counting.asked) == [1, 2, 3, 4, 5, 6]
    assert swept(path) == [1, 2, 3, 4, 5, 6]
    assert len(counting.asked) == 6


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_line_that_was_cut_off_is_planned_again(cut: int, tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "results.jsonl"
    swept(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])

    assert swept(path) == [1, 2, 3, 4, 5, 6]
    assert path.read_bytes() == whole
    assert counting.asked.count(1) == 2
    assert len(counting.asked) == 7


def test_a_header_that_was_cut_off_is_written_again(tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"sweep": 1, "sp')

    assert swept(path) == [1, 2, 3, 4, 5, 6]
    assert len(counting.asked) == 6


def test_failed_scenarios_are_tried_again(tmp_path: Path, counting: Counting) -> None:
    path = tmp_path / "results.jsonl"
    swept(path)
    path.write_text(path.read_text().replace('"solved"', '"failed"', 1))

    assert swept(path) == [1, 2, 3, 4, 5, 6]
    assert len(counting.asked) == 7


def test_a_sample_can_be_added_to(tmp_path: Path, counting: Counting) -> None:
    path, text = tmp_path / "results.jsonl", f"{RATE}~uniform(1 req/s, 3 req/s)"
    swept(path, defined(text, mode=Mode.SAMPLE, samples=3))

    assert swept(path, defined(text, mode=Mode.SAMPLE, samples=5)) == [1, 2, 3, 4, 5]
    assert swept(path, defined(text, mode=Mode.SAMPLE, samples=2)) == [1, 2]
    assert sorted(counting.asked) == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("counting")
def test_results_of_another_sweep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    swept(path)
    other = job()
    changes = {
        "the spec is another one": Job(other.text + "# changed\n", other.path, None, None, other.catalog_digest),
        "--as-of or --gap": Job(other.text, other.path, None, None, other.catalog_digest, gap=0.1),
    }

    for message, changed in changes.items():
        with pytest.raises(DiagnosticError, match=message):
            swept(path, asked=changed)
    with pytest.raises(DiagnosticError, match="the settings are others"):
        swept(path, defined(f"{RATE}=1..7/7 req/s"))


@pytest.mark.parametrize(
    ("content", "line"), [(b"version: 1\n", 1), (b"no line end", 1), (b"\xff\xfe\n", 1), (None, 3)]
)
@pytest.mark.usefixtures("counting")
def test_a_file_that_holds_something_else_is_refused_and_left_alone(
    content: bytes | None, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "results.jsonl"
    if content is None:
        swept(path)
        lines = path.read_bytes().splitlines(keepends=True)
        content = b"".join([*lines[:2], b"{}\n", *lines[2:]])
    path.write_bytes(content)

    with pytest.raises(DiagnosticError) as caught:
        swept(path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.span and found.span.line) == ("sweep/other-results", line)
    assert path.read_bytes() == content


def test_plans_that_are_asked_for_later_are_made(tmp_path: Path) -> None:
    asked = replace(job(), with_plans=True)
    scenarios, path, folder = DEFINITION.scenarios()[:1], tmp_path / "results.jsonl", tmp_path / "plans"
    folder.mkdir()
    with opened_results(path, sweep_header(job(), DEFINITION), scenarios) as results:
        first = run(job(), scenarios, "local:1", results)
        kept = path.read_bytes()
        assert run(asked, scenarios, "local:1", results, folder) == first
        assert not unfinished(scenarios, results, folder)

    saved = folder / "00001.plan.json"
    assert loads(saved.read_bytes(), "").digests.plan == first[0].plan
    assert path.read_bytes() == kept
    saved.write_text("{}", encoding="utf-8")
    assert unfinished(scenarios, results, folder) == list(scenarios)


def test_what_values_lead_to_is_part_of_what_is_swept(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(base().catalog.root, catalog)  # type: ignore[arg-type]
    other = defined(f"catalog.path={catalog}")
    before = sweep_header(job(), other)
    gpu = catalog / "gpus" / "L40S.yaml"
    gpu.write_text(f"{gpu.read_text(encoding='utf-8')}# checked\n", encoding="utf-8")

    assert sweep_header(job(), other).catalog != before.catalog != base().catalog.digest()
    assert sweep_header(job(), DEFINITION).catalog == base().catalog.digest()


def test_a_frontier_goes_on_where_it_was(tmp_path: Path, counting: Counting) -> None:
    path, moved = tmp_path / "results.jsonl", trade_called(job(), "cost:gpus", "1..6")

    def found() -> Frontier:
        with opened_results(path, frontier_header(job(), moved)) as results:
            return frontier(job(), moved, "local", results)

    counting._most = 2
    with pytest.raises(KeyboardInterrupt):
        found()
    counting._most = 1000
    whole = found()

    assert sorted(counting.asked) == [1, 2, 3, 4, 5, 6]
    assert (whole.planned, len(whole.steps)) == (6, 1)
    path.write_text(path.read_text(encoding="utf-8").replace('\\"gpus\\": 4}', '\\"gpus\\": 9}'), encoding="utf-8")
    assert found() == whole
    assert counting.asked[-1:] == [4]
    with (
        pytest.raises(DiagnosticError, match="the trade or its range"),
        opened_results(path, frontier_header(job(), trade_called(job(), "cost:gpus", "1..7"))),
    ):
        pass


def test_plans_are_saved_by_number(tmp_path: Path, counting: Counting) -> None:
    scenarios = DEFINITION.scenarios()
    with opened_results(None, sweep_header(job(), DEFINITION), scenarios) as results:
        run(job(), scenarios[:2], "local", results, tmp_path)

    assert sorted(p.name for p in tmp_path.iterdir()) == ["00001.plan.json", "00002.plan.json"]
    assert counting.asked == [2, 1]


@pytest.mark.usefixtures("counting")
def test_each_line_is_an_object(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    swept(path)
    header, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())

    assert header["sweep"] == 1
    assert [row["scenario"] for row in rows] == [6, 5, 4, 3, 2, 1]
