"""Pruning loses nothing: the cheapest fleet is as cheap without the candidates and formats that are dropped."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from planned import SMALL, ended, problem_of

from planner.candidates.dominance import kept_candidates
from planner.candidates.types import Candidate, CandidateTable, Service
from planner.catalog import Catalog
from planner.physics.types import Layout
from planner.program.data import FleetProblem
from planner.program.index import CAPACITY_ROWS, row_needs
from planner.program.problem import fleet_problem
from planner.solve.fleet import SolveLimits
from planner.solve.outcome import Solved, Unproven
from planner.spec import FleetSpec

EXACT = SolveLimits(gap=0.0)
COST_RTOL = 1e-6
TWO = SMALL.replace(
    "supply:",
    "  batch:\n    model: chat\n    traffic: {rate: 10 req/s, input_tokens: 500, output_tokens: 100}\nsupply:",
).replace("planning:", "reliability: {spare_replicas: 1}\nplanning:")
"""A second workload, and a spare."""


@pytest.fixture(scope="module")
def base(catalog: Catalog) -> tuple[FleetSpec, CandidateTable]:
    spec, table, _ = problem_of(TWO, catalog)
    return spec, table


def with_rows(candidate: Candidate, name: str, gpus: int, least: int, services: dict[str, Service]) -> Candidate:
    """Return a candidate of a shape of its own, with round capacities: needs are those of the services."""
    shape = replace(candidate.shape, layout=Layout(tensor=gpus), node_gpus=gpus, nodes_spanned=1)
    return replace(
        candidate, name=f"chat|{name}", shape=shape, max_num_seqs=64, min_replicas=least, kv_pool_bytes=1.0,
        bandwidth_bytes_per_s=1.0, flops_per_s=1.0, services=services,
    )  # fmt: skip


def random_candidates(seed: int, table: CandidateTable) -> tuple[Candidate, ...]:
    """Draw candidates whose requests are limited by replica time or by HBM, as rated ones are."""
    rng = np.random.default_rng(seed)
    base = table.candidates[0]
    found = []
    for k in range(10):
        gpus, least = int(rng.choice([1, 1, 2, 4])), int(rng.choice([1, 1, 2, 4]))
        served = ["assistant", "batch"] if rng.random() < 0.7 else [str(rng.choice(["assistant", "batch"]))]
        speed = gpus * rng.uniform(0.8, 1.4) * (1.0 + 0.05 * least)
        services = {}
        for workload in served:
            busy = float(rng.choice([0.08, 0.12, 0.2]) / speed * rng.uniform(0.9, 1.1))
            kv_bytes = float(rng.choice([0.05, 0.15]) / speed * rng.uniform(0.9, 1.1))
            services[workload] = Service(busy, 1.0, kv_bytes, 0.5 * busy, 0.5 * busy)
        found.append(with_rows(base, f"c{k}", gpus, least, services))
    return tuple(found)


def problem_with(
    base: tuple[FleetSpec, CandidateTable], candidates: tuple[Candidate, ...], nodes: int | None
) -> FleetProblem:
    spec, table = base
    problem = fleet_problem(spec, replace(table, candidates=candidates), {})
    return replace(problem, gpu_limits={} if nodes is None else {candidates[0].shape.gpu: nodes})


def cost(problem: FleetProblem) -> float | None:
    outcome, _ = ended(problem, EXACT)
    return outcome.solution.cost if isinstance(outcome, Solved | Unproven) else None


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("max_shapes", [1, 3])
def test_dropped_candidates_are_not_missed(seed: int, max_shapes: int, base: tuple[FleetSpec, CandidateTable]) -> None:
    candidates = random_candidates(seed, base[1])
    kept = kept_candidates(candidates)[0]
    problem = problem_with(base, candidates, nodes=None if seed % 3 else 8)
    problem = replace(problem, rules=tuple(replace(r, max_shapes=max_shapes) for r in problem.rules))
    names = {c.name for c in kept}
    fewer = replace(problem, columns=tuple(c for c in problem.columns if c.name in names))
    assert len(kept) < len(candidates)
    one, two = cost(problem), cost(fewer)
    assert (one is None) == (two is None)
    assert one is None or one == pytest.approx(two, rel=COST_RTOL)


def service(busy_s: float, batch_share: float = 1e-3, bandwidth_share: float = 0.0) -> Service:
    return Service(busy_s, 64.0 * batch_share, 1e-3, bandwidth_share, 0.0)


def assert_lossless(base: tuple[FleetSpec, CandidateTable], *candidates: Candidate) -> None:
    whole = problem_with(base, candidates, None)
    whole = replace(whole, demands=tuple(replace(d, requests_per_s=18.0) for d in whole.demands))
    names = {c.name for c in kept_candidates(candidates)[0]}
    kept = replace(whole, columns=tuple(c for c in whole.columns if c.name in names))
    assert cost(kept) == pytest.approx(cost(whole), rel=COST_RTOL)


def test_a_candidate_limited_by_different_rows_is_not_replaced(base: tuple[FleetSpec, CandidateTable]) -> None:
    """One is slow for one workload and short of slots for the other; together they fit it better than the even one."""
    first = base[1].candidates[0]
    even = {"assistant": service(0.1, 0.01), "batch": service(0.1, 0.01)}
    mixed = {"assistant": service(0.1, 0.01), "batch": service(0.01, 0.1)}
    assert_lossless(base, with_rows(first, "even", 1, 1, even), with_rows(first, "mixed", 1, 1, mixed))


def test_a_candidate_short_of_bandwidth_replaces_none(base: tuple[FleetSpec, CandidateTable]) -> None:
    first = base[1].candidates[0]
    short = {w: service(0.05, bandwidth_share=0.5) for w in ("assistant", "batch")}
    plain = {w: service(0.06) for w in ("assistant", "batch")}
    assert_lossless(base, with_rows(first, "short", 1, 1, short), with_rows(first, "plain", 1, 1, plain))


def test_of_equal_candidates_one_is_kept(base: tuple[FleetSpec, CandidateTable]) -> None:
    first = base[1].candidates[0]
    services = {"assistant": service(0.1)}
    twins = [with_rows(first, name, 1, 1, services) for name in ("b", "a", "c")]
    assert [c.name for c in kept_candidates(twins)[0]] == ["chat|a"]


@pytest.mark.parametrize(
    ("gpus", "busy_s", "kept"),
    [(2, 0.05, {"one"}), (2, 0.04, {"one", "other"}), (4, 0.026, {"one"}), (4, 0.02, {"one", "other"})],
)
def test_k_small_ones_replace_a_large_one(
    gpus: int, busy_s: float, kept: set[str], base: tuple[FleetSpec, CandidateTable]
) -> None:
    """One replica on one GPU takes 0.1 s per request."""
    first = base[1].candidates[0]
    one = with_rows(first, "one", 1, 1, {"assistant": service(0.1)})
    other = with_rows(first, "other", gpus, 1, {"assistant": service(busy_s)})
    assert {c.name.partition("|")[2] for c in kept_candidates([one, other])[0]} == kept


def test_what_serves_less_or_needs_more_replicas_replaces_nothing(base: tuple[FleetSpec, CandidateTable]) -> None:
    first = base[1].candidates[0]
    both = with_rows(first, "both", 1, 1, {"assistant": service(0.1), "batch": service(0.1)})
    fast = with_rows(first, "fast", 1, 1, {"assistant": service(0.01)})
    pooled = with_rows(first, "pooled", 1, 4, {"assistant": service(0.005), "batch": service(0.005)})
    assert len(kept_candidates([both, fast, pooled])[0]) == 3


def test_candidates_elsewhere_or_in_other_formats_are_left_alone(base: tuple[FleetSpec, CandidateTable]) -> None:
    first = base[1].candidates[0]
    best = with_rows(first, "best", 1, 1, {"assistant": service(0.01)})
    slow = with_rows(first, "slow", 1, 1, {"assistant": service(0.1)})
    others = [
        slow,
        replace(slow, name="chat|cell", cells=("elsewhere",)),
        replace(slow, name="chat|weights", shape=replace(slow.shape, weights="bf16x")),
        replace(slow, name="chat|kv", shape=replace(slow.shape, kv_cache="bf16x")),
        replace(slow, name="chat|gpu", shape=replace(slow.shape, gpu="another")),
    ]
    assert {c.name for c in kept_candidates([best, *others])[0]} == {c.name for c in [best, *others[1:]]}


FORMATS = SMALL.replace(
    "max_model_len: 8k}", "max_model_len: 8k, min_quality: 90 %, weights: [WEIGHTS], kv_cache: [KV]}"
)
WEIGHTS, KV = ("bf16", "fp8", "int8", "int4"), ("bf16", "fp8")


@pytest.mark.parametrize("gpus", ["L40S, A10G", "A10G"])
def test_dropped_formats_are_not_missed(gpus: str, catalog: Catalog) -> None:
    """The cheapest fleet over all pairs of formats costs what the cheapest of the pairs alone does."""

    def least(weights: tuple[str, ...], kv_cache: tuple[str, ...]) -> float:
        text = FORMATS.replace("WEIGHTS", ", ".join(weights)).replace("KV", ", ".join(kv_cache))
        found = cost(problem_of(text.replace("L40S, A10G", gpus), catalog)[2])
        assert found is not None
        return found

    alone = {pair: least((pair[0],), (pair[1],)) for pair in product(WEIGHTS, KV)}
    assert least(WEIGHTS, KV) == pytest.approx(min(alone.values()), rel=COST_RTOL)
    assert max(alone.values()) > min(alone.values())


@pytest.mark.parametrize("text", [SMALL, TWO], ids=["small", "two"])
def test_replica_time_covers_what_pruning_does_not_look_at(text: str, catalog: Catalog) -> None:
    """Candidates are compared by HBM and replica time: no other row may be tighter than replica time."""
    _, _, problem = problem_of(text, catalog)
    time = CAPACITY_ROWS.index("step_time")
    for column in problem.columns:
        for workload, own in column.services.items():
            needs = row_needs(column, own)
            assert max(needs[1:]) == needs[time], (column.name, workload, needs)


SPARSE = TWO.replace(
    "rate: 20 req/s, input_tokens: {mean: 800, p95: 2000}", "rate: 0.01 req/s, input_tokens: 50"
).replace(
    "rate: 10 req/s, input_tokens: 500, output_tokens: 100", "rate: 20 req/s, input_tokens: 1000, output_tokens: 1"
)
"""A rare workload of long answers beside one of prompts alone: pools with less than one running request."""


def test_a_nearly_idle_pool_streams_no_more_than_it_has_time_for(catalog: Catalog) -> None:
    _, _, problem = problem_of(SPARSE, catalog)
    shared = [c for c in problem.columns if len(c.services) == 2]
    assert shared
    for column in shared:
        for workload, own in column.services.items():
            needs = dict(zip(CAPACITY_ROWS, row_needs(column, own), strict=True))
            assert needs["bandwidth_ceiling"] <= needs["step_time"], (column.name, workload, needs)
