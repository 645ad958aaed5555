"""`vllm bench throughput --output-json`: all requests at once inside the engine.

The tool writes the sum of prompt and output tokens only. Rows come of files that state the output tokens beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import Load, known_cells, loaded_rows, notes, number, ratio, whole

NAME = "vllm bench throughput"
NEEDS = "total_output_tokens, which the tool does not write itself: its rate counts prompt tokens too"


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the five fields of the tool."""
    return {
        "elapsed_time",
        "num_requests",
        "total_num_tokens",
        "requests_per_second",
        "tokens_per_second",
    } <= data.keys()


def rows(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rate of output tokens, at the mean lengths of the requests."""
    requests, total, output = (
        whole(data.get(key)) for key in ("num_requests", "total_num_tokens", "total_output_tokens")
    )
    if requests is None or total is None or output is None or output >= total:
        return []
    known = known_cells(engine="vLLM", notes=notes("vllm bench throughput", "mean lengths"))
    lengths = (ratio(total - output, requests), ratio(output, requests))
    rate = {"output_tok_s_total": ratio(output, number(data.get("elapsed_time")))}
    return loaded_rows(known, Load("offline_max", concurrency=requests), lengths, rate)
