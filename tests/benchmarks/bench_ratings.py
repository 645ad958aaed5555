"""Time the rating of candidates inside one process, on one core, and print ratings per second.

usage: bench_ratings.py [--runs 5] [--copies 50]

A rating is one shape of a model with one workload on one pool class. `rate at a batch` is the step time and the request rate
that follows, `largest batch` the search for the batch at which every latency limit still holds. The pairs are those of
specs/prod.yaml, repeated `copies` times to fill the arrays.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.pairs import ShapeArrays, kv_load, limits_of, make_pairs, pair_indices
from planner.candidates.shapes import enumerate_shapes
from planner.candidates.traffic import resolve_workloads
from planner.catalog import Catalog
from planner.physics.latency import largest_batch, throughput
from planner.spec import load_spec

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs" / "prod.yaml"
GPUS = ("A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "MI300X", "L40S")
NODE_GPUS = 8
BATCH = 16.0


def best_s(work: Callable[[], object], runs: int) -> float:
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=50)
    asked = parser.parse_args()
    catalog = Catalog.open(ROOT / "catalog")
    spec = load_spec(SPEC.read_text(encoding="utf-8"), str(SPEC)).spec
    assert spec is not None
    knowledge = Knowledge.of(catalog, spec.planning.confidence)
    models = resolve_models(spec, catalog)
    print(f"{'model':<12}{'ratings':>9}  {'rate at a batch':>18}  {'largest batch':>18}")
    for name, model in models.items():
        workloads = [w for w in resolve_workloads(spec, models).values() if w.model == name]
        devices = (catalog.gpu(gpu).device() for gpu in GPUS)
        shapes = [s for d in devices for s in enumerate_shapes(model, d, (NODE_GPUS,), knowledge)[0]]
        arrays = ShapeArrays.of(model, shapes * asked.copies, knowledge.constants)
        shape_of, workload_of = pair_indices(len(arrays.shapes), len(workloads))
        load = kv_load(arrays, workloads, shape_of, workload_of)
        pairs = make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.full(shape_of.size, 4.0))
        batch = np.full(pairs.size, BATCH)
        limits = limits_of(workloads, workload_of)
        rated = best_s(lambda p=pairs, b=batch: throughput(p, b), asked.runs)  # type: ignore[misc]
        searched = best_s(lambda p=pairs, of=limits: largest_batch(p, of), asked.runs)  # type: ignore[misc]
        print(f"{name:<12}{pairs.size:>9,}  {pairs.size / rated:>16,.0f}/s  {pairs.size / searched:>16,.0f}/s")


if __name__ == "__main__":
    main()
