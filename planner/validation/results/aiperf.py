"""NVIDIA aiperf (`profile_export_aiperf.json`) and its ancestor genai-perf (`profile_export_genai_perf.json`).

Statistics are records with their unit. Inter token latency is a mean per request without the first token, so it is TPOT.
The load is in `input_config`, in a place that moved from version to version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import (
    Flight,
    Load,
    ResultRow,
    closed_load,
    first_text,
    inner,
    iso_day,
    known_cells,
    loaded_rows,
    notes,
    open_load,
    ratio,
)
from planner.validation.result_run import Metric, Run, Unusable

NAME = "aiperf or genai-perf"
NEEDS = (
    "the records time_to_first_token, inter_token_latency or output_token_throughput with their units, mean input and "
    "output sequence lengths, and in input_config one concurrency, or one request rate that a concurrency does not limit"
)
RUNS = ""
MILLISECONDS = {"ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, "us": 1e-3, "ns": 1e-6}
RATES = {"tokens/sec": 1.0, "tokens/s": 1.0, "tokens/second": 1.0}
TOKENS = {"tokens": 1.0}
REQUESTS = {"requests": 1.0}
RECORDS = {
    "ttft": ("time_to_first_token", "ttft"),
    "tpot": ("inter_token_latency", "itl"),
    "rate": ("output_token_throughput",),
    "input": ("input_sequence_length", "input_length", "isl"),
    "output": ("output_sequence_length", "output_length", "osl"),
    "latency": ("request_latency",),
    "served": ("request_throughput",),
    "count": ("request_count",),
    "errors": ("error_request_count",),
}
SUMMARY = "error_summary"
"""Kinds of errors with their counts: what versions without a record of the errors write."""
STATISTICS = {"avg": "mean", "p50": "p50", "p99": "p99"}
ARRIVALS = ("poisson", "constant", "gamma", "request_rate")
"""Phases that send at a rate."""


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the settings and a record of a time or a rate."""
    return isinstance(data.get("input_config"), Mapping) and any(
        _is_there(data, name) for name in ("ttft", "rate", "latency")
    )


def _is_there(data: Mapping[str, Any], name: str) -> bool:
    places = (place for key in RECORDS[name] for place in (data.get(key), inner(data, "records", key)))
    return any(isinstance(place, Mapping) for place in places)


def rows(file: Run, run: Run) -> list[ResultRow]:  # noqa: ARG001
    """Return the rows of one run, at its mean lengths."""
    if run.raw("was_cancelled") is True:
        raise run.refuse("the run was cancelled", "was_cancelled")
    _check_losses(run)
    version = run.text("aiperf_version")
    known = known_cells(
        date=iso_day(run.raw("start_time")),
        model=_model(run.inner("input_config").data),
        notes=notes(
            f"aiperf {version}" if version else "aiperf or genai-perf",
            "uniform lengths" if _is_uniform(run) else "mean lengths",
        ),
    )
    lengths = (_value(run, "input", "avg", TOKENS), _value(run, "output", "avg", TOKENS))
    metrics = {"output_tok_s_total": _metric(run, "rate", "avg", RATES)}
    for kind in ("ttft", "tpot"):
        metrics |= {f"{kind}_ms_{name}": _metric(run, kind, word, MILLISECONDS) for word, name in STATISTICS.items()}
    return loaded_rows(known, _load(run), lengths, metrics)


def _record(run: Run, name: str) -> Run:
    """Return a record under its name or an older one, from the top or from `records`; an empty one where there is none."""
    places = [
        keys for key in RECORDS[name] for keys in ((key,), ("records", key)) if inner(run.data, *keys) is not None
    ]
    return run.inner(*places[0]) if places else Run({}, run.path)


def _value(run: Run, name: str, statistic: str, units: Mapping[str, float]) -> float | None:
    record = _record(run, name)
    value = record.statistic(statistic)
    return None if value is None else value * record.one_of(units, "unit")


def _metric(run: Run, name: str, statistic: str, units: Mapping[str, float]) -> Metric:
    try:
        return _value(run, name, statistic, units)
    except Unusable as error:
        return error


def _check_losses(run: Run) -> None:
    failed, place = _value(run, "errors", "avg", REQUESTS), RECORDS["errors"][0]
    if failed is None and run.has(SUMMARY):
        failed, place = _summed_errors(run), SUMMARY
    if failed is not None:
        run.check_losses(failed, failed + (_value(run, "count", "avg", REQUESTS) or 0.0), place)


def _summed_errors(run: Run) -> float:
    """Return the number of errors in a list of their kinds. Raises `Unusable` for one without a count."""
    if not isinstance(run.raw(SUMMARY), list):
        raise run.refuse(f"`{SUMMARY}` is no list of errors with their counts", SUMMARY)
    kinds = run.runs(SUMMARY)
    uncounted = next((kind for kind in kinds if not kind.has("count")), None)
    if uncounted is not None:
        raise uncounted.refuse(f"`{SUMMARY}` has an error without a count")
    return sum(kind.count("count") for kind in kinds)


def _is_uniform(run: Run) -> bool:
    return all(_record(run, side).is_zero("std") for side in ("input", "output"))


def _load(run: Run) -> Load | None:
    config = run.inner("input_config")
    if inner(config.data, "input", "fixed_schedule") is True:
        raise config.refuse("requests follow a fixed schedule", "input", "fixed_schedule")
    if inner(config.data, "loadgen", "user_centric_rate") is not None:
        raise config.refuse("a rate for each user is not modelled", "loadgen", "user_centric_rate")
    if isinstance(config.raw("phases"), list):
        measured = [phase for phase in config.runs("phases") if phase.raw("exclude_from_results") is not True]
        if len(measured) != 1:
            raise config.refuse(f"{len(measured)} phases are measured together", "phases")
        return _phase_load(run, measured[0])
    for keys in (("loadgen",), ("perf_analyzer", "stimulus"), ()):
        if isinstance(inner(config.data, *keys), Mapping):
            place = config.inner(*keys)
            if place.raw("concurrency") or place.raw("request_rate"):
                return _given_load(run, place, "request_rate")
    return None


def _phase_load(run: Run, phase: Run) -> Load | None:
    kind = phase.text("type")
    if kind == "concurrency" or (kind in ARRIVALS and phase.raw("rate")):
        return _given_load(run, phase, "" if kind == "concurrency" else "rate")
    return None


def _given_load(run: Run, place: Run, rate_key: str) -> Load | None:
    bound = place.whole("concurrency")
    rate = place.number(rate_key) if rate_key else None
    if rate is None:
        return None if bound is None else closed_load(bound, _value(run, "count", "avg", REQUESTS))
    return open_load(rate, bound, Flight(_in_flight(run)))


def _in_flight(run: Run) -> float | None:
    """Return the mean number of requests in flight: their rate times their mean duration (Little's law)."""
    served = _value(run, "served", "avg", {"requests/sec": 1.0, "requests/s": 1.0})
    latency = ratio(_value(run, "latency", "avg", MILLISECONDS), 1e3)
    return None if served is None or latency is None else served * latency


def _model(config: Mapping[str, Any]) -> str:
    items = inner(config, "models", "items")
    names = [inner(item, "name") for item in items] if isinstance(items, list) else None
    return first_text((names, inner(config, "endpoint", "model_names"), config.get("model_names"), config.get("model")))
