"""`planner solve --policies` and `planner check` on files of policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import TINY, WriteSpec, run

WAIVED = "policies: [{max_gap: 0 %, id: cap, waive: {reason: launch, by: ops, until: 2999-01-01}}]\n"


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """A file of policies that the fleet breaks one of, beside one that names no workload of it."""
    path = tmp_path / "org.yaml"
    path.write_text(
        "version: 1\n"
        "policies:\n"
        "  - {max_share: {each: provider, share: 60 %}, id: cap}\n"
        "  - {min_latency_margin: 1 %, workloads: [search-*]}\n",
        encoding="utf-8",
    )
    return path


def test_an_owned_file_denies_beside_what_the_spec_waives(owned: Path, spec_file: WriteSpec, tiny_json: Path) -> None:
    """The waiver of a spec is for its own policy of that name, not for the one in the file; digests tell of the file."""
    done = run("solve", spec_file(TINY + WAIVED), "--policies", owned, "--quiet", "--format", "json")

    assert done.code == 5
    plan, without = json.loads(done.out), json.loads(tiny_json.read_text(encoding="utf-8"))
    assert plan["digests"]["inputs"] != without["digests"]["inputs"]
    found = [(p["id"], p.get("file"), p["path"], p["outcome"]) for p in plan["policies"]]
    assert found == [
        ("cap", None, "policies[0]", "waived"),
        ("cap", str(owned), "policies[0]", "deny"),
        ("min_latency_margin", str(owned), "policies[1]", "not_evaluated"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("policies: [{max_gap: 1}, {forbid: {gpus: [T44]}}]\n", "1:43"),
        ("policies: {max_gap: 1 %}\n", "1:11"),
        ("policies:\n  - {max_gap: 1 %}\n  - {max_gap: 1 %, until: 2027-01-01}\n", "3:20"),
        ("policy: []\n", "1:1"),
        ("version: 1\n", "1:1"),
        ("", "1:1"),
        ("policies: [{require: {region: us-esat-1}}]\n", "1:31"),
    ],
)
def test_mistakes_are_told_at_their_place(text: str, place: str, spec_file: WriteSpec, owned: Path) -> None:
    owned.write_text(text, encoding="utf-8")
    done = run("solve", spec_file(TINY), "--policies", owned)

    assert (done.code, done.out) == (1, "")
    assert f"--> {owned}:{place}\n" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.yaml",), "cannot read nowhere.yaml: No such file"),
        (("org.yaml", "--policies", "./org.yaml"), "./org.yaml is given twice"),
    ],
)
def test_files_that_cannot_be_used(
    arguments: tuple[str, ...], message: str, spec_file: WriteSpec, owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(owned.parent)
    done = run("solve", spec_file(TINY), "--policies", *arguments)

    assert done.code == 64
    assert message in done.err


def test_standard_input_is_read_once() -> None:
    done = run("solve", "-", "--policies", "-", stdin=TINY.encode())

    assert done.code == 64
    assert "standard input is the spec already" in done.err


def test_check_knows_files_of_policies(owned: Path) -> None:
    assert run("check", owned).code == 0
    owned.write_text("policies: [{forbid: {gpus: [L40SS]}}, {max_gap: 5}]\n", encoding="utf-8")
    done = run("check", owned, "--format", "concise")

    assert done.code == 1
    assert done.out.splitlines() == [
        f"{owned}:1:29: error[catalog/unknown-gpu] no GPU `L40SS` in the catalog; did you mean `L40S`?",
        f"{owned}:1:49: error[spec/out-of-range] `5` is more than the whole; a share is 0 to 100 %; did you mean `5 %`?",
    ]


def test_unknown_regions_of_any_provider_are_known(owned: Path) -> None:
    """A file of policies is for all fleets: a region of a provider that this spec does not use is right."""
    owned.write_text("policies: [{forbid: {regions: [francecentral, eu-*]}}]\n", encoding="utf-8")

    assert run("check", owned).code == 0
