"""What a spec asks of the shapes of one workload: each wish can be dropped, and relaxed step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.candidates.types import CandidateTable
from planner.explain.change import Place, flow, with_value
from planner.explain.places import admission, hardware
from planner.explain.shapes import ENGINE, setting_text
from planner.explain.trials import Trials
from planner.explain.wish import Asked, Wish, is_admitted, only, rejections_of
from planner.spec import FleetSpec, ParallelismSpec

SLOWER = (1.25, 1.5, 2.0, 4.0)
"""Limits that are tried, as multiples of what an idle replica reaches: at the floor itself a replica carries nothing."""
FORMATS = ("fp8", "int8", "int4", "nvfp4", "mxfp4")
KV_FORMATS = ("fp8",)
TENSOR_DEGREES = (1, 2, 4, 8, 16, 32)
SETTINGS = ("gpu_memory_utilization", "max_num_batched_tokens", "chunked_prefill", "prefix_caching")
"""Settings of the engine that decide what fits and how fast a prompt is, and have a default to go back to."""
TOKENS_STEP = 1024
MOST_TOKENS_SHARE = 0.99  # a longest sequence that cuts more requests than this leaves is no way out
MEMORY_RULES = frozenset({"hbm-fit", "layout", "format-support"})


def wishes_of(spec: FleetSpec, workload: str, table: CandidateTable, trials: Trials) -> list[Wish]:
    """Return the wishes behind what was ruled out for a workload, in the order in which shapes meet them."""
    asked = Asked(spec, table, table.workloads[workload], trials)
    rules = {r.rule for r in asked.rejections}
    found: list[Wish] = []
    if not is_admitted(spec, table, workload, trials.catalog):
        found += admission(asked)
    if rules & MEMORY_RULES:
        found += [*_length(asked), *_formats(asked), *_degrees(asked), *_sequences(asked)]
    if "quality-floor" in rules:
        found += _quality(asked)
    if "latency" in rules:
        found += _latencies(asked)
        found += [] if rules & MEMORY_RULES else _degrees(asked)
    if rules & {"hbm-fit", "latency"}:
        found += _settings(asked)
    found += hardware(asked)
    return list({wish.key: wish for wish in found}.values())


def _latencies(asked: Asked) -> Iterator[Wish]:
    """Latency limits that every shape misses even when idle, or that some shape misses alone."""
    limits = asked.workload.spec.slo
    for key, now in sorted(limits.items()):
        floor_s = _floor_s(asked, key)
        if floor_s is not None:
            place: Place = ("workloads", asked.workload.name, "slo", key)
            values = [v for v in (rounded_up(floor_s * factor) for factor in SLOWER) if v > now]
            steps = [(v, milliseconds(v)) for v in values]
            yield asked.wish(place, milliseconds(now), "latency", math.inf, steps)


def _floor_s(asked: Asked, key: str) -> float | None:
    """Return the best that an idle replica reaches of one latency, among shapes that miss this limit alone."""
    alone = only(asked.spec, asked.workload.name)
    slo = {key: asked.workload.spec.slo[key]}
    table = asked.trials.table(with_value(alone, ("workloads", asked.workload.name, "slo"), slo))
    return min((r.best_s for r in rejections_of(table, asked.workload.name) if r.slo == key), default=None)


def _length(asked: Asked) -> Iterator[Wish]:
    """The longest sequence, as short as the traffic allows."""
    now = asked.table.models[asked.workload.model].max_model_len
    least = _least_length(asked)
    if least >= now:
        return
    halves = [TOKENS_STEP * math.ceil(now / 2**i / TOKENS_STEP) for i in range(1, 12)]
    values = [n for n in dict.fromkeys([*halves, least]) if least <= n < now]
    place = ("models", asked.workload.model, "max_model_len")
    yield asked.wish(place, f"{now}", "hbm-fit", least, [(n, f"{n}") for n in sorted(values, reverse=True)])


def _least_length(asked: Asked) -> int:
    """Return the shortest longest sequence that leaves nearly all requests as they are."""
    traffic = asked.workload.spec.traffic
    both = (traffic.input_tokens.lengths, traffic.output_tokens.lengths)
    needed = sum(lengths.quantile(MOST_TOKENS_SHARE) for lengths in both)
    return TOKENS_STEP * math.ceil(needed / TOKENS_STEP)


def _formats(asked: Asked) -> Iterator[Wish]:
    """Formats that the user restricted."""
    for name, more in (("weights", FORMATS), ("kv_cache", KV_FORMATS)):
        own = getattr(asked.spec.models[asked.workload.model], name)
        if own is None:
            continue
        place = ("models", asked.workload.model, name)
        others = [each for each in more if each not in own]
        wider = [(*own, each) for each in others]
        yield asked.wish(place, flow(own), "hbm-fit", (*own, *others), [(w, flow(w)) for w in wider])


def _degrees(asked: Asked) -> Iterator[Wish]:
    """Parallel degrees that the user restricted."""
    own = asked.spec.models[asked.workload.model].parallelism
    if own == ParallelismSpec():
        return
    place = ("models", asked.workload.model, "parallelism")
    if own.tensor is None:
        yield asked.wish(place, _layout(own), "hbm-fit", ParallelismSpec(), [(ParallelismSpec(), "{}")])
        return
    more = [d for d in TENSOR_DEGREES if d not in own.tensor]
    wider = [tuple(sorted((*own.tensor, *more[: i + 1]))) for i in range(len(more))]
    yield asked.wish((*place, "tensor"), flow(own.tensor), "hbm-fit", None, [(w, flow(w)) for w in wider])


def _quality(asked: Asked) -> Iterator[Wish]:
    """The floor on quality."""
    model = asked.table.models[asked.workload.model]
    floor = model.spec.min_quality
    reached = sorted({e.recovery for e in model.quality.values() if 0.0 < e.recovery < floor}, reverse=True)
    lower = dict.fromkeys(math.floor(r * 1000.0) / 1000.0 for r in reached)
    place = ("models", asked.workload.model, "min_quality")
    yield asked.wish(place, _percent(floor), "quality-floor", 0.0, [(r, _percent(r)) for r in lower])


def _sequences(asked: Asked) -> Iterator[Wish]:
    """The most sequences in one step, for which the engine sets memory aside."""
    now = asked.spec.models[asked.workload.model].engine.max_num_seqs
    if now is not None and now > 1:
        halves = list(dict.fromkeys(max(1, now // 2**i) for i in range(1, 12)))
        yield asked.wish(_setting(asked, "max_num_seqs"), f"{now}", "hbm-fit", 1, [(n, f"{n}") for n in halves])


def _settings(asked: Asked) -> Iterator[Wish]:
    """Settings of the engine that are not at their defaults."""
    own = asked.spec.models[asked.workload.model].engine
    for name in SETTINGS:
        now, default = getattr(own, name), getattr(ENGINE, name)
        if now != default:
            cause = "hbm-fit" if name == SETTINGS[0] else "latency"
            yield asked.wish(
                _setting(asked, name), setting_text(now), cause, default, [(default, setting_text(default))]
            )


def _setting(asked: Asked, name: str) -> Place:
    return ("models", asked.workload.model, "engine", name)


def rounded_up(seconds: float) -> float:
    """Return a time rounded up to two digits, as people write limits."""
    unit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return math.ceil(seconds / unit - 1e-9) * unit


def milliseconds(seconds: float) -> str:
    """Write a latency limit as the spec does."""
    return f"{seconds:.6g} s" if seconds >= 1.0 else f"{seconds * 1e3:.6g} ms"


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _layout(own: ParallelismSpec) -> str:
    given = {name: flow(values) for name in sorted(own.model_fields_set) if (values := getattr(own, name))}
    return f"{{{', '.join(f'{name}: {values}' for name, values in given.items())}}}"
