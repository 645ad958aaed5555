"""`planner simulate` and `planner solve --certify`: formats, exit codes, and input that cannot be used."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from cli_run import INFEASIBLE, TINY, WriteSpec, run

TRACE = "arrival_s,input_tokens,output_tokens\n" + "".join(f"{i * 0.4:.1f},900,150\n" for i in range(3000))
QUICK = ("--replications", "2", "--duration", "10min", "--quiet")


@pytest.fixture
def tiny(tiny_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plan of the tiny spec, beside its spec and a trace, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.yaml").write_text(TINY, encoding="utf-8")
    (tmp_path / "trace.csv").write_text(TRACE, encoding="utf-8")
    return Path(shutil.copy(tiny_json, tmp_path / "plan.json"))


def test_a_replay_says_which_limits_hold(tiny: Path) -> None:
    done = run("simulate", tiny, *QUICK)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("tiny: 1 pool replayed, pass: every limit holds\n")
    assert "\nLatency in the replay\n" in done.out
    assert run("simulate", tiny, *QUICK).out == done.out


def test_the_same_as_data_and_rows(tiny: Path, tmp_path: Path) -> None:
    data = json.loads(run("simulate", tiny, *QUICK, "--format", "json").out)
    rows = list(csv.DictReader(io.StringIO(run("simulate", tiny, *QUICK, "--format", "csv").out)))
    written = run("simulate", tiny, *QUICK, "--format", "json", "--out", tmp_path / "replay.json")

    assert (data["schema_version"], data["verdict"], data["seed"]) == (1, "pass", 1)
    (pool,) = data["pools"]
    (workload,) = pool["workloads"]
    assert len(rows) == len(workload["percentiles_s"]) == 16
    asked = {row["metric"]: float(row["limit_s"]) for row in rows if row["limit_s"]}
    assert asked == {"ttft_p95": 1.0, "tpot_p95": 0.05}
    assert (written.code, written.out) == (0, "")
    assert json.loads((tmp_path / "replay.json").read_text(encoding="utf-8")) == data


def test_a_trace_is_named_or_belongs_to_the_only_workload(tiny: Path) -> None:
    flags = ("simulate", tiny, "-q", "--duration", "25min", "--trace")
    named, bare = (run(*flags, text) for text in ("assistant=trace.csv", "trace.csv"))

    assert (named.code, named.out) == (0, bare.out)
    assert "Workload assistant: 3,000 requests of trace.csv (SHA-256 " in named.out


def test_a_pool_that_cannot_keep_up_exits_with_3(tiny: Path) -> None:
    """The trace has prompts nine times as long as the spec says."""
    Path("long.csv").write_text(TRACE.replace(",900,150", ",7000,900"), encoding="utf-8")
    done = run("simulate", tiny, "-q", "--trace", "long.csv")

    assert done.code == 3
    assert "unstable: some pool cannot keep up" in done.out
    assert "its queue grows by " in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--trace", "nowhere.csv"], 1, "nowhere.csv"),
        (["--trace", "batch=trace.csv"], 64, "the plan has no workload `batch`; it has assistant"),
        (["--trace", "trace.csv", "--trace", "assistant=trace.csv"], 64, "workload `assistant` has two traces"),
        (["--duration", "0 s"], 64, "--duration: give more than no time"),
        (["--duration", "ten"], 64, "--duration: "),
        (["--replications", "0"], 64, "replications"),
        (["--router", "magic"], 64, "router"),
        (["--fail-pool", "chat"], 64, "--fail-pool: it says where --fail-at happens"),
        (["--fail-at", "1min", "--fail-pool", "gone"], 64, "the plan has no pool `gone`; it has chat"),
        (["--fail-at", "1min"], 1, "model chat has one replica, so that nothing is left when it fails"),
        (["--period", "night"], 64, "the plan has no period `night`; it has peak"),
        (["--spec", "nowhere.yaml"], 64, "nowhere.yaml"),
        (["--out", "nowhere/replay.json"], 64, "there is no folder nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_asked_for(arguments: list[str], code: int, words: str, tiny: Path) -> None:
    done = run("simulate", tiny, *arguments)

    assert (done.code, done.out) == (code, "")
    assert words in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("arrival_s,input_tokens,output_tokens\n", "no rows"),
        ("arrival_s,input_tokens\n0,5\n1,5\n", "output_tokens"),
        ("arrival_s,input_tokens,output_tokens\n0,-5,0\n1,x,5\n2,5,5\n", "2 of 3 rows cannot be used"),
        ("arrival_s,input_tokens,output_tokens\n,5,5\n,6,6\n", "no arrivals"),
        (TRACE.replace(",900,150", ",900,9000"), "(100 %) are longer than max_model_len 8,000"),
    ],
    ids=["empty", "no rows", "a column less", "unusable rows", "no arrivals", "too long"],
)
def test_traces_that_cannot_be_replayed(text: str, words: str, tiny: Path) -> None:
    Path("bad.csv").write_text(text, encoding="utf-8")
    done = run("simulate", tiny, "--trace", "bad.csv")

    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_plans_without_a_fleet_or_spec_cannot_be_replayed(spec_file: WriteSpec, tiny: Path) -> None:
    run("solve", spec_file(INFEASIBLE), "--out", "none.json")
    assert run("simulate", "none.json").code == 1
    Path("fleet.yaml").unlink()
    assert run("simulate", tiny).code == 64


def test_certified_plans_show_their_certificate(tiny: Path) -> None:
    flags = ("--certify", "--trace", "trace.csv", "--replications", "2", "-q")
    done = run("solve", "fleet.yaml", *flags, "--out", "certified.json")

    assert (done.code, done.out, done.err) == (0, "", "")
    shown = run("show", "certified.json").out
    assert "\nCertified: in the replay of round 1, every limit holds\n" in shown
    assert "\nLatency in the replay\n" in shown
    assert "Not certified" in run("show", tiny).out


def test_traces_are_for_certificates(tiny: Path) -> None:  # noqa: ARG001
    done = run("solve", "fleet.yaml", "--trace", "trace.csv")

    assert (done.code, done.out) == (64, "")
    assert "--trace: it is what --certify replays" in done.err


def test_a_plan_that_fails_its_replay_exits_with_3(tiny: Path) -> None:  # noqa: ARG001
    """With one GPU in stock, prompts that long cannot be served."""
    Path("one.yaml").write_text(TINY + "  limits: {gpus: {L40S: 1}}\n", encoding="utf-8")
    Path("long.csv").write_text(TRACE.replace(",900,150", ",7000,900"), encoding="utf-8")
    done = run("solve", "one.yaml", "--certify", "--trace", "long.csv", "-q")

    assert done.code == 3
    assert "NOT CERTIFIED: in the replay of round 1, some pool cannot keep up" in done.out
