"""The LP text of one constraint, in one fixed order.

After an intended change of a constraint, write its golden anew and review the difference:

    python tests/program/golden_lp.py            # all constraints
    python tests/program/golden_lp.py spare      # some of them
"""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pyomo.environ as pyo
from problems import EVERYTHING, STATED_OVER

from planner.program.constraint import Constraint, all_constraints
from planner.program.fleet import build

GOLDEN = Path(__file__).parents[1] / "golden" / "program"
SIGNIFICANT_DIGITS = 12


def golden_path(name: str) -> Path:
    """Return where the golden LP of a constraint lies."""
    return GOLDEN / f"{name}.lp"


def lp_text(constraint: Constraint) -> str:
    """Return the rows of one constraint alone, with the bounds of the variables in them, as LP text."""
    model = build(STATED_OVER.get(constraint.name, EVERYTHING), (constraint,))
    model.del_component(model.objective)
    model.objective = pyo.Objective(expr=0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.lp"
        model.write(str(path), io_options={"symbolic_solver_labels": True})
        return ordered(path.read_text())


def ordered(text: str) -> str:
    """Sort the rows of an LP text, the terms of each row, and the lists of bounds and integers."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\\")]
    start, bounds = lines.index("s.t."), lines.index("bounds")
    kinds = [i for i, line in enumerate(lines) if line in ("binary", "general", "end")]
    sections = [
        ["min", "o: 0 ONE_VAR_CONSTANT", "s.t."],
        *sorted(_rows(lines[start + 1 : bounds])),
        ["bounds", *sorted(lines[bounds + 1 : kinds[0]])],
        *([lines[a], *sorted(lines[a + 1 : b])] for a, b in pairwise(kinds)),
        ["end"],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _rows(lines: list[str]) -> list[list[str]]:
    starts = [i for i, line in enumerate(lines) if line.endswith(":")]
    rows = [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [[row[0], *sorted(map(_rounded, row[1:-1]), key=lambda term: term.split()[1]), row[-1]] for row in rows]


def _rounded(term: str) -> str:
    coefficient, variable = term.split()
    return f"{float(coefficient):+.{SIGNIFICANT_DIGITS}g} {variable}"


def write_goldens(names: list[str]) -> None:
    """Write the goldens of the named constraints, or of all."""
    for constraint in all_constraints():
        if not names or constraint.name in names:
            golden_path(constraint.name).write_text(lp_text(constraint))


if __name__ == "__main__":
    write_goldens(sys.argv[1:])
