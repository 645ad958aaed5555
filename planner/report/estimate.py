"""An estimate of one deployment as text, the answer first, and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from planner.estimate.answer import Estimate, LoadKind, Speed, Times
from planner.estimate.deployment import Deployment
from planner.estimate.memory import GIB
from planner.estimate.notes import NARROW_MARGIN_BYTES, why
from planner.estimate.remedies import Remedy
from planner.plan.levers import LEVERS
from planner.report.figures import count, gib, number, seconds, share

WIDTH = 120
SHOWN_PART = 0.05 * GIB
MOST_REMEDIES = 8
LEAST_SHARE = 1e-3

PROVENANCE = {
    "own": "you measured this combination of engine, GPU, kind of model and weight format",
    "published": "this combination of engine, GPU, kind of model and weight format was measured",
    "A": "this GPU with models of this kind was measured on engines of this generation",
    "B": "GPUs of this architecture with models of this kind were measured on engines of this generation",
    "C": "models of this kind were measured with this engine or on this architecture, but not together",
    "D": "nothing comparable was measured: datasheet and defaults",
}
"""What stands behind a line of the table of bands."""

PARTS = {
    "attention_weights": ("attention weights", "read and multiplied once a step; split by TP"),
    "ffn": ("dense FFN", "read and multiplied once a step; split by TP"),
    "head": ("LM head", "vocabulary x width, for every sequence"),
    "experts": ("experts", "those that the tokens of a step reach; split over all GPUs"),
    "kv": ("KV cache", "streamed for every sequence up to its context"),
    "prefill_attention": ("prompt attention", "scores of prompt tokens in the step"),
    "collectives": ("collectives", "all-reduce, all-to-all and hops between GPUs"),
    "layers": ("layers", "fixed time per layer: launches, norms, routers"),
    "host": ("host", "scheduler and sampler, per step and sequence"),
}
"""Parts of a step: how they are called, and what they are."""


def render(estimate: Estimate, explain: bool = False) -> list[str]:
    """Return an estimate as lines: what was found, whether it fits, memory, speed, and what to say about them."""
    lines = [*_headline(estimate), *(line for w in estimate.warnings for line in _folded("warning: ", w))]
    lines += ["", *_memory(estimate)]
    if estimate.remedies:
        lines += ["", *_remedies(estimate)]
    if estimate.speed is not None:
        lines += ["", *_speed(estimate.speed)]
        if explain:
            lines += ["", *_step(estimate.speed), "", *_sources(estimate)]
    lines += ["", *(line for n in estimate.notes for line in _folded("note: ", n))] if estimate.notes else []
    if explain:
        assumed = (f"{a.key}: {a.value} ({a.source})" for a in estimate.assumptions)
        lines += ["", "Assumed", *(line for text in assumed for line in _folded("  ", text))]
    return lines


def as_data(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as one object of plain values; units are in the keys."""
    d, held, budget, speed = estimate.deployment, estimate.fit, estimate.fit.budget, estimate.speed
    kv = budget.kv
    return {
        "model": d.model,
        "gpu": d.device.name,
        "engine": {"name": d.engine.name, "version": d.engine.version},
        "weights": d.weights,
        "kv_cache": d.kv,
        **_layout(d),
        "gpu_memory_utilization": d.utilization,
        "max_model_len": d.max_model_len,
        "max_num_seqs": d.max_num_seqs,
        "max_num_batched_tokens": d.max_num_batched_tokens,
        "chunked_prefill": d.chunks,
        "fits": held.fits,
        "outcome": held.outcome.value,
        "short_bytes": held.short_bytes,
        "spare_bytes": held.spare_bytes,
        "hbm_bytes_per_gpu": _budget(estimate),
        "weight_bytes_per_gpu": dict(held.weight_parts),
        "kv_bytes_per_token_per_gpu": kv.global_bytes_per_token + kv.local_bytes_per_token,
        "kv_bytes_per_sequence_per_gpu": {
            "per_token": kv.global_bytes_per_token,
            "per_token_in_window": kv.local_bytes_per_token,
            "window_tokens": kv.window_tokens,
            "fixed": kv.fixed_bytes,
            "longest": budget.longest_bytes,
        },
        "kv_block_tokens": held.block_tokens,
        "kv_blocks": held.blocks,
        "kv_tokens": budget.kv_tokens,
        "max_concurrency": budget.max_concurrency,
        "longest_context_tokens": estimate.longest_context,
        "why": why(held),
        "remedies": [_remedy(remedy) for remedy in estimate.remedies],
        "load": None if speed is None else _load(speed),
        "step_s": None if speed is None else {"parts": dict(speed.step_parts_s), "total": speed.step_s},
        "resource_s": None if speed is None else dict(speed.resource_s),
        "step_bytes_per_gpu": None if speed is None else speed.step_bytes,
        "step_flops_per_gpu": None if speed is None else speed.step_flops,
        "requests_per_s": None if speed is None else speed.requests_per_s,
        "most_requests_per_s": None if speed is None else speed.most_requests_per_s,
        **_times(speed.times if speed else None),
        "band": None if speed is None else _band(speed),
        "regime": None if speed is None else speed.regime,
        "limited_by": estimate.limited_by,
        "lever": LEVERS[estimate.limited_by],
        "warnings": list(estimate.warnings),
        "notes": list(estimate.notes),
        "assumptions": [asdict(a) for a in estimate.assumptions],
        "found": None if estimate.found is None else _found(estimate),
    }


def _layout(d: Deployment) -> dict[str, int]:
    return {
        "tensor_parallel": d.layout.tensor,
        "pipeline_parallel": d.layout.pipeline,
        "expert_parallel": d.layout.expert,
        "attention_data_parallel": d.layout.attention_data,
        "decode_context_parallel": d.layout.decode_context,
        "gpus": d.layout.gpus,
    }


def _budget(estimate: Estimate) -> dict[str, float]:
    budget = estimate.fit.budget
    return {
        "usable": budget.usable_bytes,
        "weights": budget.weights_bytes,
        "kv_pool": budget.kv_pool_bytes,
        "activations": budget.activation_bytes,
        "runtime": budget.runtime_bytes,
        "graphs": budget.graph_bytes,
        "free": budget.free_bytes,
    }


def _remedy(remedy: Remedy) -> dict[str, Any]:
    held = remedy.fit
    return {
        "change": remedy.change,
        "flags": remedy.flags,
        "cost": remedy.cost.value,
        "kv_pool_bytes": held.budget.kv_pool_bytes,
        "spare_bytes": held.spare_bytes,
        "max_concurrency": held.budget.max_concurrency,
        "max_model_len": held.deployment.max_model_len,
        "gpus": held.deployment.layout.gpus,
    }


def _load(speed: Speed) -> dict[str, Any]:
    return {
        "kind": speed.load.kind.value,
        "value": None if speed.load.kind is LoadKind.MAX else speed.load.value,
        "input_tokens": speed.input_tokens,
        "output_tokens": speed.output_tokens,
        "mean_batch": speed.batch,
        "sequences_held": speed.held,
        "waiting_s": speed.waiting_s,
    }


def _times(times: Times | None) -> dict[str, Any]:
    if times is None:
        return {"output_tokens_per_s": None, "ttft_s": None, "tpot_s": None}
    return {
        "output_tokens_per_s": times.output_tokens_per_s,
        "ttft_s": {"p50": times.ttft_p50_s, "p95": times.ttft_p95_s},
        "tpot_s": {"p50": times.tpot_p50_s, "p95": times.tpot_p95_s},
    }


def _band(speed: Speed) -> dict[str, Any]:
    sure = speed.sureness
    ends = {"low": sure.low, "best": sure.best, "high": sure.high}
    return {
        "class": sure.provenance.letter,
        "measured": sure.provenance.measured,
        "meaning": PROVENANCE[sure.provenance.line],
        "own": None if sure.own is None else asdict(sure.own),
        "confidence": sure.confidence,
        "factor": sure.factor,
        "ttft_factor": sure.ttft_factor,
        "factors_80": {"low": 1.0 / sure.p80, "best": 1.0, "high": sure.p80},
        "ttft_factors_80": {"low": 1.0 / sure.ttft_p80, "best": 1.0, "high": sure.ttft_p80},
        **{name: None if times is None else _times(times) for name, times in ends.items()},
    }


def _found(estimate: Estimate) -> dict[str, Any]:
    found = estimate.found
    assert found is not None
    return {
        "find": found.search.value,
        "value": found.value,
        "sentence": found.sentence,
        "alone": found.alone and {key: _times(found.alone)[key] for key in ("ttft_s", "tpot_s")},
        "tried": [dict(row) for row in found.tried],
    }


def _headline(estimate: Estimate) -> Iterator[str]:
    d, held = estimate.deployment, estimate.fit
    if estimate.found is not None:
        yield estimate.found.sentence
    where = f"{d.layout.gpus} x {d.device.name}" if d.layout.gpus > 1 else d.device.name
    yield f"{d.model} on {where} ({_degrees(d)}), {d.weights} weights, {d.kv} KV, {d.engine.name} {d.engine.version}"
    if held.fits:
        barely = "barely fits" if held.spare_bytes < NARROW_MARGIN_BYTES else "fits"
        yield f"{barely}, with {gib(held.spare_bytes)} GiB per GPU beside one sequence of {count(d.max_model_len, 'token')}"
        if held.spare_bytes < NARROW_MARGIN_BYTES:
            yield from _folded("  ", why(held))
        return
    when = {"oom": "out of memory", "kv_too_small": "KV cache too small"}[held.outcome.value]
    yield f"does not fit: {number(held.short_bytes / GIB, 2)} GiB short per GPU ({when})" + _best(estimate)
    yield from _folded("  ", why(held))


def _best(estimate: Estimate) -> str:
    if not estimate.remedies:
        return "; no change tried makes it fit, nor any two of them"
    first = estimate.remedies[0]
    barely = "barely fits" if first.fit.spare_bytes < NARROW_MARGIN_BYTES else "fits"
    return f"; {barely} with {first.flags}"


def _degrees(d: Deployment) -> str:
    layout = d.layout
    named = {"PP": layout.pipeline, "EP": layout.expert, "DP": layout.attention_data, "DCP": layout.decode_context}
    return " ".join([f"TP{layout.tensor}", *(f"{name}{degree}" for name, degree in named.items() if degree > 1)])


def _memory(estimate: Estimate) -> Iterator[str]:
    d, held, budget = estimate.deployment, estimate.fit, estimate.fit.budget
    parts = sorted(held.weight_parts.items(), key=lambda item: -item[1])
    weights = ", ".join(f"{name.replace('_', ' ')} {gib(size)}" for name, size in parts if size >= SHOWN_PART)
    steps = f"steps of {count(d.max_num_batched_tokens, 'token')}" if d.chunks else "whole prompts as steps"
    media = f", {count(d.images, 'image')} and {count(d.videos, 'video')}" if d.architecture.vision_patches else ""
    held_most = f"{number(budget.max_concurrency)} sequence{'' if budget.max_concurrency == 1.0 else 's'}"
    pool = f"{budget.kv_tokens:,.0f} tokens, {held_most} of {d.max_model_len:,}"
    yield f"{'Memory per GPU':<16}{'GiB':>7}"
    rows = (
        ("usable", budget.usable_bytes, ""),
        ("weights", budget.weights_bytes, weights),
        ("activations", budget.activation_bytes, f"{steps}, {count(d.max_num_seqs, 'sequence')}{media}"),
        ("runtime", budget.runtime_bytes, ""),
        ("graphs", budget.graph_bytes, ""),
        ("KV pool", budget.kv_pool_bytes, pool),
        ("free", budget.free_bytes, "outside of what the engine takes" if budget.free_bytes >= 0.0 else "missing"),
    )
    for name, size, about in rows:
        yield f"  {name:<14}{gib(size):>7}  {about}".rstrip()
    kv = budget.kv
    token = (kv.global_bytes_per_token + kv.local_bytes_per_token) / 2**10
    own = d.architecture.max_position
    yield f"  KV per token {number(token):>8} KiB; longest context {estimate.longest_context:,} of {own:,} tokens"


def _remedies(estimate: Estimate) -> Iterator[str]:
    yield "What makes it fit, the cheapest first"
    shown = estimate.remedies[:MOST_REMEDIES]
    flags = max(len(remedy.flags) for remedy in shown)
    change = max(len(remedy.change) for remedy in shown)
    for remedy in shown:
        held = remedy.fit
        effect = (
            f"{gib(held.budget.kv_pool_bytes)} GiB pool, {number(held.budget.max_concurrency)} x"
            f" {count(held.deployment.max_model_len, 'token')}"
        )
        yield f"  {remedy.cost.value:<9}  {remedy.flags:<{flags}}  {remedy.change:<{change}}  {effect}"
    rest = len(estimate.remedies) - len(shown)
    if rest > 0:
        yield f"  and {rest} more, in --format json"


def _speed(speed: Speed) -> Iterator[str]:
    sure, times = speed.sureness, speed.times
    yield f"Speed {_what(speed)}, {count(speed.input_tokens, 'token')} in and {speed.output_tokens:,} out"
    if times is None:
        most = speed.most_requests_per_s or 0.0
        is_rate = speed.load.kind is LoadKind.RATE and most > 0.0
        yield f"  more than one replica bears: at most {number(most)} req/s" if is_rate else "  one replica bears none"
    else:
        requests = f", {number(speed.requests_per_s)} req/s" if speed.requests_per_s else ""
        yield f"  throughput  {number(times.output_tokens_per_s)} output tokens/s{requests}{_range(speed, 'output_tokens_per_s')}"
        for name, middle, high in (("TTFT", "ttft_p50_s", "ttft_p95_s"), ("TPOT", "tpot_p50_s", "tpot_p95_s")):
            figures = f"p50 {seconds(getattr(times, middle))}, p95 {seconds(getattr(times, high))}"
            yield f"  {name:<10}  {figures}{_range(speed, high)}"
    total = sum(speed.resource_s.values())
    split = ", ".join(
        f"{name} {share(part / total)}" for name, part in speed.resource_s.items() if part > LEAST_SHARE * total
    )
    if speed.most_requests_per_s is not None and times is not None:
        most_text = f"at most {number(speed.most_requests_per_s)} req/s"
        is_loop = speed.load.kind is LoadKind.CONCURRENCY
        bears = f"with independent arrivals {most_text}" if is_loop else f"one replica bears {most_text}"
        yield f"  {bears}; {_running(speed.batch)}"
    yield f"  step        {seconds(speed.step_s)}: {split}"
    at = f"{number(100.0 * sure.confidence, 6)} %"
    yield from _folded(
        "  ",
        f"times hold at {at} confidence (x {number(sure.factor)}; TTFT x {number(sure.ttft_factor)}); class"
        f" {sure.provenance.letter}: {PROVENANCE[sure.provenance.line]}; 80 % of them within x {number(sure.p80)}",
    )
    yield from _folded("  ", f"limited by {speed.limited_by} ({speed.because}); lever: {speed.lever}")


def _what(speed: Speed) -> str:
    value = number(speed.load.value, 6)
    match speed.load.kind:
        case LoadKind.BATCH:
            ran = number(speed.batch, 6)
            return f"of one decode step at batch {ran}" + (f", not {value}" if speed.batch < speed.load.value else "")
        case LoadKind.CONCURRENCY:
            return f"with {value} request{'' if speed.load.value == 1.0 else 's'} in flight"
        case LoadKind.RATE:
            return f"at {value} req/s"
        case LoadKind.MAX:
            return "at the largest rate"


def _running(batch: float) -> str:
    text = number(batch)
    return f"{text} sequence runs" if text == "1" else f"{text} sequences run"


def _range(speed: Speed, name: str) -> str:
    low, best, high = (
        None if times is None else getattr(times, name)
        for times in (speed.sureness.low, speed.sureness.best, speed.sureness.high)
    )
    if best is None:
        return ""
    shown = number if name == "output_tokens_per_s" else seconds
    if name == "output_tokens_per_s":
        low, high = high, low
        if low == high:
            return ""
    ends = ["overloaded" if end is None else shown(end) for end in (low, best, high)]
    of = "p95: " if name.endswith("p95_s") else ""
    return f"  ({of}low {ends[0]}, best {ends[1]}, high {ends[2]})"


def _step(speed: Speed) -> Iterator[str]:
    yield f"Step at {number(speed.batch)} sequence{'' if speed.batch == 1.0 else 's'}: {seconds(speed.step_s)}"
    for key, size in speed.step_parts_s.items():
        if size > LEAST_SHARE**2 * speed.step_s:
            name, about = PARTS[key]
            yield f"  {name:<18}{seconds(size):>9}  {share(size / speed.step_s):>6}  {about}"
    yield f"  each GPU streams {speed.step_bytes / 1e9:,.2f} GB and computes {speed.step_flops / 1e12:,.3f} TFLOP in it"


def _sources(estimate: Estimate) -> Iterator[str]:
    d, speed = estimate.deployment, estimate.speed
    assert speed is not None
    yield "Constants"
    for text in (
        f"memory: {d.engine.name} {d.engine.memory.versions}: {d.engine.memory.source or 'not stated'}",
        f"usable memory: {d.entry.memory.usable_basis}, catalog/gpus/{d.device.name}.yaml",
        f"peaks and bandwidth: {'; '.join(d.entry.sources)}",
        f"speed: {_speed_source(d, speed)}",
    ):
        yield from _folded("  ", text)


def _speed_source(d: Deployment, speed: Speed) -> str:
    own = speed.sureness.own
    shipped = f"catalog/calibration/default.yaml, engine class {speed.engine_class}"
    if own is not None and own.same:
        return f"{own} of this combination, put over {shipped}"
    versions = f"measured on {d.engine.name} {d.engine.versions}"
    beyond = f" ({d.engine.version} is {d.engine.beyond})" if d.engine.beyond else ""
    others = f"; constants of this GPU: {own} of other combinations" if own is not None else ""
    return f"{shipped}, {versions}{beyond}{others}"


def _folded(start: str, text: str) -> list[str]:
    indent = " " * len(start) if start.strip() == "" else "  "
    return textwrap.wrap(
        start + text,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [start]


__all__ = ["PROVENANCE", "as_data", "render"]
