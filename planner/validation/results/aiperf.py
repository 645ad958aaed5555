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
    closed_load,
    fields,
    first_text,
    inner,
    iso_day,
    known_cells,
    loaded_rows,
    notes,
    number,
    open_load,
    ratio,
    text,
    whole,
)

NAME = "aiperf or genai-perf"
NEEDS = (
    "the records time_to_first_token, inter_token_latency or output_token_throughput with their units, mean input and "
    "output sequence lengths, and in input_config one concurrency, or one request rate that a concurrency does not limit"
)
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
}
STATISTICS = {"avg": "mean", "p50": "p50", "p99": "p99"}
ARRIVALS = ("poisson", "constant", "gamma", "request_rate")
"""Phases that send at a rate."""


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the settings and a record of a time or a rate."""
    return isinstance(data.get("input_config"), Mapping) and any(
        _record(data, name) for name in ("ttft", "rate", "latency")
    )


def rows(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of one run, at its mean lengths; none for a run that was cancelled."""
    if data.get("was_cancelled") is True:
        return []
    version = text(data.get("aiperf_version"))
    known = known_cells(
        date=iso_day(data.get("start_time")),
        model=_model(fields(data.get("input_config"))),
        notes=notes(
            f"aiperf {version}" if version else "aiperf or genai-perf",
            "uniform lengths" if _is_uniform(data) else "mean lengths",
        ),
    )
    lengths = (_value(data, "input", "avg", TOKENS), _value(data, "output", "avg", TOKENS))
    metrics = {"output_tok_s_total": _value(data, "rate", "avg", RATES)}
    for kind in ("ttft", "tpot"):
        metrics |= {f"{kind}_ms_{name}": _value(data, kind, word, MILLISECONDS) for word, name in STATISTICS.items()}
    return loaded_rows(known, _load(data), lengths, metrics)


def _record(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a record under its name or an older one, from the top or from `records`; an empty one where there is none."""
    places = (place for key in RECORDS[name] for place in (data.get(key), inner(data, "records", key)))
    return next((place for place in places if isinstance(place, Mapping)), {})


def _value(data: Mapping[str, Any], name: str, statistic: str, units: Mapping[str, float]) -> float | None:
    record = _record(data, name)
    factor, value = units.get(text(record.get("unit"))), number(record.get(statistic))
    return None if factor is None or value is None else value * factor


def _is_uniform(data: Mapping[str, Any]) -> bool:
    spread = [_record(data, side).get("std") for side in ("input", "output")]
    return all(isinstance(value, int | float) and not isinstance(value, bool) and value == 0 for value in spread)


def _load(data: Mapping[str, Any]) -> Load | None:
    config = fields(data.get("input_config"))
    if inner(config, "input", "fixed_schedule") is True or inner(config, "loadgen", "user_centric_rate") is not None:
        return None
    phases = config.get("phases")
    if isinstance(phases, list):
        measured = [fields(phase) for phase in phases if fields(phase).get("exclude_from_results") is not True]
        return _phase_load(data, measured[0]) if len(measured) == 1 else None
    for place in (config.get("loadgen"), inner(config, "perf_analyzer", "stimulus"), config):
        if isinstance(place, Mapping) and (place.get("concurrency") or place.get("request_rate")):
            return _given_load(data, place.get("concurrency"), place.get("request_rate"))
    return None


def _phase_load(data: Mapping[str, Any], phase: Mapping[str, Any]) -> Load | None:
    kind = text(phase.get("type"))
    if kind == "concurrency":
        return _given_load(data, phase.get("concurrency"), None)
    return (
        _given_load(data, phase.get("concurrency"), phase.get("rate"))
        if kind in ARRIVALS and phase.get("rate")
        else None
    )


def _given_load(data: Mapping[str, Any], users: object, rate: object) -> Load | None:
    bound = whole(users)
    if users is not None and bound is None:
        return None
    if rate is None:
        return None if bound is None else closed_load(bound, _value(data, "count", "avg", REQUESTS))
    return open_load(number(rate), bound, Flight(_in_flight(data)))


def _in_flight(data: Mapping[str, Any]) -> float | None:
    """Return the mean number of requests in flight: their rate times their mean duration (Little's law)."""
    served = _value(data, "served", "avg", {"requests/sec": 1.0, "requests/s": 1.0})
    latency = ratio(_value(data, "latency", "avg", MILLISECONDS), 1e3)
    return None if served is None or latency is None else served * latency


def _model(config: Mapping[str, Any]) -> str:
    items = inner(config, "models", "items")
    names = [fields(item).get("name") for item in items] if isinstance(items, list) else None
    return first_text((names, inner(config, "endpoint", "model_names"), config.get("model_names"), config.get("model")))
