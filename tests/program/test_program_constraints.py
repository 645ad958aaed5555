"""Every named constraint: its words, its symbols, and its rows on one fixed problem."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from golden_lp import GOLDEN, golden_path, lp_text
from problems import EVERYTHING, GIANT, GIANT_RULES, LONG_DEMAND, STATED_OVER

from planner.program.constraint import Constraint, all_constraints
from planner.program.data import FleetProblem
from planner.program.fleet import build
from planner.program.index import ProgramIndex

SCRIPT = re.compile(r"[_^](\{[^{}]*\}|\\[a-zA-Z]+|.)")
SYMBOL = re.compile(r"\\[a-zA-Z]+|[a-zA-Z]")
OPERATORS = {"\\sum", "\\le", "\\ge", "\\ne", "\\in", "\\min", "\\max", "\\quad", "\\lfloor", "\\rfloor"}
FREE_OF = {
    "budget": replace(EVERYTHING, budget_usd_per_h=None),
    "commitment": replace(EVERYTHING, stock=()),
    "stock": replace(EVERYTHING, stock=()),
    "cell_stock": replace(EVERYTHING, stock=()),
    "gpu_limit": replace(EVERYTHING, gpu_limits={"no such GPU": 4}),
    "power_limit": replace(EVERYTHING, max_power_w=None),
    "quota": replace(EVERYTHING, quotas=()),
    "spot_cover": EVERYTHING,
    "spot_share": EVERYTHING,
    "zone_cover": EVERYTHING,
    "spare_spot": EVERYTHING,
    "whole_replica": EVERYTHING,
    "node_use": EVERYTHING,
    "cost_share": EVERYTHING,
    "node_change": EVERYTHING,
    "pool_change": EVERYTHING,
    "stay_within": EVERYTHING,
    "reserved": EVERYTHING,
    "term": EVERYTHING,
    "gpu_types": replace(EVERYTHING, max_gpu_types=None),
    "gpu_type_use": replace(EVERYTHING, max_gpu_types=None),
    "block_bound": replace(EVERYTHING, block_bounds=()),
    "spare_demand": replace(EVERYTHING, losses=()),
    "spare_capacity": replace(EVERYTHING, losses=()),
    **{
        name: replace(EVERYTHING, columns=(GIANT,), rules=(GIANT_RULES,), demands=(LONG_DEMAND,), losses=())
        for name in (
            "format_use", "max_shapes", "min_replicas", "placement", "pool_loss", "pool_size", "shape_use", "spare",
            "total_reach", "uniform_format",
        )
    },
}  # fmt: skip
"""Problems that a constraint has nothing to say about; the others always speak."""

each_constraint = pytest.mark.parametrize("constraint", all_constraints(), ids=lambda c: c.name)


def base_symbols(math: str) -> set[str]:
    """Return the letters of a formula that stand for quantities: no operators, no indices."""
    while (plain := SCRIPT.sub(" ", math)) != math:
        math = plain
    return set(SYMBOL.findall(math)) - OPERATORS


@each_constraint
def test_golden_lp(constraint: Constraint) -> None:
    assert lp_text(constraint) == golden_path(constraint.name).read_text()


@each_constraint
def test_golden_is_not_empty(constraint: Constraint) -> None:
    rows = [line for line in golden_path(constraint.name).read_text().splitlines() if line.startswith("c_")]
    assert rows
    assert all(f"_{constraint.name}(" in row or row.endswith(f"_{constraint.name}_:") for row in rows)


@each_constraint
def test_words(constraint: Constraint) -> None:
    assert constraint.unit
    assert constraint.sentence[0].isupper()
    assert constraint.sentence.endswith(".")
    assert re.search(r"\\le|\\ge|=", constraint.math)
    assert all(constraint.symbols.values())


@each_constraint
def test_every_symbol_is_explained_and_used(constraint: Constraint) -> None:
    explained = set().union(*(base_symbols(key) for key in constraint.symbols))
    indices = set(SYMBOL.findall("".join(part for key in constraint.symbols for part in SCRIPT.findall(key))))
    assert base_symbols(constraint.math) <= explained | indices
    for key in constraint.symbols:
        assert base_symbols(key) <= set(SYMBOL.findall(constraint.math)), key


@each_constraint
def test_keys_have_names(constraint: Constraint) -> None:
    keys = list(constraint.index(ProgramIndex(STATED_OVER.get(constraint.name, EVERYTHING))))
    assert keys
    names = constraint.key_names[:-1] if constraint.key_names[-1:] == ("period",) else constraint.key_names
    several = {len(constraint.key_names)} if constraint.name == "reserved" else {len(names)}
    assert {len(key) for key in keys} == several  # where there is one period, it is in no key
    assert len(set(keys)) == len(keys)


@each_constraint
def test_says_nothing_where_it_has_nothing_to_say(constraint: Constraint) -> None:
    free: FleetProblem = FREE_OF.get(constraint.name, replace(EVERYTHING, columns=(), demands=(), rules=(), losses=()))
    assert len(build(free, (constraint,)).component(constraint.name)) == 0


def test_goldens_and_constraints_match() -> None:
    assert {path.stem for path in GOLDEN.glob("*.lp")} == {c.name for c in all_constraints()}


def test_names_are_those_of_the_modules() -> None:
    names = [c.name for c in all_constraints()]
    assert names == sorted(set(names))
    assert all(c.rule.__module__.endswith(f".{c.name}") for c in all_constraints())


def test_rows_that_only_strengthen() -> None:
    """Which rows those are is fixed here; that they change no optimum is tested against brute force."""
    strengthening = {c.name for c in all_constraints() if c.strengthens}
    assert strengthening == {
        "block_bound", "cell_stock", "cover", "shape_size", "shape_spare", "spot_cover", "whole_replica",
    }  # fmt: skip
