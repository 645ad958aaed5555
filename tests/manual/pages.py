"""The generated parts of the manual: made from the code, so that they cannot say anything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from planner.candidates.knowledge import Knowledge
from planner.catalog import Catalog
from planner.physics.bands import LINES, factor
from planner.program.constraint import Constraint, all_constraints

CONFIDENCE = 0.8
BEGIN, END = "<!-- generated: {} -->", "<!-- end -->"


def with_generated_parts(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with what stands between the marks of each part made anew."""
    for name, make in parts.items():
        block = re.compile(re.escape(BEGIN.format(name)) + r"\n.*?" + re.escape(END), re.DOTALL)
        assert block.search(text), f"the page has no marks for {name}"
        fresh = f"{BEGIN.format(name)}\n\n{make().strip()}\n\n{END}"
        text = block.sub(lambda _, fresh=fresh: fresh, text)
    return text


def constraints_part() -> str:
    """Return one section for each constraint: sentence, maths, symbols, index, unit."""
    return "\n".join(line for constraint in all_constraints() for line in _constraint(constraint))


def _constraint(constraint: Constraint) -> Iterator[str]:
    yield f"### {constraint.name}"
    yield ""
    yield constraint.sentence
    yield ""
    yield f"$${constraint.math}$$"
    yield ""
    yield from (f"- ${symbol}$: {meaning}" for symbol, meaning in constraint.symbols.items())
    yield ""
    index = ", ".join(constraint.key_names) or "none"
    traits = [f"Index: {index}", f"unit: {constraint.unit}"]
    traits += ["couples models"] if constraint.couples else []
    traits += ["strengthens"] if constraint.strengthens else []
    yield "; ".join(traits) + "."
    yield ""


def bands_part(catalog: Path) -> str:
    """Return the bands of the calibration, and the factors that the default confidence asks for."""
    known = Knowledge.of(Catalog.open(catalog), CONFIDENCE)
    at = f"{CONFIDENCE:.0%}".replace("%", " %")
    lines = [
        f"| class | throughput and TPOT, 80 / 95 % | TTFT, 80 / 95 % | factor on steps at {at} | factor on TTFT at {at} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in LINES:
        bands = known.bands.by_line[name]
        widths = [f"{bands[metric].p80:g} / {bands[metric].p95:g}" for metric in ("throughput", "ttft")]
        factors = [f"{factor(known.bands, name, metric, CONFIDENCE):.2f}" for metric in ("throughput", "ttft")]
        lines.append(f"| {'A, ' * (len(name) > 1)}{name} | {' | '.join([*widths, *factors])} |")
    return "\n".join(lines)
