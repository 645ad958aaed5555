"""Whole numbers to branch on: the GPUs of each type that a model takes.

A search that branches on single candidates moves a replica from one to its like, and proves little. How many GPUs of a type
a model takes is what nodes know of it, and few numbers say it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import block_array, csr_array, eye_array

from planner.program.compile import CompiledProgram
from planner.program.data import Column
from planner.solve.sparse import sparse


def with_gpu_counts(program: CompiledProgram, candidates: Sequence[Column]) -> CompiledProgram:
    """Add a column for the GPUs of each type that each model takes, where several candidates may take them.

    The new columns follow from the others: they change neither what is feasible nor what it costs.
    """
    place = {key: i for i, (name, key) in enumerate(program.columns) if name == "replicas"}
    taking: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for c in candidates:
        if c.name in place:
            taking[c.model, c.gpu].append((place[c.name], float(c.gpus)))
    counted = [key for key, terms in sorted(taking.items()) if len(terms) > 1]
    if not counted:
        return program
    count = len(counted)
    gpus = sparse([(i, at, n) for i, key in enumerate(counted) for at, n in taking[key]], (count, len(program.columns)))
    named = tuple(("gpus", key) for key in counted)
    nothing = np.zeros(count)
    return replace(
        program,
        columns=(*program.columns, *named),
        rows=(*program.rows, *named),
        cost=np.append(program.cost, nothing),
        matrix=csr_array(block_array([[program.matrix, None], [gpus, -eye_array(count)]], format="csr")),
        row_lower=np.append(program.row_lower, nothing),
        row_upper=np.append(program.row_upper, nothing),
        lower=np.append(program.lower, nothing),
        upper=np.append(program.upper, np.full(count, np.inf)),
        is_integer=np.append(program.is_integer, np.ones(count, dtype=bool)),
    )
