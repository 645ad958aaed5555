"""Time `planner solve` of small edits of specs/prod.yaml, as a team makes them in a merge request, and print one table.

usage: bench_edits.py [NAME ...]

Each edit is a process of its own. The last lines are the median and the largest CPU time of all: a review solves such
variants while people wait.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from typing import Any

import yaml
from bench_solve import PROD, ROOT, row, run

Edit = dict[str, Any]
"""New values by path of keys; None takes the key or the entry away."""

RATE = "workloads.assistant.traffic.rate.peak"
LIMITS = "workloads.assistant.slo"
AWS, GCP, RACK = "supply.offers.0", "supply.offers.1", "supply.offers.2"
EDITS: dict[str, Edit] = {
    "as it is": {},
    **{f"assistant {n} req/s": {RATE: f"{n} req/s"} for n in (8, 10, 14, 16, 18, 20, 24, 30)},
    **{f"tpot {n} ms": {f"{LIMITS}.tpot_p95": f"{n} ms"} for n in (45, 50, 55, 70)},
    **{f"ttft {n} s": {f"{LIMITS}.ttft_p95": f"{n} s"} for n in (1, 1.5, 3)},
    "completion 14 req/s": {"workloads.completion.traffic.rate": "14 req/s"},
    "completion 20 req/s": {"workloads.completion.traffic.rate": "20 req/s"},
    "completion tpot 50 ms": {"workloads.completion.slo.tpot_p95": "50 ms"},
    "deep-research 1 req/s": {"workloads.deep-research.traffic.rate": "1 req/s"},
    "no rack": {RACK: None},
    **{f"rack of {n} nodes": {f"{RACK}.nodes": n} for n in (1, 3)},
    **{f"gcp {n} % off": {f"{GCP}.discount": f"{n} %"} for n in (5, 15)},
    **{f"{n} spares": {"reliability.spare_replicas": n} for n in (0, 2)},
    **{f"headroom {n} %": {"reliability.headroom": f"{n} %"} for n in (0, 20)},
    **{f"chat in {n} shapes": {"models.chat.max_shapes": n} for n in (1, 3)},
    "no summaries": {"workloads.summaries": None},
    "no deep-research": {"workloads.deep-research": None},
    "no H100": {f"{AWS}.gpus": ["H200-SXM-141GB", "L40S", "A10G"], f"{GCP}.gpus": ["L4"]},
    "24 req/s within 2 %": {RATE: "24 req/s", "planning.gap": "2 %"},
}


def edited(text: str, edit: Edit) -> str:
    """Return a spec with an edit made."""
    spec = yaml.safe_load(text)
    for path, value in edit.items():
        *above, last = (int(key) if key.isdigit() else key for key in path.split("."))
        node = spec
        for key in above:
            node = node[key]
        if value is None:
            del node[last]
        else:
            node[last] = value
    return yaml.safe_dump(spec, sort_keys=False)


def main() -> None:
    names = sys.argv[1:] or list(EDITS)
    unknown = sorted(set(names) - set(EDITS))
    if unknown:
        raise SystemExit(f"no such edit: {', '.join(unknown)}; there are: {', '.join(EDITS)}\n\n{__doc__}")
    text = Path(ROOT, PROD).read_text(encoding="utf-8")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'edit':<24}  {'wall s':>7}  {'CPU s':>7}  {'exit':>4}  {'status':<10}  {'USD/h':>12}  {'gap':>9}")
    seconds = []
    for name in names:
        timed = run(name, ["solve", "-", "--format", "json"], edited(text, EDITS[name]).encode())
        seconds.append(timed.cpu_s)
        print(row(timed), flush=True)
    print(f"{'median':<24}  {'':>7}  {statistics.median(seconds):7.2f}")
    print(f"{'largest':<24}  {'':>7}  {max(seconds):7.2f}")


if __name__ == "__main__":
    main()
