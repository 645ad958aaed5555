"""`vllm bench throughput --output-json`: all requests at once inside the engine.

The tool writes the sum of prompt and output tokens only. Rows come of files that state the output tokens beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import Load, ResultRow, known_cells, loaded_rows, notes, ratio
from planner.validation.result_run import Run

NAME = "vllm bench throughput"
NEEDS = "total_output_tokens, which the tool does not write itself: its rate counts prompt tokens too"

RUNS = ""


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the five fields of the tool."""
    return {
        "elapsed_time",
        "num_requests",
        "total_num_tokens",
        "requests_per_second",
        "tokens_per_second",
    } <= data.keys()


def rows(file: Run, run: Run) -> list[ResultRow]:  # noqa: ARG001
    """Return the rate of output tokens, at the mean lengths of the requests."""
    requests, total, output = (run.whole(key) for key in ("num_requests", "total_num_tokens", "total_output_tokens"))
    if requests is None or total is None or output is None:
        return []
    if output >= total:
        raise run.refuse(f"impossible: {output:,.0f} output tokens of {total:,.0f} in all", "total_output_tokens")
    known = known_cells(engine="vLLM", notes=notes("vllm bench throughput", "mean lengths"))
    lengths = (ratio(total - output, requests), ratio(output, requests))
    rate = {"output_tok_s_total": ratio(output, run.number("elapsed_time"))}
    return loaded_rows(known, Load("offline_max", concurrency=requests), lengths, rate)
