"""From the pools of a plan to questions that two models can answer alike, with our own answers."""

from __future__ import annotations

from collections.abc import Mapping

from planner.candidates.knowledge import Knowledge
from planner.candidates.types import ResolvedModel, ResolvedWorkload
from planner.catalog import Catalog
from planner.estimate.deployment import over_nodes
from planner.physics.loads import closed_loop, lone_prompt_s
from planner.physics.speed import coefficients
from planner.physics.types import Layout
from planner.plan.schema import Pool
from planner.second_opinion.types import Figures, Question

LEAST_OUTPUT_TOKENS = 2
"""Below, there is no time per output token."""


def question_of(pool: Pool, model: ResolvedModel, workloads: Mapping[str, ResolvedWorkload]) -> Question | None:
    """Ask about a replica of a pool at its mean batch and the mean lengths of its traffic.

    None for a pool that generates no more than one token per request.
    """
    traffic = pool.traffic or pool.workloads
    total = sum(traffic.values())
    share = {name: rate / total for name, rate in sorted(traffic.items())}
    prompt = sum(s * workloads[w].mean_input_tokens for w, s in share.items())
    output = round(sum(s * workloads[w].mean_output_tokens for w, s in share.items()))
    computed = sum(s * float(workloads[w].prefill_tokens @ workloads[w].prefill_weights) for w, s in share.items())
    if output < LEAST_OUTPUT_TOKENS:
        return None
    groups = pool.pipeline_parallel * pool.attention_data_parallel
    return Question(
        pool=pool.name,
        architecture=model.architecture,
        gpu=pool.gpu,
        engine=pool.engine.name,
        weights=pool.weights,
        kv_cache=pool.kv_cache,
        tensor=pool.tensor_parallel,
        pipeline=pool.pipeline_parallel,
        expert=pool.expert_parallel,
        attention_data=pool.attention_data_parallel,
        in_flight=groups * max(1, round(pool.mean_batch / groups)),
        input_tokens=max(1, round(prompt)),
        cached_tokens=max(0, round(prompt) - max(1, round(computed))),
        output_tokens=output,
        chunk_tokens=pool.max_num_batched_tokens,
    )


def our_figures(
    question: Question,
    model: ResolvedModel,
    catalog: Catalog,
    knowledge: Knowledge,
    factor: float = 1.0,
    ttft_factor: float = 1.0,
) -> Figures:
    """Return our answer from mean lengths, as theirs is: in the middle of the band, or with factors on step and TTFT.

    Raises `ValueError` as the speed model does.
    """
    q = question
    device = catalog.gpu(q.gpu).device()
    layout = over_nodes(Layout(q.tensor, q.pipeline, q.expert, q.attention_data), device)
    engine = model.engine.speed_class(device.vendor)
    c = coefficients(q.architecture, device, layout, q.weights, q.kv_cache, engine, knowledge.constants)
    computed, in_flight = float(q.input_tokens - q.cached_tokens), float(q.in_flight)
    loop = closed_loop(
        c,
        in_flight,
        computed,
        float(q.output_tokens),
        in_flight,
        float(q.chunk_tokens),
        0.0,
        cached_tokens=float(q.cached_tokens),
    )
    alone = float(lone_prompt_s(c, computed)) + float(c.request_s) / factor
    return Figures(factor * float(loop.tpot_s), float(loop.requests_per_s) / factor, ttft_factor * alone)
