"""`planner explain`: on a saved plan alone, and with the spec that it was made from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_run import INFEASIBLE, TINY, WriteSpec, run

from planner.cli.exits import ExitCode


@pytest.fixture
def tiny(tiny_json: Path, tmp_path: Path) -> Path:
    """The plan of the tiny spec, beside its spec."""
    (tmp_path / "fleet.yaml").write_text(TINY, encoding="utf-8")
    return Path(shutil.copy(tiny_json, tmp_path / "plan.json"))


def test_a_plan_alone_says_what_is_scarce_and_how_far_traffic_may_grow(tiny_json: Path) -> None:
    done = run("explain", tiny_json)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("What is scarce\n")
    assert all(
        f"  {name} " in done.out for name in ("KV cache", "batch slots", "HBM bandwidth", "compute", "replica time")
    )
    assert "\nRoom to grow, req/s\n" in done.out
    assert "All demands at once: up to " in done.out


def test_the_same_as_data(tiny_json: Path) -> None:
    data = json.loads(run("explain", tiny_json, "--format", "json").out)

    assert list(data) == ["schema_version", "fleet", "pools", "workloads", "max_load_factor"]
    (pool,) = data["pools"]
    priced = [row for row in pool["rows"] if row["usd_per_hour_per_unit"] > 0.0]
    assert [row["load_share"] for row in priced] == [max(row["load_share"] for row in pool["rows"])]
    assert all(row["slack"] == pytest.approx(row["available"] - row["used"]) for row in pool["rows"])
    (workload,) = data["workloads"]
    assert workload["headroom_share"] == pytest.approx(workload["next_step_requests_per_s"] / 2.0 - 1.0)


def test_a_plan_can_come_from_standard_input(tiny_json: Path) -> None:
    assert run("explain", "-", stdin=tiny_json.read_bytes()).out == run("explain", tiny_json).out


def test_why_not_finds_the_spec_beside_the_plan(tiny: Path) -> None:
    done = run("explain", tiny, "--why-not", "l40s-tp1-int4")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Why not\n  L40S-tp1-int4-kvbf16 for chat: ruled out by quality-floor: ")


def test_why_not_as_data(tiny: Path) -> None:
    data = json.loads(run("explain", tiny, "--why-not", "l40s-tp1-int4", "--format", "json").out)

    assert {answer["rule"] for answer in data["why_not"]} == {"quality-floor"}
    assert set(data["why_not"][0]) == {
        "model", "shape", "workload", "rule", "reason", "usd_per_hour", "more_usd_per_hour",
    }  # fmt: skip


def test_why_not_an_offer(tiny: Path) -> None:
    offer = json.loads(tiny.read_text(encoding="utf-8"))["nodes"][0]["offer"]
    done = run("explain", tiny, "--why-not", offer)

    assert (done.code, done.err) == (0, "")
    assert f"{offer} for chat: the plan serves assistant on it: 1 node of" in " ".join(done.out.split())


def test_sensitivities_stand_below_the_rest(tiny: Path) -> None:
    done = run("explain", tiny, "--sensitivities", "--spec", tiny.parent / "fleet.yaml")

    assert done.code == 0
    assert "\nWhat a change would cost\n" in done.out
    assert "  demand of assistant +10 % " in done.out
    data = json.loads(run("explain", tiny, "--sensitivities", "--format", "json").out)
    assert {"key", "now", "to", "more_usd_per_hour", "is_within_gap"} < set(data["sensitivities"][0])


def test_another_spec_is_refused(tiny: Path, spec_file: WriteSpec) -> None:
    spec = spec_file(TINY.replace("2 req/s", "3 req/s"))
    done = run("explain", tiny, "--why-not", "l40s", "--spec", spec)

    assert (done.code, done.out) == (1, "")
    assert "plan/other-spec" in done.err
    assert "is not the spec that this plan was made from" in done.err


def test_a_spec_that_is_nowhere_is_asked_for(tiny: Path) -> None:
    (tiny.parent / "fleet.yaml").unlink()
    done = run("explain", tiny, "--sensitivities")

    assert done.code == ExitCode.USAGE
    assert done.err.endswith("give it with --spec\n")


def test_another_catalog_is_refused(tiny: Path, tmp_path: Path) -> None:
    from planner.catalog.store import shipped_catalog

    folder = tmp_path / "catalog"
    shutil.copytree(shipped_catalog(), folder)
    gpu = folder / "gpus" / "L40S.yaml"
    gpu.write_text(gpu.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    done = run("explain", tiny, "--why-not", "l40s", "--catalog", folder)

    assert (done.code, done.out) == (1, "")
    assert "plan/other-catalog" in done.err


def test_a_plan_without_a_fleet_is_refused(spec_file: WriteSpec, tmp_path: Path) -> None:
    plan = tmp_path / "none.json"
    assert run("solve", spec_file(INFEASIBLE), "--out", plan, "--quiet").code == ExitCode.INFEASIBLE
    done = run("explain", plan)

    assert (done.code, done.out) == (1, "")
    assert "plan/no-fleet" in done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--pool", "chat"], "--pool: it says whose workloads --why-not is about"),
        (["--why-not", "l40s", "--pool", "shop"], "--pool: the plan has no pool `shop`; it has chat"),
        (["--why-not", "h200-sxm"], "--why-not: no offer of the spec sells H200-SXM-141GB; they sell L40S"),
        (["--why-not", "l41s-tp1-fp8-kvfp8"], "did you mean `L40S-tp1-fp8-kvfp8`?"),
    ],
)
def test_wrong_usage_says_what_there_is(flags: list[str], words: str, tiny: Path) -> None:
    done = run("explain", tiny, *flags)

    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert words in done.err
