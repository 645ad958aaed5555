"""Measurements of speed for the commands that read them: tables made by hand, result files with flags."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from cli_run import ROOT, run

SPEEDS = ROOT / "tests/data/speed/measurements.csv"
LOGS = ROOT / "tests/data/memory/start_up_logs.csv"
RESULT = ROOT / "tests/data/results/vllm_serve_closed.json"
FLAGS = ("--gpu", "H100 SXM 80GB", "--gpus", "1", "--tp", "1", "--engine", "vLLM 0.11.0", "--source", "mine")
H100_8B = ("llama-3.1-8b", "h100-sxm")
COLUMNS = SPEEDS.read_text(encoding="utf-8").splitlines()[0].split(",")
GOOD = {
    "source": "mine", "engine": "vLLM 0.11.0", "gpu": "H100 SXM 80GB", "n_gpus": "1", "tp": "1",
    "model": "meta-llama/Llama-3.1-8B-Instruct", "weight_dtype": "bf16", "isl": "1000", "osl": "200",
    "scenario": "closed_loop", "concurrency": "16", "metric": "output_tok_s_total", "value": "1500",
}  # fmt: skip


def write(path: Path, *changes: dict[str, str]) -> Path:
    """Write a table of good rows with changes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**GOOD, **change} for change in changes)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def answered(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert (done.code, done.err) == (0, "")
    parsed: dict[str, Any] = json.loads(done.out)
    return parsed


def nothing_scored(*arguments: str | Path) -> dict[str, Any]:
    """Return the answer of a run that could score nothing, which is wrong input."""
    done = run(*arguments, "--format", "json")
    assert done.code == 1
    assert done.err.startswith("planner: nothing could be scored")
    parsed: dict[str, Any] = json.loads(done.out)
    return parsed
