"""What the readers of result files share: fields of untrusted JSON, the load a tool kept, and rows of measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from planner.catalog.canonical import tidy
from planner.validation.result_run import Metric, Unusable

COLUMNS = (
    "source", "url", "date", "engine", "gpu", "n_gpus", "tp", "pp", "parallel_extra", "model", "weight_dtype", "kv_dtype",
    "isl", "osl", "scenario", "concurrency", "batch", "request_rate", "metric", "value", "notes",
)  # fmt: skip
"""Columns of published speed measurements, in the order in which tables print them."""
LAST_SECOND = 4_102_444_800.0
"""Seconds since 1970 of the year 2100: the last date a file may state."""
PEAK_DEVIATIONS = 4.0
"""Standard deviations above its mean that a Poisson number of requests in flight practically never exceeds."""
ENGINES = {
    "vllm": "vLLM", "sglang": "SGLang", "trt": "TensorRT-LLM", "trtllm": "TensorRT-LLM", "tensorrt-llm": "TensorRT-LLM",
    "tensorrtllm": "TensorRT-LLM", "atom": "ATOM", "tgi": "TGI", "deepspeed-mii": "DeepSpeed-MII", "llama.cpp": "llama.cpp",
    "dynamo-trt": "Dynamo TensorRT-LLM", "dynamo-trtllm": "Dynamo TensorRT-LLM", "dynamo-vllm": "Dynamo vLLM",
    "dynamo-sglang": "Dynamo SGLang", "sglang-disagg": "SGLang disagg", "sglang-native": "SGLang",
    "sglang-oai": "SGLang", "sglang-oai-chat": "SGLang", "vllm-chat": "vLLM",
}  # fmt: skip
"""Engines by the words of tools; protocols such as `openai` name none."""

WEIGHT_MARKS = {
    "nvfp4": "nvfp4", "mxfp4": "mxfp4", "fp8": "fp8", "w4a16": "int4", "w8a8": "int8", "awq": "int4", "gptq": "int4",
    "int4": "int4", "int8": "int8",
}  # fmt: skip
"""Weight formats by the marks in names of builds, the most telling first."""

KINDS = ("ttft_ms", "tpot_ms")
ORDERED = (
    ("p50", "p99", 1.0, "above"),
    ("mean", "p99", 1.0, "above"),
    ("p50", "mean", 0.5, "more than twice"),
)
"""Statistics of one kind of which the first, times the factor, is not above the second, and what it is said to be else."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that the speed model knows: users of a closed loop, prompts of a burst, or requests/s of an open loop."""

    scenario: str
    concurrency: float | None = None
    request_rate: float | None = None


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One measurement of a file as cells of a table, and why it cannot be scored where that is so."""

    cells: dict[str, str]
    wrong: Unusable | None = None


@dataclass(frozen=True, slots=True)
class Flight:
    """Requests in flight as a tool measured them, None where it did not: their mean and the most at once."""

    mean: float | None = None
    peak: float | None = None


def inner(data: object, *keys: str) -> object:
    """Return what lies under a path of keys, None where the path ends early."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def text(value: object) -> str:
    """Return a name on one printable line, empty for anything that is no text."""
    return tidy(value.strip()) if isinstance(value, str) else ""


def first_text(values: Iterable[object]) -> str:
    """Return the first of `values` that names something. A list counts when it names one thing only."""
    for value in values:
        named = text(value[0] if isinstance(value, list) and len(value) == 1 else value)
        if named:
            return named
    return ""


def shown(value: float | None) -> str:
    """Return a number as the text of a cell, empty for None."""
    return "" if value is None else f"{value:.12g}"


def scaled(value: Metric, factor: float) -> Metric:
    """Return a number in another unit, and what is no number as it is."""
    return value * factor if isinstance(value, float) else value


def ratio(total: float | None, count: float | None) -> float | None:
    """Return a mean from a total and a count, None without either."""
    return None if total is None or count is None else total / count


def day(seconds: object) -> str:
    """Return the date of a time in seconds since 1970, empty for anything else."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 < seconds <= LAST_SECOND:
        return ""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def iso_day(stamp: object) -> str:
    """Return the date in `20251114-091523` or `2025-11-14T09:15:23`, empty for anything else."""
    digits = text(stamp)[:10].replace("-", "")[:8]
    try:
        return datetime.strptime(digits, "%Y%m%d").date().isoformat() if digits.isascii() else ""
    except ValueError:
        return ""


def engine_label(named: object, version: object) -> str:
    """Return the engine that a word of a tool stands for, with its version or image; empty for unknown words."""
    label = ENGINES.get(text(named).casefold(), "")
    image = text(str(version).rsplit("/", 1)[-1]) if isinstance(version, str) else ""
    return f"{label} ({image})" if label and image else label


def closed_load(bound: float | None, requests: float | None) -> Load | None:
    """Return the load of requests sent as soon as a bound lets them; None where nothing tells how many are in flight.

    A bound that all requests fit under holds none back: they come at once.
    """
    if bound is None or (requests is not None and requests <= bound):
        return None if requests is None else Load("burst_all_at_once", concurrency=requests)
    return Load("closed_loop", concurrency=bound)


def open_load(rate: float | None, bound: float | None, flight: Flight) -> Load | None:
    """Return the load of requests at a rate; None without a rate, or where a bound on those in flight may hold some back."""
    if rate is None or (bound is not None and not _is_free(bound, flight)):
        return None
    return Load("open_loop", request_rate=rate)


def _is_free(bound: float, flight: Flight) -> bool:
    if flight.peak is not None and flight.peak < bound:
        return True
    return flight.mean is not None and flight.mean + PEAK_DEVIATIONS * math.sqrt(flight.mean) < bound


def loaded_rows(
    known: Mapping[str, str],
    load: Load | None,
    lengths: tuple[float | None, float | None],
    metrics: Mapping[str, Metric],
) -> list[ResultRow]:
    """Return a row for each metric with a value, none where the load or a mean length (prompt, output tokens) is open.

    The rate of output tokens is kept for closed loops only: elsewhere it says what was sent, not what could be served.
    """
    prompt, output = lengths
    if load is None or prompt is None or output is None or output < 1.0:
        return []
    base = dict.fromkeys(COLUMNS, "") | dict(known)
    base |= {
        "isl": shown(prompt),
        "osl": shown(output),
        "scenario": load.scenario,
        "concurrency": shown(load.concurrency),
        "request_rate": shown(load.request_rate),
    }
    return [
        ResultRow(base | {"metric": metric}, value)
        if isinstance(value, Unusable)
        else ResultRow(base | {"metric": metric, "value": shown(value)})
        for metric, value in _in_order(metrics).items()
        if value is not None and (load.scenario in ("closed_loop", "offline_max") or not metric.startswith("output"))
    ]


def _in_order(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return the metrics; statistics of one kind that contradict each other are impossible, both of them.

    A median or a mean is not above the 99th percentile, and a mean not below half of the median: half of all values are at
    least as long as that one.
    """
    found = dict(metrics)
    for kind in KINDS:
        for low, high, factor, says in ORDERED:
            below, above = metrics.get(f"{kind}_{low}"), metrics.get(f"{kind}_{high}")
            if isinstance(below, float) and isinstance(above, float) and factor * below > above:
                first, second = (f"{kind}_{low} {below:g}", f"{kind}_{high} {above:g}")
                wrong = Unusable((), f"impossible: {first} is {says} {second}")
                found |= {f"{kind}_{low}": wrong, f"{kind}_{high}": wrong}
    return found


def known_cells(**found: str) -> dict[str, str]:
    """Return the cells of a run that the file fills."""
    return {column: value for column, value in found.items() if value}


def named_weights(model: str) -> str:
    """Return the weight format that the name of a build says, empty where it says none."""
    folded = model.casefold().replace("-", "")
    return next((weights for mark, weights in WEIGHT_MARKS.items() if mark in folded), "")


def notes(*parts: str) -> str:
    """Join remarks, leaving out empty ones."""
    return "; ".join(part for part in parts if part)
