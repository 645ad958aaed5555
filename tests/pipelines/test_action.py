"""The composite action: its scripts in a scratch repository, with `planner diff` played by a stub that writes its files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "planner"
SPEC = ROOT / "specs" / "examples" / "one-model-one-gpu.yaml"
pytestmark = pytest.mark.skipif(not (shutil.which("bash") and shutil.which("git")), reason="needs bash and git")

PLANNER = f"""#!{sys.executable}
import os, sys
from pathlib import Path
arguments = sys.argv[1:]
if arguments[0] != "diff" or not os.environ["STUB_CODE"]:
    from planner.cli import main
    sys.exit(main(arguments))
with open(os.environ["STUB_CALLS"], "a") as calls:
    print(*arguments, sep="\\t", file=calls)
print("::error::not a command")
if os.environ["STUB_JSON"]:
    numbers, report = (Path(arguments[i + 1]) for i, flag in enumerate(arguments) if flag == "--save")
    numbers.write_text(os.environ["STUB_JSON"])
    report.write_text(os.environ["STUB_MARKDOWN"] * int(os.environ["STUB_TIMES"]))
    Path(arguments[arguments.index("--out") + 1]).write_text(os.environ["STUB_COMMANDS"])
sys.exit(int(os.environ["STUB_CODE"]))
"""
CHANGED = '{"schema_version": 1, "changed": true, "new": {"usd_per_month": 50224.4}, "usd_per_month_delta": 8760}'
WITHOUT_A_FLEET = '{"schema_version": 1, "changed": true, "new": {"usd_per_month": null}, "usd_per_month_delta": null}'


def metadata() -> dict[str, Any]:
    """What `action.yml` says."""
    action: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return action


@dataclass
class Runner:
    """A runner with a checkout of one spec: what a step is given, and what it leaves."""

    home: Path
    inputs: dict[str, str] = field(default_factory=dict)
    stub: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.checkout = self.home / "checkout"
        for folder in (self.checkout, self.home / "bin", self.home / "temp"):
            folder.mkdir()
        program = self.home / "bin" / "planner"
        program.write_text(PLANNER, encoding="utf-8")
        program.chmod(0o755)
        shutil.copy(SPEC, self.checkout / "fleet.yaml")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first")

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """Run git in the checkout."""
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=folder or self.checkout, env=self.environment(), capture_output=True, text=True, check=True
        ).stdout.strip()

    def environment(self) -> dict[str, str]:
        """The variables of a step."""
        files = {name: str(self.home / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "STUB_CALLS")}
        inputs = {"SPEC": "fleet.yaml", "BASE": "HEAD", "FAIL_ON": "error"}
        inputs |= dict.fromkeys(("CATALOG", "POLICIES", "COMMENT_FILE"), "") | self.inputs
        stub = {"CODE": "2", "JSON": CHANGED, "MARKDOWN": "# Report\n", "TIMES": "1", "COMMANDS": ""} | self.stub
        return {
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(self.home / "temp"),
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            **files,
            **{f"INPUT_{name}": value for name, value in inputs.items()},
            **{f"STUB_{name}": value for name, value in stub.items()},
        }

    def step(self, script: str) -> tuple[int, list[str]]:
        """Run a script; return its exit code and the workflow commands that it printed."""
        command = ["bash", str(ACTION / script)]
        done = subprocess.run(
            command, cwd=self.checkout, env=self.environment(), capture_output=True, text=True, check=False
        )
        printed = re.sub(r"^::stop-commands::(\w+)$.*?^::\1::$", "", done.stdout, flags=re.MULTILINE | re.DOTALL)
        return done.returncode, [line for line in printed.splitlines() if line.startswith("::")]

    def left(self, name: str) -> str:
        """Return what a file of the run holds."""
        path = self.home / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the step."""
        return dict(line.split("=", 1) for line in self.left("github_output").splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A fresh runner."""
    return Runner(tmp_path)


def test_a_right_spec_says_nothing(runner: Runner) -> None:
    assert runner.step("check.sh") == (0, [])
    assert runner.left("github_step_summary") == ""


def test_mistakes_are_annotations_and_a_summary(runner: Runner) -> None:
    """Whatever the spec is called and holds: nothing of it runs, and nothing ends the code block of the summary."""
    name = "$(touch ran) `touch ran`;touch ran.yaml"
    text = SPEC.read_text(encoding="utf-8").replace("use: ", "# ```\n    use: un-")
    (runner.checkout / name).write_text(text, encoding="utf-8")
    runner.inputs = {"SPEC": name}

    code, (command,) = runner.step("check.sh")

    assert code == 1
    assert command.startswith(f"::error title=catalog/unknown-model,file={name},line=")
    heading, _, block = runner.left("github_step_summary").partition("\n\n")
    assert heading == "### The spec cannot be planned"
    assert "error[catalog/unknown-model]" in block
    assert all(line.startswith("    ") for line in block.splitlines())
    assert not (runner.checkout / "ran").exists()


def test_a_comparison(runner: Runner) -> None:
    """A change is no failure: numbers become outputs, the report becomes the summary and the text of a comment."""
    runner.inputs = {"POLICIES": "rules.yaml", "COMMENT_FILE": "comment.md", "CATALOG": "a catalog"}
    runner.stub = {"MARKDOWN": "# Überblick\n", "COMMANDS": "::notice title=planner diff::up\n"}

    assert runner.step("diff.sh") == (0, ["::notice title=planner diff::up"])

    report = runner.home / "temp" / "planner-diff.md"
    assert runner.outputs().keys() == metadata()["outputs"].keys()
    assert runner.outputs() == {
        "changed": "true",
        "monthly-cost": "50224.40",
        "monthly-delta": "8760.00",
        "report": str(report),
    }
    assert runner.left("github_step_summary") == report.read_text(encoding="utf-8") == "# Überblick\n"
    assert (runner.checkout / "comment.md").read_text(encoding="utf-8") == "# Überblick\n"
    temp = runner.home / "temp"
    flags = ["diff", "--detailed-exitcode", "--catalog", "a catalog", "--policies", "rules.yaml"]
    files = ["--save", str(temp / "planner-diff.json"), "--save", str(report)]
    shown = ["--format", "github", "--out", str(temp / "planner-diff.commands")]
    sides = ["--", f"git:{runner.git('rev-parse', 'HEAD')}", "fleet.yaml"]
    (call,) = runner.left("stub_calls").splitlines()
    assert call.split("\t") == [*flags, *files, *shown, *sides]


@pytest.mark.parametrize(
    ("code", "json", "said"),
    [
        (3, WITHOUT_A_FLEET, "::error title=planner::no fleet meets the spec; see the summary"),
        (5, CHANGED, "::error title=planner::a policy denies the plan; see the summary"),
        (1, "", "::error title=planner::planner diff failed with exit code 1; see the log"),
    ],
    ids=["infeasible", "denied", "wrong input"],
)
def test_failures_keep_their_exit_code(code: int, json: str, said: str, runner: Runner) -> None:
    """With numbers and a report where there are any."""
    runner.stub = {"CODE": str(code), "JSON": json, "MARKDOWN": "# Report\n" if json else ""}

    assert runner.step("diff.sh") == (code, [said])
    assert runner.outputs().get("monthly-cost") == {3: "", 5: "50224.40", 1: None}[code]
    assert runner.left("github_step_summary") == ("# Report\n" if json else "")


def test_long_reports_are_cut_between_lines(runner: Runner) -> None:
    """Summaries and comments that are too long would be dropped as a whole."""
    runner.inputs = {"COMMENT_FILE": "comment.md"}
    runner.stub = {"MARKDOWN": "| ü | café |\n", "TIMES": "120000"}

    assert runner.step("diff.sh") == (0, [])

    comment = (runner.checkout / "comment.md").read_text(encoding="utf-8")
    for text, most in ((runner.left("github_step_summary"), 1 << 20), (comment, 65536)):
        assert 0.9 * most < len(text.encode()) < most
        assert text.endswith("| ü | café |\n\n_Cut here: there is more than fits._\n")


def test_a_spec_that_the_base_does_not_have_is_planned_alone(runner: Runner) -> None:
    """With the real command: a pull request that adds a fleet shows it and its cost."""
    name = "new/specs/$(id) a%b.yaml"
    path = runner.checkout / name
    path.parent.mkdir(parents=True)
    shutil.copy(SPEC, path)
    runner.inputs = {"SPEC": name, "COMMENT_FILE": "comment.md"}
    runner.stub = {"CODE": ""}

    said = f"::notice title=planner::{name.replace('%', '%25')} is new: the base has no plan to compare with"
    assert runner.step("diff.sh") == (0, [said])

    outputs = runner.outputs()
    assert (outputs["changed"], outputs["monthly-delta"]) == ("true", "")
    assert re.fullmatch(r"\d+\.\d\d", outputs["monthly-cost"])
    report = Path(outputs["report"]).read_text(encoding="utf-8").splitlines()
    assert re.fullmatch("<!-- planner diff [0-9a-f]{16} -->", report[0])
    assert report[4].startswith("## one-model-one-gpu: 1 workload, 1 pool, 1 GPU")
    assert runner.left("github_step_summary").splitlines() == report
    assert (runner.checkout / "comment.md").read_text(encoding="utf-8").splitlines() == report


def test_a_spec_of_the_base_is_looked_for_from_its_folder(runner: Runner) -> None:
    (runner.checkout / "fleets").mkdir()
    runner.git("mv", "fleet.yaml", "fleets/fleet.yaml")
    runner.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "moved")
    runner.inputs = {"SPEC": str(runner.checkout / "fleets" / "fleet.yaml")}

    assert runner.step("diff.sh") == (0, [])
    assert runner.left("stub_calls").startswith("diff\t")


def test_without_a_base_there_is_no_comparison(runner: Runner) -> None:
    runner.inputs = {"BASE": ""}

    code, (said,) = runner.step("diff.sh")

    assert code == 0
    assert said.startswith("::notice title=planner::no base to compare with")
    assert runner.outputs() == {}


def test_a_shallow_checkout_fetches_its_base(runner: Runner) -> None:
    base = runner.git("rev-parse", "HEAD")
    runner.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "second")
    origin, runner.checkout = runner.checkout, runner.home / "shallow"
    runner.git("clone", "--quiet", "--depth=1", f"file://{origin}", str(runner.checkout), folder=origin)
    runner.inputs = {"BASE": base}

    assert runner.step("diff.sh") == (0, [])
    assert f"git:{base}" in runner.left("stub_calls")


@pytest.mark.parametrize("base", ["no-such-branch", "--upload-pack=touch ran", "a\n::error::b"])
def test_a_base_that_is_none(base: str, runner: Runner) -> None:
    """It is named on one line, and neither git nor the shell takes it for more than a name."""
    runner.inputs = {"BASE": base}

    code, (said,) = runner.step("diff.sh")

    assert code == 1
    assert said.startswith(f"::error title=planner::the base {base.replace(chr(10), '%0A')} is not in this checkout")
    assert not (runner.checkout / "ran").exists()
    assert runner.left("stub_calls") == ""


def test_inputs_reach_scripts_as_variables_only() -> None:
    """An expression inside of a script would run what a pull request writes into it."""
    action = metadata()
    steps = action["runs"]["steps"]
    given = " ".join(value for step in steps for value in step.get("env", {}).values())

    assert not [step["run"] for step in steps if "${{" in step["run"]]
    assert [name for name in action["inputs"] if f"inputs.{name} " not in given] == []
    for step in steps:
        script = (ACTION / re.findall(r"/(\w+\.sh)", step["run"])[0]).read_text(encoding="utf-8")
        assert set(re.findall(r"INPUT_\w+", script)) == {name for name in step["env"] if name.startswith("INPUT_")}
