"""`vllm bench serve --save-result`, its ancestor `benchmark_serving.py`, and `sglang.bench_serving`, which kept its fields.

Times are in milliseconds; the tool writes 0 for statistics that it could not take. TPOT is a mean per request, so it is
the same quantity in all tools here; ITL counts single gaps and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import (
    Flight,
    Load,
    closed_load,
    engine_label,
    iso_day,
    known_cells,
    loaded_rows,
    notes,
    number,
    open_load,
    ratio,
    scaled,
    shown,
    text,
    whole,
)

NAME = "vllm bench serve"
NEEDS = (
    "completed, total_input_tokens, total_output_tokens and times, at request_rate inf or at a rate that max_concurrency "
    "does not limit, without ramp-up or speculative decoding"
)
STATISTICS = {"mean": "mean", "median": "p50", "p99": "p99"}
MILLI = 1e-3


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the totals and the load, which all ages of the tool write."""
    return {"completed", "total_input_tokens", "total_output_tokens", "request_rate"} <= data.keys()


def rows(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of one run, at its mean lengths."""
    if data.get("ramp_up_strategy") or any(key.startswith("spec_decode_") for key in data):
        return []
    known = known_cells(
        date=iso_day(data.get("date")),
        engine=engine_label(data.get("backend"), None),
        model=text(data.get("model_id")),
        notes=notes("vllm bench serve", "mean lengths", _burstiness(data), _losses(data)),
    )
    prompt, output = (ratio(data.get(f"total_{side}_tokens"), data.get("completed")) for side in ("input", "output"))
    metrics = {"output_tok_s_total": number(data.get("output_throughput"))}
    for kind in ("ttft", "tpot"):
        metrics |= {f"{kind}_ms_{s}": number(data.get(f"{word}_{kind}_ms")) for word, s in STATISTICS.items()}
    return loaded_rows(known, _load(data, output), (prompt, output), metrics)


def _load(data: Mapping[str, Any], output: float | None) -> Load | None:
    bound, rate, prompts = whole(data.get("max_concurrency")), data.get("request_rate"), whole(data.get("num_prompts"))
    if rate == "inf" or (isinstance(rate, float) and math.isinf(rate) and rate > 0.0):
        return closed_load(bound, prompts)
    return open_load(number(rate), bound, Flight(_in_flight(data, output), number(data.get("max_concurrent_requests"))))


def _in_flight(data: Mapping[str, Any], output: float | None) -> float | None:
    """Return the mean number of requests in flight: their rate times their mean duration (Little's law)."""
    served, first, each = (number(data.get(key)) for key in ("request_throughput", "mean_ttft_ms", "mean_tpot_ms"))
    if served is None or first is None or each is None or output is None:
        return None
    return scaled(served * (first + each * max(output - 1.0, 0.0)), MILLI)


def _burstiness(data: Mapping[str, Any]) -> str:
    shape = number(data.get("burstiness"))
    return f"burstiness {shown(shape)}" if shape not in (None, 1.0) else ""


def _losses(data: Mapping[str, Any]) -> str:
    sent, done = whole(data.get("num_prompts")), whole(data.get("completed"))
    return f"{shown(done)} of {shown(sent)} completed" if sent and done and done < sent else ""
