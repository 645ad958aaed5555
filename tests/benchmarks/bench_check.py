"""Time `planner check` of many specs as a whole process, as a commit hook runs it, and print one table.

usage: bench_check.py [--runs 5] [--files 50]

The specs are variants of those under specs/, each in a folder of its own, all of one catalog that they name. Times are of
the run with the best wall-clock time, and the CPU time of that run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from itertools import cycle, islice
from pathlib import Path

from bench_solve import ROOT, best

SPECS = (*sorted((ROOT / "specs").glob("*.yaml")), *sorted((ROOT / "specs" / "examples").glob("*.yaml")))
FORMATS = ("full", "github", "sarif")


def write_variants(folder: Path, files: int) -> None:
    """Write so many specs, each with a name of its own."""
    for number, spec in enumerate(islice(cycle(SPECS), files)):
        home = folder / f"fleet-{number:03}"
        home.mkdir()
        catalog = os.path.relpath(ROOT / "catalog", home.resolve())
        text = spec.read_text(encoding="utf-8").replace(
            "\nfleet: ", f"\ncatalog: {{path: {catalog}}}\nfleet: n{number}-", 1
        )
        (home / "fleet.yaml").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--files", type=int, default=50)
    asked = parser.parse_args()

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; best of {asked.runs}")
    print(f"{'command':<32}  {'wall s':>7}  {'CPU s':>7}  {'exit':>4}")
    with tempfile.TemporaryDirectory() as name:
        write_variants(Path(name), asked.files)
        rows = [("check of one file", [str(SPECS[0])])]
        rows += [(f"check of {asked.files}, {format}", ["--format", format, name]) for format in FORMATS]
        for title, arguments in rows:
            timed = best(title, ["check", *arguments], asked.runs)
            print(f"{title:<32}  {timed.wall_s:7.2f}  {timed.cpu_s:7.2f}  {timed.code:4d}", flush=True)


if __name__ == "__main__":
    main()
