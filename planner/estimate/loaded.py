"""A deployment under load: the pool assessment of a plan, for a pool of one replica whose requests all look alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.knowledge import Knowledge
from planner.candidates.types import Array, ResolvedModel, ResolvedWorkload, Shape
from planner.estimate.answer import Load, LoadKind, Speed, Sureness, Times
from planner.estimate.deployment import Deployment
from planner.estimate.memory import Fit
from planner.estimate.speed import named_parts, scarce_room, step_coefficients
from planner.estimate.words import counted
from planner.physics.bands import Provenance, factor
from planner.physics.latency import Pairs, largest_batch, throughput
from planner.physics.latency.flow import batch_limit, effective_slots
from planner.physics.latency.steps import lengthwise
from planner.physics.loads import closed_loop
from planner.physics.speed import step_bytes, step_flops, step_parts
from planner.plan.assess import LATENCY_RTOL, LoadedPools, PoolLoad, PoolState, load_pools, mean_step, states
from planner.plan.levers import limited_by, slowest_part, tightest
from planner.spec import EngineSpec, ModelSpec, ReliabilitySpec, TrafficSpec, WorkloadSpec

if TYPE_CHECKING:
    from planner.plan.schema import Resource

NAME = "requests"
POINTS = 32
UNBOUND = 1e7
LEAST_RATE = 1e-9


def loaded_speed(fit: Fit, load: Load, knowledge: Knowledge) -> Speed:
    """Return what a deployment does with so many requests in flight, at a rate, or at the largest rate.

    Four pools are rated side by side: with the factors that the confidence asks for, and those of the band.
    """
    model, workload = resolved_model(fit.deployment), resolved_workload(fit.deployment, load.limits_s)
    shapes = _shapes(fit, knowledge)
    base = load_pools(model, {NAME: workload}, _pools(shapes, fit, [LEAST_RATE] * len(shapes)), knowledge.constants)
    most = largest_batch(base.pairs, _limits(load.limits_s, len(shapes)))
    unlimited = largest_batch(base.pairs, {})
    held = float(base.pairs.kv_slots[0])
    if load.kind is LoadKind.CONCURRENCY:
        at, waiting, longest = _in_flight(fit, load.value, base, shapes, knowledge)
        rates = throughput(at.pairs, at.batch).requests_per_s
    else:
        rates = most.requests_per_s if load.kind is LoadKind.MAX else np.full(len(shapes), load.value)
        pools = _pools(shapes, fit, np.maximum(rates, LEAST_RATE).tolist())
        at, waiting = load_pools(model, {NAME: workload}, pools, knowledge.constants), np.zeros(len(shapes))
        longest = np.full(len(shapes), np.inf)
    pools = _pools(shapes, fit, np.maximum(rates, LEAST_RATE).tolist())
    found = states({NAME: workload}, pools, at)
    borne = (at.overload <= 1.0 + LATENCY_RTOL) & (rates > 0.0)
    outputs = rates * workload.mean_output_tokens
    times = [
        _times(state, wait, most_s, tokens) if fine else None
        for state, wait, most_s, tokens, fine in zip(
            found, waiting.tolist(), longest.tolist(), outputs.tolist(), borne.tolist(), strict=True
        )
    ]
    return _speed(fit, load, knowledge, at, found[0], times, workload, held, float(rates[0]), float(unlimited.requests_per_s[0]), float(waiting[0]))  # fmt: skip


def resolved_model(deployment: Deployment) -> ResolvedModel:
    """Return the model of a deployment as the planner's own stages take it."""
    d = deployment
    engine = EngineSpec.model_construct(
        name=d.engine.name,
        version=d.engine.version,
        gpu_memory_utilization=d.utilization,
        max_num_batched_tokens=d.max_num_batched_tokens,
        max_num_seqs=d.max_num_seqs,
        chunked_prefill=d.chunks,
    )
    return ResolvedModel(
        name=d.model,
        spec=ModelSpec.model_construct(use=d.model, engine=engine),
        architecture=d.architecture,
        engine=d.engine,
        memory=d.engine.memory,
        weights=(d.weights,),
        kv_cache=(d.kv,),
        quality={},
        max_model_len=d.max_model_len,
        reliability=ReliabilitySpec(),
    )


def resolved_workload(deployment: Deployment, limits_s: Mapping[str, float]) -> ResolvedWorkload:
    """Return requests of one length that arrive independently of each other, with limits on their latency."""
    prompts = np.full(POINTS, float(deployment.input_tokens))
    lengths = {"input_tokens": deployment.input_tokens, "output_tokens": deployment.output_tokens}
    traffic = TrafficSpec.model_validate({"rate": "1 req/s", **lengths})
    return ResolvedWorkload(
        name=NAME,
        spec=WorkloadSpec.model_construct(model=deployment.model, traffic=traffic, slo=dict(limits_s)),
        model=deployment.model,
        peak_requests_per_s=1.0,
        mean_requests_per_s=None,
        headroom=0.0,
        input_tokens=prompts,
        output_tokens=np.full(POINTS, float(deployment.output_tokens)),
        prefill_tokens=prompts,
        prefill_weights=np.full(POINTS, 1.0 / POINTS),
        shared_tokens=0.0,
        shared_hit_rate=0.0,
        truncated_share=0.0,
    )


def shape_of(fit: Fit, provenance: Provenance, throughput_factor: float, ttft_factor: float) -> Shape:
    """Return the deployment as a shape of the planner, with factors on its times."""
    d = fit.deployment
    node = d.layout.node_gpus
    return Shape(
        model=d.model,
        gpu=d.device.name,
        layout=d.layout,
        weights=d.weights,
        kv_cache=d.kv,
        node_gpus=node,
        nodes_spanned=-(-d.layout.gpus // node),
        device=d.device,
        budget=fit.budget,
        max_num_seqs=d.max_num_seqs,
        quality=1.0,
        provenance=provenance,
        throughput_factor=throughput_factor,
        ttft_factor=ttft_factor,
        measured_factor=throughput_factor,
    )


def _shapes(fit: Fit, knowledge: Knowledge) -> list[Shape]:
    """Return the shape at the chosen confidence, and at the low end, the middle and the high end of the 80 % band."""
    d = fit.deployment
    provenance = knowledge.provenance(d.architecture, d.device, d.engine.speed_class(d.device.vendor), d.weights)
    confidences = (knowledge.confidence, 0.1, 0.5, 0.9)
    factors = [
        tuple(factor(knowledge.bands, provenance.line, metric, share) for metric in ("throughput", "ttft"))
        for share in confidences
    ]
    return [shape_of(fit, provenance, steps, first) for steps, first in factors]


def _pools(shapes: Sequence[Shape], fit: Fit, rates: Sequence[float]) -> list[PoolLoad]:
    cap = fit.deployment.max_num_seqs
    return [PoolLoad(NAME, shape, cap, 1, {NAME: rate}) for shape, rate in zip(shapes, rates, strict=True)]


def _limits(limits_s: Mapping[str, float], size: int) -> dict[str, Array]:
    return {key: np.full(size, limit) for key, limit in limits_s.items()}


def _in_flight(
    fit: Fit, concurrency: float, base: LoadedPools, shapes: Sequence[Shape], knowledge: Knowledge
) -> tuple[LoadedPools, Array, Array]:
    """Return the pools with `concurrency` requests in flight, how long each waits for room, and its longest first token.

    As many decode as a closed loop of equal requests has in decode. Those beyond what memory and settings admit wait:
    by Little's law, their number over the rate. Inside the engine no more prompts can be ahead than are in flight.
    """
    d, pairs = fit.deployment, base.pairs
    tokens = float(batch_limit(pairs, lengthwise(pairs))[0])
    cap = max(min(float(effective_slots(pairs)[0]), tokens), 1.0)
    c = step_coefficients(fit, knowledge)
    budget = float(d.max_num_batched_tokens if d.chunks else max(d.max_num_batched_tokens, d.input_tokens))
    loop = closed_loop(
        c, concurrency, float(d.input_tokens), float(d.output_tokens), cap, budget, 0.0, equal_lengths=False
    )
    batch = np.full(pairs.size, max(min(float(loop.batch), cap), min(concurrency, 1.0) * 1e-3))
    unbound = np.full(pairs.size, UNBOUND)
    open_pairs: Pairs = replace(pairs, slots=unbound, kv_slots=unbound)
    rates = throughput(open_pairs, batch).requests_per_s
    waiting = np.maximum(concurrency - cap, 0.0) / rates
    chunks = ceil(d.input_tokens / max(budget - batch[0], 1.0))
    queue = (min(concurrency, cap) * (float(loop.prompt_s) + chunks * float(loop.step_s))) + float(loop.step_s)
    first = np.array([shape.ttft_factor for shape in shapes])
    path = first / np.array([shape.throughput_factor for shape in shapes]) * float(c.request_s)
    return LoadedPools(open_pairs, base.mixes, batch, np.zeros(pairs.size)), waiting, first * queue + path


def _times(state: PoolState, waiting_s: float, longest_s: float, tokens_per_s: float) -> Times:
    shown = state.shown_s
    return Times(
        min(shown["ttft", 0.50], longest_s) + waiting_s,
        min(shown["ttft", 0.95], longest_s) + waiting_s,
        shown["tpot", 0.50],
        shown["tpot", 0.95],
        tokens_per_s,
    )


def _speed(
    fit: Fit,
    load: Load,
    knowledge: Knowledge,
    at: LoadedPools,
    state: PoolState,
    times: Sequence[Times | None],
    workload: ResolvedWorkload,
    held: float,
    rate: float,
    most: float,
    waiting_s: float,
) -> Speed:
    d, shape = fit.deployment, _shapes(fit, knowledge)[0]
    bands = knowledge.bands.by_line[shape.provenance.line]
    step_load = [float(values[0]) for values in mean_step(at.pairs, at.mixes, at.batch)]
    c = step_coefficients(fit, knowledge)
    named = named_parts(step_parts(c, *step_load), shape.throughput_factor)
    scarce, because = _scarce(load, state, times[0], workload, held, fit)
    sure = Sureness(
        provenance=shape.provenance,
        own=knowledge.own_rows(d.architecture, d.device, d.engine.speed_class(d.device.vendor), d.weights),
        confidence=knowledge.confidence,
        factor=shape.throughput_factor,
        ttft_factor=shape.ttft_factor,
        p80=bands["throughput"].p80,
        ttft_p80=bands["ttft"].p80,
        low=times[1],
        best=times[2],
        high=times[3],
    )
    return Speed(
        load=load,
        input_tokens=d.input_tokens,
        output_tokens=d.output_tokens,
        batch=state.mean_batch,
        held=held,
        step_parts_s=named,
        step_s=sum(named.values()),
        resource_s={name: max(shape.throughput_factor * seconds, 0.0) for name, seconds in state.resource_s.items()},
        step_bytes=float(step_bytes(c, *step_load[:3])),
        step_flops=float(step_flops(c, *step_load)),
        requests_per_s=rate if times[0] is not None else None,
        most_requests_per_s=most,
        waiting_s=waiting_s,
        times=times[0],
        sureness=sure,
        regime=slowest_part(state),
        limited_by=scarce,
        because=because,
        engine_class=d.engine.speed_class(d.device.vendor),
        notes=_notes(load, times[0], held, most, waiting_s, because),
    )


def _scarce(
    load: Load, state: PoolState, times: Times | None, workload: ResolvedWorkload, held: float, fit: Fit
) -> tuple[Resource, str]:
    """Name the scarce resource as a plan with the same limits does, and say of what it is scarce.

    Where sequences of a closed loop wait for room, it is memory or the cap on sequences.
    """
    room = scarce_room(fit, load, held) if load.kind is LoadKind.CONCURRENCY else None
    if room is not None:
        return room
    if times is None and held < 1.0:
        return "capacity", "the KV cache holds no request of these lengths under load"
    scarce = limited_by(state, {NAME: workload}, state.mean_batch / max(held, LEAST_RATE))
    if scarce == "capacity":
        return scarce, "the KV cache is the fullest"
    _, key, _ = tightest(state, {NAME: workload})
    if key:
        return scarce, f"most of {limit_name(key)}, the tightest limit"
    return scarce, "most of the mean step; no limits on latency are given"


def limit_name(key: str) -> str:
    """Return a limit in words: `TTFT p95`."""
    metric, _, percent = key.partition("_p")
    return f"{metric.upper()} p{percent}"


def _notes(
    load: Load, times: Times | None, held: float, most: float, waiting_s: float, because: str
) -> tuple[str, ...]:
    found: list[str] = ["all requests have these lengths; lengths that vary raise the 95th percentiles"]
    if load.kind is LoadKind.CONCURRENCY and waiting_s > 0.0:
        flying = f"{counted(load.value, 'request')} in flight"
        found.append(f"{flying}: {because}; the engine queues the rest silently, {waiting_s:.3g} s each")
    if load.kind is LoadKind.RATE and times is None:
        found.append(
            f"{load.value:g} req/s is more than the {most:.3g} req/s that one replica bears: queues grow without end"
        )
    if load.kind in (LoadKind.RATE, LoadKind.MAX):
        found.append("one replica has nobody to lean on: pools of several carry more each at the same latency")
    if times is None and held < 1.0:
        found.append(
            "beside the blocks that the engine keeps free, the cache holds no request of these lengths under load"
        )
    return tuple(found)
