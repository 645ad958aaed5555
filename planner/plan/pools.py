"""From a solution to the pools of a plan: traffic, placement, memory, prediction, share of the cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.candidates.hours import PEAK
from planner.candidates.types import Candidate, CandidateTable, ResolvedModel, Service, Shape, shape_name
from planner.physics.constants import SpeedConstants
from planner.physics.memory import HbmBudget, hbm_budget
from planner.physics.types import Layout
from planner.plan.assess import PoolLoad, PoolState, assess_models
from planner.plan.levers import LEVERS, limited_by
from planner.plan.schema import Engine, HbmBytes, Placement, PlanBand, Pool, Predicted, RowLoad, Serving
from planner.program.data import FleetProblem
from planner.program.index import CAPACITY_ROWS, row_needs
from planner.solve.outcome import Solution
from planner.solve.packing import Packing


@dataclass(frozen=True)
class PoolDraft:
    """A candidate in use, with its traffic and what it does under it."""

    candidate: Candidate
    load: PoolLoad
    state: PoolState


LoadedCandidate = tuple[Candidate, PoolLoad]


def pool_loads(table: CandidateTable, solution: Solution) -> list[LoadedCandidate]:
    """Return the pools of a solution that serve something, named after their model and numbered where there are several."""
    found: list[LoadedCandidate] = []
    used_of: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in table.candidates:
        if solution.replicas.get(candidate.name, 0) > 0:
            used_of[candidate.shape.model].append(candidate)
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for (workload, name), rate in solution.rates.items():
        rates[name][workload] = rate
    for model, used in used_of.items():
        for number, candidate in enumerate(used, 1):
            load = PoolLoad(
                name=model if len(used) == 1 else f"{model}-{number}",
                shape=candidate.shape,
                max_num_seqs=candidate.max_num_seqs,
                replicas=solution.replicas[candidate.name],
                rates=rates[candidate.name],
            )
            found += [(candidate, load)] if load.rates else []
    return sorted(found, key=lambda pool: pool[1].name)


def draft_pools(table: CandidateTable, pools: Sequence[LoadedCandidate], constants: SpeedConstants) -> list[PoolDraft]:
    """Return the pools with what they do under their load, sorted by name."""
    grouped = pools_by_model(pools)
    states = assess_models(table, {name: [load for _, load in own] for name, own in grouped.items()}, constants)
    drafts = [
        PoolDraft(c, load, state)
        for name, own in grouped.items()
        for (c, load), state in zip(own, states[name], strict=True)
    ]
    return sorted(drafts, key=lambda d: d.load.name)


def pools_by_model(pools: Sequence[LoadedCandidate]) -> dict[str, list[LoadedCandidate]]:
    """Group pools by their model."""
    found: dict[str, list[LoadedCandidate]] = defaultdict(list)
    for candidate, load in pools:
        found[candidate.shape.model].append((candidate, load))
    return dict(found)


def pool_costs(problem: FleetProblem, packing: Packing) -> dict[str, float]:
    """Share the price of every node among the pools on it, by the GPUs they take; USD/h by candidate."""
    prices = {o.name: o.usd_per_node_h for o in problem.offers}
    costs: dict[str, float] = {}
    for node in packing.nodes:
        taken = sum(node.occupants.values())
        for candidate, gpus in node.occupants.items():
            costs[candidate] = costs.get(candidate, 0.0) + prices[node.offer] * gpus / taken
    return costs


def plan_pools(
    table: CandidateTable,
    problem: FleetProblem,
    packing: Packing,
    drafts: list[PoolDraft],
    spares: Mapping[str, int],
) -> tuple[Pool, ...]:
    """Return the pools as the plan shows them; `spares` are the replicas that each may lose, by candidate."""
    costs = pool_costs(problem, packing)
    return tuple(
        _pool(table, problem, packing, draft, spares[draft.candidate.name], costs[draft.candidate.name])
        for draft in drafts
    )


def _pool(
    table: CandidateTable,
    problem: FleetProblem,
    packing: Packing,
    draft: PoolDraft,
    spares: int,
    usd_per_hour: float,
) -> Pool:
    candidate, load, state = draft.candidate, draft.load, draft.state
    shape, model = candidate.shape, table.models[candidate.shape.model]
    budget = budget_at_cap(model, shape, candidate.max_num_seqs)
    used = _row_loads(problem, draft)
    requests = sum(load.rates.values())
    tokens = sum(r * table.workloads[w].mean_output_tokens for w, r in load.rates.items())
    decodes = any(float(table.workloads[w].output_tokens.max()) > 1.0 for w in load.rates)
    scarce = limited_by(state, table.workloads, used[0])
    return Pool(
        name=load.name,
        model=model.name,
        engine=Engine(name=model.engine.name, version=model.engine.version),
        gpu=shape.gpu,
        tensor_parallel=shape.layout.tensor,
        pipeline_parallel=shape.layout.pipeline,
        expert_parallel=shape.layout.expert,
        attention_data_parallel=shape.layout.attention_data,
        weights=shape.weights,
        kv_cache=shape.kv_cache,
        checkpoint=model.spec.checkpoints.get(shape.weights),
        max_model_len=model.max_model_len,
        max_num_seqs=candidate.max_num_seqs,
        max_num_batched_tokens=model.spec.engine.max_num_batched_tokens,
        serving=serving_of(model, shape),
        replicas=load.replicas,
        spare_replicas=spares,
        gpus=load.replicas * shape.gpus,
        spot=candidate.domain.spot,
        gpus_per_node=candidate.domain.node_gpus or None,
        replicas_by_period={PEAK: load.replicas},
        placement=_placement(table, packing, candidate),
        workloads=dict(sorted(load.rates.items())),
        hbm_bytes_per_gpu=hbm_bytes(budget),
        kv_tokens=budget.kv_tokens,
        max_concurrency=budget.max_concurrency,
        mean_batch=state.mean_batch if decodes else 0.0,
        predicted=Predicted(
            ttft_p50_s=state.shown_s["ttft", 0.50],
            ttft_p95_s=state.shown_s["ttft", 0.95],
            tpot_p50_s=state.shown_s["tpot", 0.50] if decodes else 0.0,
            tpot_p95_s=state.shown_s["tpot", 0.95] if decodes else 0.0,
            output_tokens_per_s=tokens,
            requests_per_s=requests,
        ),
        band=PlanBand.model_validate(
            {
                "provenance": shape.provenance.letter,
                "measured": shape.provenance.measured,
                "factor": shape.throughput_factor,
                "ttft_factor": shape.ttft_factor,
                "factor_if_measured": shape.measured_factor,
                "measuring_saves_usd_per_hour": usd_per_hour
                * max(1.0 - shape.measured_factor / shape.throughput_factor, 0.0),
            }
        ),
        utilization=max(used),
        rows=_rows(problem, draft),
        usd_per_hour=usd_per_hour,
        limited_by=scarce,
        lever=LEVERS[scarce],
    )


def serving_of(model: ResolvedModel, shape: Shape) -> Serving:
    """Return how the engine of a pool is started, beyond its layout, formats and caps."""
    engine = model.spec.engine
    return Serving(
        repository=model.architecture.name if model.spec.config is None else None,
        native_weights=model.architecture.native_format,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        chunked_prefill=engine.chunked_prefill,
        prefix_caching=engine.prefix_caching,
        block_size=engine.block_size,
        gpus_in_node=shape.layout.node_gpus or shape.layout.gpus,
    )


def budget_at_cap(model: ResolvedModel, shape: Shape, max_num_seqs: int) -> HbmBudget:
    """Return the memory budget of a shape as its engine would divide it with the batch cap of the plan."""
    engine = model.spec.engine
    return hbm_budget(
        model.architecture,
        shape.device,
        shape.layout,
        shape.weights,
        shape.kv_cache,
        model.memory,
        max_num_seqs,
        engine.max_num_batched_tokens,
        model.max_model_len,
        engine.gpu_memory_utilization,
        engine.chunked_prefill,
    )


def hbm_bytes(budget: HbmBudget) -> HbmBytes:
    """Return the parts of a memory budget as the plan shows them."""
    return HbmBytes(
        usable=budget.usable_bytes,
        weights=budget.weights_bytes,
        kv_pool=budget.kv_pool_bytes,
        activations=budget.activation_bytes,
        runtime=budget.runtime_bytes,
        graphs=budget.graph_bytes,
        free=budget.free_bytes,
    )


def _row_loads(problem: FleetProblem, draft: PoolDraft) -> tuple[float, ...]:
    """Return the load of each capacity row of a pool, as a share of what its replicas offer."""
    column = problem.column(draft.candidate.name)
    services: Mapping[str, Service] = column.services
    rows = [row_needs(column, services[w]) for w in sorted(draft.load.rates)]
    rates = [draft.load.rates[w] for w in sorted(draft.load.rates)]
    return tuple(
        sum(r * needs[k] for r, needs in zip(rates, rows, strict=True)) / draft.load.replicas
        for k in range(len(rows[0]))
    )


def _rows(problem: FleetProblem, draft: PoolDraft) -> tuple[RowLoad, ...]:
    """Return the load of each capacity row in its own unit, over all replicas and GPUs of a pool."""
    column = problem.column(draft.candidate.name)
    layout = draft.candidate.shape.layout
    # A KV pool is that of all groups, and a rate that of all stages, which a step passes one after the other.
    pools, rates = column.gpus / layout.attention_data, column.gpus / layout.pipeline
    per_replica = (
        ("GB", column.kv_pool_bytes * pools / 1e9),
        ("slots", column.batch_slots),
        ("GB/s", column.bandwidth_bytes_per_s * rates / 1e9),
        ("TFLOP/s", column.flops_per_s * rates / 1e12),
        ("replicas", 1.0),
    )
    found = zip(CAPACITY_ROWS, per_replica, _row_loads(problem, draft), strict=True)
    replicas = draft.load.replicas
    return tuple(
        RowLoad(row=row, unit=unit, used=load * each * replicas, available=each * replicas)
        for row, (unit, each), load in found
    )


def _placement(table: CandidateTable, packing: Packing, candidate: Candidate) -> tuple[Placement, ...]:
    offers = {o.name: o for o in table.supply.offers}
    places: Counter[tuple[str, str]] = Counter()
    for (name, offer), count in packing.replicas_on.items():
        if name == candidate.name:
            places[offers[offer].provider, offers[offer].region] += count
    return tuple(Placement(provider=p, region=r, replicas=n) for (p, r), n in sorted(places.items()))


def pool_shape(pool: Pool) -> str:
    """Return the name of the shape of a pool."""
    layout = Layout(pool.tensor_parallel, pool.pipeline_parallel, pool.expert_parallel, pool.attention_data_parallel)
    return shape_name(pool.gpu, layout, pool.weights, pool.kv_cache)
