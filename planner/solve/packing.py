"""Which replica sits on which bought node: the largest replicas first, which is exact for powers of two."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from planner.program.data import Column, FleetProblem, NodeOffer, bought_as
from planner.solve.tolerance import FEASIBILITY_RTOL

ENOUGH = 1.0 + FEASIBILITY_RTOL


@dataclass(frozen=True)
class PackedNode:
    """One bought node and the GPUs that each candidate's replicas take on it."""

    offer: str
    gpus: int
    occupants: Mapping[str, int]

    @property
    def idle_gpus(self) -> int:
        """GPUs of the node that no replica uses."""
        return self.gpus - sum(self.occupants.values())


@dataclass(frozen=True)
class Packing:
    """All nodes that are paid for, and on which offers the replicas of each candidate lie, by (candidate, offer)."""

    nodes: tuple[PackedNode, ...]
    replicas_on: Mapping[tuple[str, str], int]

    def count(self) -> dict[str, int]:
        """Return nodes by offer."""
        return dict(sorted(Counter(n.offer for n in self.nodes).items()))


class PackingError(ArithmeticError):
    """Replicas do not fit the nodes: the program's packing rows and this code disagree, which is a bug."""


def pack(problem: FleetProblem, nodes: Mapping[str, int], placed: Mapping[tuple[str, str], int]) -> Packing:
    """Place whole replicas on whole nodes, and drop nodes that stay empty unless they are committed, or in use in another period.

    `nodes` counts nodes by offer, `placed` replicas by (candidate, cell). Where dropping nodes would break a limit on shares
    of the cost, replicas are spread over all of them instead. Raises `PackingError`.
    """
    packing = _packing(problem, nodes, placed, _fullest_first)
    if _within_shares(problem, packing.nodes):
        return packing
    return _packing(problem, nodes, placed, _empty_first)


def _packing(
    problem: FleetProblem, nodes: Mapping[str, int], placed: Mapping[tuple[str, str], int], order: Order
) -> Packing:
    columns = {c.name: c for c in problem.columns}
    free = {cell: _Shelf(bins, order) for cell, bins in _nodes_by_cell(problem, nodes).items()}
    replicas_on: Counter[tuple[str, str]] = Counter()
    largest_first = sorted(placed, key=lambda key: (-columns[key[0]].gpus, -columns[key[0]].node_gpus, key))
    for name, cell in largest_first:
        if cell not in free:
            raise PackingError(f"no node is left for a replica of {name}")
        for _ in range(placed[name, cell]):
            replicas_on[name, free[cell].place(columns[name])] += 1
    bins = [b for cell in sorted(free) for b in free[cell].bins]
    return Packing(tuple(_kept(problem, bins)), dict(sorted(replicas_on.items())))


@dataclass
class _Bin:
    offer: NodeOffer
    free: int
    occupants: Counter[str]


Order = Callable[[_Bin], tuple[Any, ...]]
"""Which of the nodes that can hold a replica takes it: the first in this order, which tells offers and free GPUs apart."""


def _fullest_first(b: _Bin) -> tuple[Any, ...]:
    return (b.free, b.offer.usd_per_node_h / b.offer.gpus_per_node, b.offer.name)


def _empty_first(b: _Bin) -> tuple[Any, ...]:
    return (bool(b.occupants), *_fullest_first(b))


def _nodes_by_cell(problem: FleetProblem, nodes: Mapping[str, int]) -> dict[str, list[_Bin]]:
    bins: dict[str, list[_Bin]] = defaultdict(list)
    for offer in problem.offers:
        bins[offer.cell] += [_Bin(offer, offer.gpus_per_node, Counter()) for _ in range(nodes.get(offer.name, 0))]
    return bins


class _Shelf:
    """The nodes of a cell, those that an order cannot tell apart together: few kinds, however many nodes."""

    def __init__(self, bins: list[_Bin], order: Order) -> None:
        self.bins, self._order = bins, order
        self._alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)  # heaps of places in `bins`
        for place in range(len(bins)):
            self._put(place)

    def place(self, column: Column) -> str:
        """Put one replica on the first nodes that can hold it; return the offer of the first."""
        chosen: list[int] = []
        for key in sorted(self._alike):
            places = self._alike[key]
            while places and len(chosen) < column.nodes_spanned and self._holds(places[0], column):
                chosen.append(heappop(places))
            if not places:
                del self._alike[key]
            if len(chosen) == column.nodes_spanned:
                break
        else:
            raise PackingError(f"no node is left for a replica of {column.name}")
        for place in chosen:
            self.bins[place].free -= column.node_gpus
            self.bins[place].occupants[column.name] += column.node_gpus
            self._put(place)
        return self.bins[chosen[0]].offer.name

    def _put(self, place: int) -> None:
        heappush(self._alike[self._order(self.bins[place])], place)

    def _holds(self, place: int, column: Column) -> bool:
        b = self.bins[place]
        return b.free >= column.node_gpus and (column.nodes_spanned == 1 or b.free == b.offer.gpus_per_node)


def _kept(problem: FleetProblem, bins: list[_Bin]) -> list[PackedNode]:
    committed = {s.entry: s.committed for s in problem.stock}
    used = Counter(b.offer.name for b in bins if b.occupants)
    due = _due(problem, used)
    paid: Counter[str] = Counter()
    for offer in problem.offers:
        paid[offer.entry] += due[offer.name]
    empty = due - used
    kept: list[PackedNode] = []
    for b in bins:
        if not b.occupants:
            if empty[b.offer.name] > 0:
                empty[b.offer.name] -= 1
            elif paid[b.offer.entry] < committed.get(b.offer.entry, 0):
                paid[b.offer.entry] += 1
            else:
                continue
        kept.append(PackedNode(b.offer.name, b.offer.gpus_per_node, dict(sorted(b.occupants.items()))))
    return kept


def _due(problem: FleetProblem, used: Mapping[str, int]) -> Counter[str]:
    """Return the nodes by offer that are paid for because some are used: those reserved for all periods in each of them."""
    most: dict[str, int] = {}
    for offer in problem.offers:
        if offer.reserved:
            most[offer.reserved] = max(most.get(offer.reserved, 0), used.get(offer.name, 0))
    most |= _in_term(problem, most)
    return Counter({o.name: most[o.reserved] if o.reserved else used.get(o.name, 0) for o in problem.offers})


def _in_term(problem: FleetProblem, used: Mapping[str, int]) -> dict[str, int]:
    """Return the nodes of long terms that are paid for in each step of a growing demand, bought as late as may be."""
    copies: dict[str, dict[str, NodeOffer]] = defaultdict(dict)
    for offer in problem.offers:
        if offer.term_steps:
            copies[bought_as(offer)][offer.step] = offer
    paid: dict[str, int] = {}
    for by_step in copies.values():
        own = [by_step[step] for step in sorted(by_step)]
        term = own[0].term_steps
        bought = bought_by([used.get(o.reserved, 0) for o in own], term)
        paid |= {o.reserved: sum(bought[max(0, now - term + 1) : now + 1]) for now, o in enumerate(own)}
    return paid


def bought_by(needed: Sequence[int], term: int) -> list[int]:
    """Return the nodes that are bought in each step where so many are needed and each is paid for a term of steps, as late as may be.

    No other purchases pay for fewer steps of nodes: one that is bought before it is needed ends before, too.
    """
    bought: list[int] = []
    for now, count in enumerate(needed):
        bought.append(max(0, count - sum(bought[max(0, now - term + 1) :])))
    return bought


def _within_shares(problem: FleetProblem, nodes: Sequence[PackedNode]) -> bool:
    offers = {o.name: o for o in problem.offers}
    for each in problem.cost_shares:
        own = [offers[n.offer] for n in nodes if offers[n.offer].step == each.step]
        total = sum(o.usd_per_node_h for o in own)
        if sum(o.usd_per_node_h for o in own if o.name in each.offers) > each.share * total * ENOUGH:
            return False
    return True
