"""Buy the cheapest nodes for given replicas, and say in which cell each replica lies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from planner.program.data import FleetProblem
from planner.program.supply import Size
from planner.solve.highs import Effort, minimise
from planner.solve.master import Supply
from planner.solve.tolerance import to_count

Placement = dict[tuple[str, str], int]


def buy_nodes(problem: FleetProblem, supply: Supply, replicas: Mapping[str, int]) -> tuple[dict[str, int], Placement]:
    """Return nodes by offer and replicas by (candidate, cell), for replicas that some nodes hold.

    Replicas of one size are alike to nodes: they take the places of their size in order of name.

    Raises:
        ArithmeticError: no nodes hold the replicas, which is a bug.
    """
    used = [c for c in problem.columns if replicas.get(c.name, 0) > 0]
    due: Counter[Size] = Counter()
    for column in used:
        due[Size.of(column)] += replicas[column.name]
    program = supply.program
    sizes = {size.name: count for size, count in due.items()}
    is_fixed = np.array([name == "replicas" for name, _ in program.columns])
    values = np.array([float(sizes.get(str(key), 0)) for _, key in program.columns])
    fixed = replace(
        program,
        lower=np.where(is_fixed, values, program.lower),
        upper=np.where(is_fixed, values, program.upper),
    )
    answer = minimise(fixed, Effort())
    if answer.point is None:
        raise ArithmeticError("no nodes hold the replicas of the fleet that was found")
    counts = {
        (name, key): to_count(value)
        for (name, key), value in zip(program.columns, answer.point.tolist(), strict=True)
        if value > 0.5
    }
    nodes = {str(key): count for (name, key), count in counts.items() if name == "nodes"}
    room: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for (name, key), count in counts.items():
        if name == "placed" and isinstance(key, tuple):
            room[key[0]].append((key[1], count))
    placed: Placement = {}
    for column in sorted(used, key=lambda c: c.name):
        size = Size.of(column)
        if not column.has_choice:
            placed.update({(column.name, cell): replicas[column.name] for cell in column.cells})
            continue
        for cells in column.places:
            left = replicas[column.name]
            while left:
                at = next(i for i, (cell, _) in enumerate(room[size.name]) if cell in cells)
                cell, free = room[size.name].pop(at)
                taken = min(left, free)
                placed[column.name, cell] = placed.get((column.name, cell), 0) + taken
                left -= taken
                if free > taken:
                    room[size.name].insert(at, (cell, free - taken))
    return nodes, placed
