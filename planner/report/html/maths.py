"""The constraints of the program in words, units and maths that browsers set and screen readers read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup

from planner.plan.schema import Plan
from planner.program.constraint import Constraint, all_constraints


@dataclass(frozen=True)
class Formula:
    """A constraint as it is shown. `rows` is None where it is not known how many of it the program has."""

    name: str
    unit: str
    sentence: str
    math: Markup
    symbols: tuple[tuple[Markup, str], ...]
    rows: int | None


def formulas(rows: Mapping[str, int]) -> list[Formula]:
    """Return every constraint, those that the program has first; `rows` counts them by name, empty where that is not known."""
    found = [_formula(c, rows.get(c.name) if rows else None) for c in all_constraints()]
    return sorted(found, key=lambda f: (f.rows == 0, f.name))


def note(rows: Mapping[str, int], plan: Plan) -> str:
    """Return what the numbers of rows say, or why there are none."""
    if rows:
        return "Those without rows do not apply to this spec."
    if plan.demand_by_period is not None:
        return (
            f"How many rows each has is not counted: hours are planned in {len(plan.periods)} periods together, each with rows of its "
            "own, and some join them."
        )
    return "How many rows each has is known only with the spec and the catalog."


def _formula(constraint: Constraint, rows: int | None) -> Formula:
    symbols = tuple((mathml(symbol, "inline"), meaning) for symbol, meaning in constraint.symbols.items())
    return Formula(
        constraint.name, constraint.unit, constraint.sentence, mathml(constraint.math, "block"), symbols, rows
    )


def mathml(latex: str, display: str) -> Markup:
    """Return LaTeX as MathML, the LaTeX itself as its text alternative."""
    root = ElementTree.fromstring(convert(latex, display=display))
    root.set("alttext", latex)
    ElementTree.register_namespace("", "http://www.w3.org/1998/Math/MathML")
    return Markup(ElementTree.tostring(root, encoding="unicode"))
