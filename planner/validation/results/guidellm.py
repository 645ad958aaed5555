"""guidellm `benchmarks.json`: one entry for each load of a profile, a sweep among them; versions 0.2 to 0.8.

Up to 0.3 the strategy is under `args` and the model under `worker`, later both are under `config`. TPOT is read from
`inter_token_latency_ms`, a mean per request without the first token; what guidellm calls time per output token has
counted the first token since 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import (
    Flight,
    Load,
    closed_load,
    day,
    fields,
    first_text,
    inner,
    known_cells,
    loaded_rows,
    notes,
    number,
    open_load,
    text,
    whole,
)

NAME = "guidellm"
NEEDS = (
    "benchmarks with metrics of successful requests, token counts and a strategy synchronous, concurrent, throughput with "
    "max_concurrency, or a rate that max_concurrency does not limit"
)
KINDS = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by a list of benchmarks with metrics."""
    entries = data.get("benchmarks")
    return isinstance(entries, list) and any(isinstance(fields(entry).get("metrics"), Mapping) for entry in entries)


def rows(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of all benchmarks, each at its mean lengths."""
    entries = data.get("benchmarks")
    return [row for entry in entries for row in _rows(data, fields(entry))] if isinstance(entries, list) else []


def _rows(data: Mapping[str, Any], entry: Mapping[str, Any]) -> list[dict[str, str]]:
    strategy = _strategy(entry)
    version = text(inner(data, "metadata", "guidellm_version"))
    known = known_cells(
        date=day(entry.get("start_time")) or day(inner(entry, "run_stats", "start_time")),
        model=_model(data, entry),
        notes=notes(
            f"guidellm {version}".strip(),
            f"strategy {_kind(strategy)}",
            "uniform lengths" if _is_uniform(entry) else "mean lengths",
        ),
    )
    lengths = (_statistic(entry, "prompt_token_count", "mean"), _statistic(entry, "output_token_count", "mean"))
    metrics = {"output_tok_s_total": _statistic(entry, "output_tokens_per_second", "mean")}
    for kind, metric in KINDS.items():
        metrics |= {
            f"{kind}_ms_mean": _statistic(entry, metric, "mean"),
            f"{kind}_ms_p50": _statistic(entry, metric, "median") or _percentile(entry, metric, "p50"),
            f"{kind}_ms_p99": _percentile(entry, metric, "p99"),
        }
    return loaded_rows(known, _load(entry, strategy), lengths, metrics)


def _load(entry: Mapping[str, Any], strategy: Mapping[str, Any]) -> Load | None:
    """Return the load of a strategy.

    Versions since 0.4 write the bound of the tool into `max_concurrency` of every strategy, whether it binds or not.
    """
    kind, bound = _kind(strategy), whole(strategy.get("max_concurrency"))
    if kind == "synchronous":
        return Load("closed_loop", concurrency=1.0)
    if kind == "concurrent":
        streams = whole(strategy.get("streams"))
        return None if streams is None else closed_load(streams, _requests(entry))
    if kind == "throughput":
        return None if bound is None else closed_load(bound, _requests(entry))
    if kind in ("constant", "poisson"):
        flight = Flight(*(number(inner(entry, "metrics", "request_concurrency", "total", s)) for s in ("mean", "max")))
        return open_load(number(strategy.get("rate")), bound, flight)
    return None


def _strategy(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    places = (inner(entry, place, "strategy") for place in ("config", "args", "scheduler"))
    return next((place for place in places if isinstance(place, Mapping)), {})


def _kind(strategy: Mapping[str, Any]) -> str:
    return text(strategy.get("type_")) or text(strategy.get("kind"))


def _requests(entry: Mapping[str, Any]) -> float | None:
    """Return the number of requests sent, of whatever outcome."""
    places = (("metrics", "request_totals"), ("scheduler_metrics", "requests_made"), ("run_stats", "requests_made"))
    counts = (whole(inner(entry, *place, "total")) for place in (*places, ("request_totals",)))
    return next((count for count in counts if count is not None), None)


def _model(data: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    return first_text(
        (
            inner(entry, "config", "backend", "model"),
            inner(entry, "worker", "backend_model"),
            inner(entry, "benchmarker", "backend", "model"),
            inner(data, "args", "backend_kwargs", "model"),
            inner(data, "args", "model"),
        )
    )


def _statistic(entry: Mapping[str, Any], metric: str, name: str) -> float | None:
    return number(inner(entry, "metrics", metric, "successful", name))


def _percentile(entry: Mapping[str, Any], metric: str, name: str) -> float | None:
    return number(inner(entry, "metrics", metric, "successful", "percentiles", name))


def _is_uniform(entry: Mapping[str, Any]) -> bool:
    """Tell whether all prompts and all outputs had one length. A plain 0 is no `number`, and here it is what counts."""
    spread = [inner(entry, "metrics", f"{side}_token_count", "successful", "std_dev") for side in ("prompt", "output")]
    return all(isinstance(value, int | float) and not isinstance(value, bool) and value == 0 for value in spread)
