"""Speed of one deployment, by the latency model of the planner. Imports numpy; loads beyond one step import scipy too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.candidates.knowledge import Knowledge
from planner.catalog import Catalog
from planner.estimate.answer import Load, LoadKind, Speed, Sureness, Times
from planner.estimate.memory import Fit
from planner.estimate.words import counted
from planner.physics.loads import mean_context
from planner.physics.speed import (
    StepCoefficients,
    StepParts,
    coefficients,
    resource_seconds,
    step_bytes,
    step_flops,
    step_parts,
    step_s,
)

if TYPE_CHECKING:
    from planner.plan.schema import Resource

RESOURCES: tuple[Resource, ...] = ("bandwidth", "compute", "interconnect", "overhead")


def speed_of(fit: Fit, load: Load, catalog: Catalog) -> Speed:
    """Return what a deployment that fits does under a load.

    Raises `ValueError` for a calibration that is incomplete, `UnknownArchitecture` for a model that cannot be computed.
    """
    knowledge = Knowledge.of(catalog, load.confidence)
    if load.kind is LoadKind.BATCH:
        return _one_step(fit, load, knowledge)
    from planner.estimate.loaded import loaded_speed

    return loaded_speed(fit, load, knowledge)


def step_coefficients(fit: Fit, knowledge: Knowledge) -> StepCoefficients:
    """Return the speed model of a deployment as plain floats."""
    d = fit.deployment
    engine_class = d.engine.speed_class(d.device.vendor)
    return coefficients(d.architecture, d.device, d.layout, d.weights, d.kv, engine_class, knowledge.constants)


def named_parts(parts: StepParts, factor: float) -> dict[str, float]:
    """Return the parts of a step by name, times a factor."""
    return {name.removesuffix("_s"): factor * float(value) for name, value in vars(parts).items()}


def sureness(fit: Fit, knowledge: Knowledge, times: Callable[[float, float], Times | None]) -> Sureness:
    """Return the band of a deployment; `times` gives the times at a factor on steps and one on time to first token."""
    d = fit.deployment
    asked = (d.architecture, d.device, d.engine.speed_class(d.device.vendor), d.weights)
    provenance = knowledge.provenance(*asked)
    steps, first = (knowledge.bands.by_line[provenance.line][metric].p80 for metric in ("throughput", "ttft"))
    return Sureness(
        provenance=provenance,
        own=knowledge.own_rows(*asked),
        confidence=knowledge.confidence,
        factor=knowledge.factor(provenance, "throughput"),
        ttft_factor=knowledge.factor(provenance, "ttft"),
        p80=steps,
        ttft_p80=first,
        low=times(1.0 / steps, 1.0 / first),
        best=times(1.0, 1.0),
        high=times(steps, first),
    )


def _one_step(fit: Fit, load: Load, knowledge: Knowledge) -> Speed:
    """Return a decode step of `load.value` sequences, and a prompt that an idle replica computes alone.

    The step has no more sequences than the replica runs: those that find no room in the cache wait outside of it.
    """
    d, held = fit.deployment, float(fit.sequences(fit.deployment.tokens))
    batch = max(min(load.value, held, float(d.max_num_seqs)), 1.0)
    c = step_coefficients(fit, knowledge)
    streams = float(c.streams)
    sequences = max(batch / streams, 1.0)
    context = float(mean_context(d.input_tokens, d.output_tokens))
    parts = step_parts(c, sequences, sequences, context)
    step, prompt, path = sum(named_parts(parts, 1.0).values()), _prompt_s(fit, c), float(c.request_s)

    def times(factor: float, ttft_factor: float) -> Times:
        first = ttft_factor * prompt + ttft_factor / factor * path
        return Times(first, first, factor * step, factor * step, batch / (factor * step))

    sure = sureness(fit, knowledge, times)
    named = named_parts(parts, sure.factor)
    split = resource_seconds(c, sequences, sequences, context)
    resource: dict[str, float] = {
        name: max(sure.factor * float(getattr(split, f"{name}_s")), 0.0) for name in RESOURCES
    }
    regime = max(RESOURCES, key=lambda name: resource[name])
    scarce, because = scarce_room(fit, load, held) or (regime, "most of a decode step")
    return Speed(
        load=load,
        input_tokens=d.input_tokens,
        output_tokens=d.output_tokens,
        batch=batch,
        held=held,
        step_parts_s=named,
        step_s=sum(named.values()),
        resource_s=resource,
        step_bytes=float(step_bytes(c, sequences, sequences, context)),
        step_flops=float(step_flops(c, sequences, sequences, context)),
        requests_per_s=None,
        most_requests_per_s=None,
        waiting_s=0.0,
        times=times(sure.factor, sure.ttft_factor),
        sureness=sure,
        regime=regime,
        limited_by=scarce,
        because=because,
        engine_class=d.engine.speed_class(d.device.vendor),
        notes=_batch_notes(load, batch, because),
    )


def _prompt_s(fit: Fit, c: StepCoefficients) -> float:
    """Return the seconds of a prompt alone on one attention-data rank: in chunks of the token budget, or whole."""
    d, alone = fit.deployment, c.lone_rank()
    chunk = min(d.max_num_batched_tokens, d.input_tokens) if d.chunks else d.input_tokens
    full, rest = divmod(d.input_tokens, chunk)
    whole = float(d.input_tokens)
    seconds = full * float(step_s(alone, float(chunk), 0.0, 0.0, float(chunk), whole))
    seconds += float(step_s(alone, float(rest), 0.0, 0.0, float(rest), whole)) if rest else 0.0
    return float(c.prefill_factor) * seconds


def scarce_room(fit: Fit, load: Load, held: float) -> tuple[Resource, str] | None:
    """Return what keeps sequences of a load waiting, and in which words: the cache or the cap; None where all run."""
    d = fit.deployment
    cap = d.max_num_seqs
    if load.value <= min(held, cap):
        return None
    if held < cap:
        size = f"{held:,.1f}".removesuffix(".0")
        return "capacity", f"the KV cache holds {size} of them, {counted(d.tokens, 'token')} each"
    return "queueing", f"--max-num-seqs admits {cap:,} of them"


def _batch_notes(load: Load, batch: float, because: str) -> tuple[str, ...]:
    found = ["without queueing: time to first token is that of one prompt on an idle replica"]
    if batch < load.value:
        found.append(f"{counted(load.value, 'sequence')}: {because}; the engine queues the rest silently")
    return tuple(found)
