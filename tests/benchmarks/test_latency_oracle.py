"""Long comparison of the latency closed form with the simulator; prints one line per cell and a summary.

Run by hand: `pytest tests/benchmarks/test_latency_oracle.py -s -o addopts=`.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from latency_cases import Case, achievable, pairs

from planner.physics.latency import AtBatch, largest_batch

REQUESTS = 12_000
SEED = 11


def cells() -> list[tuple[Case, str, float]]:
    found = []
    shapes = ((1000.0, 200.0), (200.0, 100.0), (4000.0, 300.0))
    for (prompt, output), spread, replicas, slots in product(shapes, (0.5, 1.0), (1, 4), (64, 128)):
        case = Case(prompt, output, spread, replicas, slots)
        for metric, multiple in (("ttft", 3.0), ("tpot", 2.0)):
            idle = AtBatch.of(pairs(case), np.array([0.0])).percentile(metric, 0.95, halved=False)[0]
            found.append((case, metric, max(multiple * idle, 0.1 if metric == "ttft" else 0.0)))
    return found


def test_allowed_over_achievable() -> None:
    """The safe form stays within 0.5 and 1.15 of the simulated truth, the unbiased one centres on it."""
    safe, unbiased = [], []
    for case, metric, limit_s in cells():
        limits = {f"{metric}_p95": np.array([limit_s])}
        truth = achievable(case, metric, 0.95, limit_s, REQUESTS, SEED, steps=7)
        ratios = [largest_batch(pairs(case), limits, halved).requests_per_s[0] / truth for halved in (True, False)]
        safe.append(ratios[0])
        unbiased.append(ratios[1])
        print(f"{case.prompt:5.0f}/{case.output:<4.0f} cv {case.spread} R {case.replicas} b {case.slots:3} "
              f"{metric} <= {limit_s:.4f} s: safe {ratios[0]:.2f}, unbiased {ratios[1]:.2f}")  # fmt: skip
    print(f"safe: median {np.median(safe):.2f}, range {min(safe):.2f} to {max(safe):.2f}")
    print(f"unbiased: median {np.median(unbiased):.2f}, range {min(unbiased):.2f} to {max(unbiased):.2f}")
    assert min(safe) >= 0.5
    assert max(safe) <= 1.15
    assert 0.85 <= np.median(unbiased) <= 1.1
