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
    ResultRow,
    closed_load,
    engine_label,
    iso_day,
    known_cells,
    loaded_rows,
    notes,
    open_load,
    ratio,
    shown,
)
from planner.validation.result_run import Run

NAME = "vllm bench serve"
NEEDS = (
    "completed, total_input_tokens, total_output_tokens and times, at request_rate inf or at a rate that max_concurrency "
    "does not limit, without ramp-up or speculative decoding"
)
RUNS = ""
STATISTICS = {"mean": "mean", "median": "p50", "p99": "p99"}
MILLI = 1e-3
RATE_ROUNDING = 0.05
"""Share that a rate may differ from its tokens over its duration: wrappers of the tool round, and count warm-up."""


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the totals and the load, which all ages of the tool write."""
    return {"completed", "total_input_tokens", "total_output_tokens", "request_rate"} <= data.keys()


def rows(file: Run, run: Run) -> list[ResultRow]:  # noqa: ARG001
    """Return the rows of one run, at its mean lengths."""
    if run.has("ramp_up_strategy"):
        raise run.refuse("the rate of requests rises during the run (ramp_up_strategy)", "ramp_up_strategy")
    speculative = next((key for key in run.data if key.startswith("spec_decode_")), None)
    if speculative is not None:
        raise run.refuse("speculative decoding is not modelled", speculative)
    _check_losses(run)
    _check_rate(run)
    known = known_cells(
        date=iso_day(run.raw("date")),
        engine=engine_label(run.text("backend"), None),
        model=run.text("model_id"),
        notes=notes("vllm bench serve", "mean lengths", _burstiness(run), _losses(run)),
    )
    prompt, output = (ratio(run.number(f"total_{side}_tokens"), run.whole("completed")) for side in ("input", "output"))
    metrics = {"output_tok_s_total": run.metric("output_throughput")}
    for kind in ("ttft", "tpot"):
        metrics |= {f"{kind}_ms_{s}": run.metric(f"{word}_{kind}_ms") for word, s in STATISTICS.items()}
    return loaded_rows(known, _load(run, output), (prompt, output), metrics)


def _load(run: Run, output: float | None) -> Load | None:
    bound, prompts, rate = run.whole("max_concurrency"), run.whole("num_prompts"), run.raw("request_rate")
    if rate == "inf" or (isinstance(rate, float) and math.isinf(rate) and rate > 0.0):
        return closed_load(bound, prompts)
    flight = Flight(_in_flight(run, output), run.statistic("max_concurrent_requests"))
    return open_load(run.number("request_rate"), bound, flight)


def _in_flight(run: Run, output: float | None) -> float | None:
    """Return the mean number of requests in flight: their rate times their mean duration (Little's law)."""
    served = run.statistic("request_throughput")
    first, each = run.metric("mean_ttft_ms"), run.metric("mean_tpot_ms")
    if served is None or not isinstance(first, float) or not isinstance(each, float) or output is None:
        return None
    return served * (first + each * max(output - 1.0, 0.0)) * MILLI


def _burstiness(run: Run) -> str:
    shape = run.number("burstiness")
    return f"burstiness {shown(shape)}" if shape not in (None, 1.0) else ""


def _check_losses(run: Run) -> None:
    """Refuse a run of many failures, or one whose counts do not add up. Old versions count the completed requests only."""
    sent, done = run.whole("num_prompts"), run.count("completed")
    if sent is not None and run.has("completed"):
        run.check_losses(sent - done, sent, "completed")
    if not run.has("failed"):
        return
    failed = run.count("failed")
    if sent is not None and done + failed != sent:
        raise run.refuse(
            f"impossible: {done:,.0f} completed and {failed:,.0f} failed requests of {sent:,.0f}", "failed"
        )
    run.check_losses(failed, done + failed, "failed")


def _check_rate(run: Run) -> None:
    """Refuse a rate that is not that of the tokens and the duration beside it."""
    stated, duration = run.metric("output_throughput"), run.metric("duration")
    tokens = run.metric("total_output_tokens")
    if not (isinstance(stated, float) and isinstance(duration, float) and isinstance(tokens, float)):
        return
    if abs(stated * duration / tokens - 1.0) > RATE_ROUNDING:
        raise run.refuse(
            f"impossible: output_throughput {stated:,.6g}, {tokens:,.0f} output tokens in {duration:,.6g} s are"
            f" {tokens / duration:,.6g}",
            "output_throughput",
        )


def _losses(run: Run) -> str:
    sent, done = run.whole("num_prompts"), run.whole("completed")
    return f"{shown(done)} of {shown(sent)} completed" if sent and done and done < sent else ""
