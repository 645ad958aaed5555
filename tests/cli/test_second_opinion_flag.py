"""`planner solve --second-opinion` from the outside, with a reviewer that is told what to say."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from cli_run import TINY, WRONG, WriteSpec, run

from planner.plan.schema import Plan
from planner.second_opinion import Figures, Question, Reply
from planner.second_opinion.aiconfigurator import Aiconfigurator

ASKED = ("--second-opinion", "aiconfigurator")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a reviewer without a library answer."""

    def answer(_: Question) -> Reply:
        return Reply(Figures(0.02, 1.0, 0.1), "told")

    monkeypatch.setattr(Aiconfigurator, "load", lambda: SimpleNamespace(name="told 1.0", answer=answer))


@pytest.mark.parametrize("text", [TINY, WRONG], ids=["good spec", "wrong spec"])
def test_an_absent_package_is_one_line_before_anything_is_read(
    text: str, spec_file: WriteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiconfigurator", None)
    for name in [name for name in sys.modules if name.startswith("aiconfigurator.")]:
        monkeypatch.delitem(sys.modules, name)
    done = run("solve", spec_file(text), *ASKED)
    line = "planner: --second-opinion: aiconfigurator is not installed: pip install 'llm-fleet-planner[aiconfigurator]'"

    assert (done.code, done.out, done.err) == (64, "", f"{line}\n")


@pytest.mark.usefixtures("no_solver", "told")
def test_the_section_stands_below_the_report(spec_file: WriteSpec) -> None:
    spec = spec_file(TINY)
    plain, asked = run("solve", spec, "--quiet").out, run("solve", spec, "--quiet", *ASKED).out
    report, _, after = plain.partition("Next: ")

    assert asked.startswith(f"{report}Second opinion: told 1.0\n")
    assert asked.endswith(f"\n\nNext: {after}")
    assert "\nRegret if theirs were right\n" in asked


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("format", ["json", "markdown"])
def test_other_formats_are_as_without_it(format: str, no_solver: Plan, spec_file: WriteSpec) -> None:
    spec = spec_file(TINY)
    plain, asked = (run("solve", spec, "--quiet", "--format", format, *more) for more in ((), ASKED))

    assert no_solver.pools
    assert asked.out == plain.out
    assert "Second opinion: told 1.0\n" in asked.err
    assert "Second opinion" not in plain.err


def test_others_are_not_asked(spec_file: WriteSpec) -> None:
    done = run("solve", spec_file(TINY), "--second-opinion", "nobody")

    assert (done.code, done.out) == (64, "")
