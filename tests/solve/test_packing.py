"""Replicas on nodes: whatever the packing rows allow can be placed, and nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_solve_outcomes import column

from planner.program.data import FleetProblem, NodeOffer, Stock
from planner.solve.packing import Packing, PackingError, pack

SIZES = (1, 2, 4, 8)
NODE_GPUS = (1, 2, 3, 4, 6, 8, 10)


@dataclass(frozen=True)
class Fleet:
    """Nodes, and replicas that the packing rows admit on them."""

    problem: FleetProblem
    nodes: dict[str, int]
    placed: dict[tuple[str, str], int]


def problem(offers: tuple[NodeOffer, ...], spanning: bool, stock: tuple[Stock, ...] = ()) -> FleetProblem:
    columns = tuple(replace(column(f"tp{n}", gpus=n), cells=("A", "B")) for n in SIZES)
    wide = (replace(column("wide", gpus=8), cells=("A", "B"), nodes_spanned=2),) if spanning else ()
    return FleetProblem(columns=(*columns, *wide), demands=(), rules=(), offers=offers, stock=stock)


def rows_hold(fleet: FleetProblem, nodes: dict[str, int], placed: dict[tuple[str, str], int]) -> bool:
    """Evaluate the nested packing rows of every cell."""
    columns = {c.name: c for c in fleet.columns}
    for cell in ("A", "B"):
        for level in SIZES:
            used = sum(
                columns[c].gpus * n for (c, z), n in placed.items() if z == cell and columns[c].node_gpus >= level
            )
            slots = sum(o.gpus_per_node // level * level * nodes[o.name] for o in fleet.offers if o.cell == cell)
            if used > slots:
                return False
    return True


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw nodes, then add replicas as long as the rows hold."""
    spanning = draw(st.booleans())
    sizes = draw(st.lists(st.sampled_from((8,) if spanning else NODE_GPUS), min_size=1, max_size=3))
    offers = tuple(
        NodeOffer(f"o{i}", f"e{i}", "A", draw(st.sampled_from("AB")), gpus, float(draw(st.integers(1, 9))))
        for i, gpus in enumerate(sizes)
    )
    fleet = problem(offers, spanning)
    nodes = {o.name: draw(st.integers(0, 4)) for o in offers}
    placed: Counter[tuple[str, str]] = Counter()
    for name in draw(st.lists(st.sampled_from([c.name for c in fleet.columns]), max_size=20)):
        key = name, draw(st.sampled_from("AB"))
        placed[key] += 1
        if not rows_hold(fleet, nodes, placed):
            placed[key] -= 1
    return Fleet(fleet, nodes, {key: n for key, n in placed.items() if n})


@given(fleets())
@settings(max_examples=200, derandomize=True, deadline=None)
def test_what_the_rows_admit_can_be_packed(fleet: Fleet) -> None:
    packing = pack(fleet.problem, fleet.nodes, fleet.placed)
    assert_conserved(fleet, packing)


def assert_conserved(fleet: Fleet, packing: Packing) -> None:
    columns = {c.name: c for c in fleet.problem.columns}
    offers = {o.name: o for o in fleet.problem.offers}
    taken: Counter[tuple[str, str]] = Counter()
    for node in packing.nodes:
        assert node.occupants
        assert node.idle_gpus >= 0
        assert node.gpus == offers[node.offer].gpus_per_node
        for name, gpus in node.occupants.items():
            assert gpus % columns[name].node_gpus == 0
            taken[name, offers[node.offer].cell] += gpus
    assert taken == {(c, z): n * columns[c].gpus for (c, z), n in fleet.placed.items()}
    assert all(count <= fleet.nodes[name] for name, count in packing.count().items())
    by_candidate: Counter[str] = Counter()
    for (name, offer), count in packing.replicas_on.items():
        assert offers[offer].cell in columns[name].cells
        by_candidate[name] += count
    wanted: Counter[str] = Counter()
    for (name, _), count in fleet.placed.items():
        wanted[name] += count
    assert by_candidate == wanted


OFFER = NodeOffer("o", "e", "A", "A", 8, 8.0)


def test_empty_nodes_are_dropped() -> None:
    packing = pack(problem((OFFER,), spanning=False), {"o": 5}, {("tp4", "A"): 3})
    assert packing.count() == {"o": 2}


@pytest.mark.parametrize(("committed", "kept"), [(0, 1), (1, 1), (3, 3), (5, 5)])
def test_empty_nodes_are_kept_while_they_are_committed(committed: int, kept: int) -> None:
    fleet = problem((OFFER,), spanning=False, stock=(Stock("e", committed, 5),))
    packing = pack(fleet, {"o": 5}, {("tp1", "A"): 3})
    assert packing.count() == {"o": kept}
    assert sum(not node.occupants for node in packing.nodes) == kept - 1


def test_a_commitment_counts_nodes_that_hold_replicas_first() -> None:
    two = (OFFER, replace(OFFER, name="p", cell="B"))
    packing = pack(problem(two, spanning=False, stock=(Stock("e", 2, 4),)), {"o": 2, "p": 2}, {("tp8", "B"): 2})
    assert packing.count() == {"p": 2}


def test_replicas_over_nodes_take_whole_nodes() -> None:
    packing = pack(problem((OFFER,), spanning=True), {"o": 4}, {("wide", "A"): 1, ("tp4", "A"): 2, ("tp8", "A"): 1})
    holding = [dict(node.occupants) for node in packing.nodes]
    assert holding.count({"wide": 8}) == 2
    assert holding.count({"tp4": 8}) == 1
    assert packing.replicas_on == {("tp4", "o"): 2, ("tp8", "o"): 1, ("wide", "o"): 1}


@pytest.mark.parametrize("placed", [{("tp8", "A"): 2}, {("wide", "A"): 1}, {("tp1", "B"): 1}])
def test_what_cannot_be_packed_is_refused(placed: dict[tuple[str, str], int]) -> None:
    with pytest.raises(PackingError, match="no node is left"):
        pack(problem((OFFER,), spanning=True), {"o": 1}, placed)


def test_small_replicas_fill_started_nodes_before_empty_ones() -> None:
    packing = pack(problem((OFFER,), spanning=False), {"o": 3}, {("tp4", "A"): 1, ("tp1", "A"): 4})
    assert packing.count() == {"o": 1}
