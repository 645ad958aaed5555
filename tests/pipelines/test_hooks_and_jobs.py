"""Hooks, the action's metadata and the jobs in the manual fit the schemas of the services that read them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.cli.commands import listed_commands
from planner.cli.exits import ExitCode

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "planner" / "action.yml"
PAGE = (ROOT / "planner" / "manual" / "pipelines.md").read_text(encoding="utf-8")
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def job(section: str) -> str:
    """Return the YAML of a section of the page."""
    return PAGE.partition(f"\n## {section}\n")[2].partition("```yaml\n")[2].partition("```")[0]


def rows(section: str, table: int = 0) -> list[list[str]]:
    """Return the cells of a table of a section, without its head."""
    body = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"(?:^\|.*\|\n)+", body, re.MULTILINE)[table]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()[2:]]


def problems(schema: str, path: Path) -> str:
    """Check a file against a schema that ships with a public tool; return what is wrong with it."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_action_fits_its_schema() -> None:
    assert problems("vendor.github-actions", ACTION) == ""


@pytest.mark.parametrize(("section", "schema"), [("GitHub", "vendor.github-workflows"), ("GitLab", "vendor.gitlab-ci")])
def test_jobs_of_the_manual_fit_their_schema(section: str, schema: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(job(section), encoding="utf-8")

    assert problems(schema, path) == ""


def test_the_manual_names_the_inputs_and_outputs_of_the_action() -> None:
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    used = yaml.safe_load(job("GitHub"))["jobs"]["plan"]["steps"][1]["with"]

    assert [row[0].strip("`") for row in rows("GitHub")] == list(action["inputs"])
    assert [row[0].strip("`") for row in rows("GitHub", 1)] == list(action["outputs"])
    assert used.keys() <= action["inputs"].keys()


def test_the_manual_names_every_exit_code() -> None:
    assert [int(row[0]) for row in rows("Exit codes")] == sorted(ExitCode)


def test_hooks_run_commands() -> None:
    """Each hook is a command of the planner, and the manual's configuration uses the hooks there are."""
    used = yaml.safe_load(job("Commit hooks"))["repos"][0]["hooks"]

    assert [hook["entry"].split()[:2] for hook in HOOKS] == [["planner", "check"], ["planner", "verify"]]
    assert [hook["id"] for hook in used] == [hook["id"] for hook in HOOKS]
    assert "check" in listed_commands()


@pytest.mark.parametrize(
    ("hook", "path", "runs"),
    [
        ("planner-check", "specs/prod.yaml", True),
        ("planner-check", "other/specs/prod.yaml", False),
        ("planner-verify", "specs/prod.plan.json", True),
        ("planner-verify", "specs/prod.yaml", True),
        ("planner-verify", "catalog/offers/aws.yaml", True),
        ("planner-verify", "README.md", False),
    ],
)
def test_hooks_run_where_they_should(hook: str, path: str, runs: bool) -> None:
    """Plans are verified when they, their specs or the catalog change."""
    (files,) = (h["files"] for h in HOOKS if h["id"] == hook)

    assert bool(re.search(files, path)) is runs
