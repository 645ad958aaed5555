"""Divide the traffic of one model, by length, among GPU types: the problem that Mélange states (arXiv 2404.14527, section 5).

usage: bench_slices.py [--buckets 10 16] [--rates 64 100] [--gap 0]

Requests fall into N x N buckets of prompt and answer lengths, each with a rate of its own. Every GPU type serves a bucket at
most so fast, by the speed model of this project, and a GPU may be shared by any buckets. How many GPUs of each type cost least?
Here a bucket is a workload of one model, and it may be divided in any shares. Seconds are those of the solve alone, in this
process: stating the program, minimising, and checking. Each answer is proven within the gap and checked by a routing.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.pairs import ShapeArrays, kv_load, make_pairs, pair_indices
from planner.candidates.shapes import enumerate_shapes
from planner.candidates.traffic import resolve_workloads
from planner.candidates.types import Service
from planner.catalog import Catalog
from planner.physics.latency import ceiling
from planner.program.data import Column, Demand, FleetProblem, ModelRules, NodeOffer
from planner.solve.fleet import SolveLimits, solve
from planner.solve.outcome import Solved
from planner.solve.routing import route
from planner.spec import FleetSpec, load_spec

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
GPUS = ("A10G", "L4", "L40S", "A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "MI300X")
SHORTEST, LONGEST_PROMPT, LONGEST_ANSWER = 25.0, 12_000.0, 2_000.0
SPREAD = 1.0  # of the logarithm of rates over buckets
SEED = 1


def spec_of(buckets: int, rate: float) -> FleetSpec:
    """Return a spec with one workload for each of `buckets` x `buckets` lengths, `rate` requests/s in all."""
    prompts = np.geomspace(SHORTEST, LONGEST_PROMPT, buckets)
    answers = np.geomspace(SHORTEST, LONGEST_ANSWER, buckets)
    shares = np.random.Generator(np.random.PCG64(SEED)).lognormal(0.0, SPREAD, (buckets, buckets))
    lines = ["version: 1", "fleet: slices", "models:", f"  m: {{use: {MODEL}, max_model_len: 16384}}", "workloads:"]
    for i, prompt in enumerate(prompts):
        for j, answer in enumerate(answers):
            lines += [
                f"  w{i:02d}-{j:02d}:",
                "    model: m",
                "    traffic:",
                f"      rate: {rate * shares[i, j] / shares.sum():.6f} req/s",
                f"      input_tokens: {prompt:.0f}",
                f"      output_tokens: {answer:.0f}",
            ]
    lines += ["supply: {offers: [{provider: aws, region: us-east-1, gpus: [L4]}]}"]
    spec = load_spec("\n".join(lines), "slices.yaml").spec
    assert spec is not None
    return spec


def problem_of(buckets: int, rate: float, catalog: Catalog) -> FleetProblem:
    """Rate every bucket on every GPU type, and state what to buy."""
    spec = spec_of(buckets, rate)
    knowledge = Knowledge.of(catalog, spec.planning.confidence)
    models = resolve_models(spec, catalog)
    workloads = list(resolve_workloads(spec, models).values())
    model = models["m"]
    shapes = [
        next(s for s in enumerate_shapes(model, catalog.gpu(gpu).device(), (1,), knowledge)[0] if s.gpus == 1)
        for gpu in GPUS
    ]
    arrays = ShapeArrays.of(model, shapes, knowledge.constants)
    shape_of, workload_of = pair_indices(len(shapes), len(workloads))
    load = kv_load(arrays, workloads, shape_of, workload_of)
    most = ceiling(make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.ones(shape_of.size)))
    rates = most.requests_per_s.reshape(len(shapes), len(workloads))
    return FleetProblem(
        columns=tuple(
            _column(gpu, {w.name: float(r) for w, r in zip(workloads, row, strict=True) if r > 0.0})
            for gpu, row in sorted(zip(GPUS, rates, strict=True), key=lambda pair: pair[0])
        ),
        demands=tuple(Demand(w.name, "m", w.peak_requests_per_s, 0.0) for w in workloads),
        rules=(ModelRules("m", len(GPUS), uniform_format=False, spare_replicas=0, min_replicas=1),),
        offers=tuple(NodeOffer(gpu, gpu, gpu, gpu, 1, price_of(gpu, catalog)) for gpu in sorted(GPUS)),
    )


def _column(gpu: str, rates: dict[str, float]) -> Column:
    services = {w: Service(1.0 / rate, 0.0, 0.0, 0.0, 0.0) for w, rate in rates.items()}
    return Column(gpu, "m", gpu, gpu, "bf16", "bf16", 1, 1, 1, (gpu,), 1.0, 1.0, 1.0, 1.0, services)


def price_of(gpu: str, catalog: Catalog) -> float:
    """Return the least on-demand price of one GPU in the catalog, USD/h."""
    return min(
        offer.prices_usd_per_node_h["on-demand"] / offer.gpus_per_node
        for provider in catalog.providers()
        for offer in catalog.offers(provider)
        if offer.gpu == gpu and "on-demand" in offer.terms
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", nargs="*", type=int, default=[10, 16])
    parser.add_argument("--rates", nargs="*", type=float, default=[64.0, 100.0])
    parser.add_argument("--gap", type=float, default=0.0)
    asked = parser.parse_args()
    catalog = Catalog.open()
    print(f"{'buckets':>9}  {'GPU types':>9}  {'req/s':>6}  {'solve s':>8}  {'USD/h':>9}  {'gap':>9}  GPUs")
    for buckets, rate in zip(asked.buckets, asked.rates, strict=True):
        problem = problem_of(buckets, rate, catalog)
        started = time.perf_counter()
        answered = solve(problem, SolveLimits(gap=asked.gap))
        seconds = time.perf_counter() - started
        if not isinstance(answered.outcome, Solved):
            raise SystemExit(f"{buckets} x {buckets}: {answered.outcome}")
        solution = answered.outcome.solution
        demand = {d.workload: d.planned_requests_per_s for d in problem.demands}
        if not route(problem, "m", solution.replicas, demand).carries:
            raise SystemExit(f"{buckets} x {buckets}: the fleet does not carry its traffic")
        fleet = ", ".join(f"{count} x {gpu}" for gpu, count in solution.nodes.items())
        size = f"{buckets} x {buckets}"
        cells = f"{size:>9}  {len(GPUS):>9}  {rate:6.0f}  {seconds:8.2f}  {solution.cost:9.2f}  {solution.gap:8.4%}  {fleet}"
        print(cells, flush=True)


if __name__ == "__main__":
    main()
