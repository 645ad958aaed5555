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
    ResultRow,
    closed_load,
    day,
    first_text,
    inner,
    known_cells,
    loaded_rows,
    notes,
    open_load,
)
from planner.validation.result_run import Run

NAME = "guidellm"
NEEDS = (
    "benchmarks with metrics of successful requests, token counts and a strategy synchronous, concurrent, throughput with "
    "max_concurrency, or a rate that max_concurrency does not limit"
)
RUNS = "benchmarks"
KINDS = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by a list of benchmarks with metrics."""
    entries = data.get("benchmarks")
    return isinstance(entries, list) and any(isinstance(inner(entry, "metrics"), Mapping) for entry in entries)


def rows(file: Run, run: Run) -> list[ResultRow]:
    """Return the rows of one benchmark, at its mean lengths."""
    strategy = _strategy(run)
    _check_losses(run)
    version = file.inner("metadata").text("guidellm_version")
    known = known_cells(
        date=day(run.raw("start_time")) or day(inner(run.data, "run_stats", "start_time")),
        model=_model(file.data, run.data),
        notes=notes(
            f"guidellm {version}".strip(),
            f"strategy {_kind(strategy)}",
            "uniform lengths" if _is_uniform(run) else "mean lengths",
        ),
    )
    lengths = (run.number(*_of("prompt_token_count"), "mean"), run.number(*_of("output_token_count"), "mean"))
    metrics = {"output_tok_s_total": run.metric(*_of("output_tokens_per_second"), "mean")}
    for kind, metric in KINDS.items():
        metrics |= {
            f"{kind}_ms_mean": run.metric(*_of(metric), "mean"),
            f"{kind}_ms_p50": run.metric(*_of(metric), "median") or run.metric(*_of(metric), "percentiles", "p50"),
            f"{kind}_ms_p99": run.metric(*_of(metric), "percentiles", "p99"),
        }
    return loaded_rows(known, _load(run, strategy), lengths, metrics)


def _of(metric: str) -> tuple[str, str, str]:
    return ("metrics", metric, "successful")


def _load(run: Run, strategy: Run) -> Load | None:
    """Return the load of a strategy.

    Versions since 0.4 write the bound of the tool into `max_concurrency` of every strategy, whether it binds or not.
    """
    kind, bound = _kind(strategy), strategy.whole("max_concurrency")
    if kind == "synchronous":
        return Load("closed_loop", concurrency=1.0)
    if kind == "concurrent":
        streams = strategy.whole("streams")
        return None if streams is None else closed_load(streams, _requests(run))
    if kind == "throughput":
        return None if bound is None else closed_load(bound, _requests(run))
    if kind in ("constant", "poisson"):
        in_flight = (run.statistic("metrics", "request_concurrency", "total", name) for name in ("mean", "max"))
        return open_load(strategy.number("rate"), bound, Flight(*in_flight))
    return None


def _strategy(run: Run) -> Run:
    places = (place for place in ("config", "args", "scheduler") if inner(run.data, place, "strategy") is not None)
    found = next(places, None)
    return run.inner(found, "strategy") if found is not None else Run({}, run.path)


def _kind(strategy: Run) -> str:
    return strategy.text("type_") or strategy.text("kind")


TOTALS = (
    ("metrics", "request_totals"), ("scheduler_metrics", "requests_made"), ("run_stats", "requests_made"),
    ("request_totals",),
)  # fmt: skip
"""Where versions count requests by outcome; the sum is `total`, those that failed `errored`."""


def _requests(run: Run) -> float | None:
    """Return the number of requests sent, of whatever outcome."""
    place = _totals(run)
    return None if place is None else run.whole(*place, "total")


def _totals(run: Run) -> tuple[str, ...] | None:
    return next((place for place in TOTALS if inner(run.data, *place, "total") is not None), None)


def _check_losses(run: Run) -> None:
    """Refuse a benchmark of many errors. Requests that its end cut off are no failures."""
    place = _totals(run)
    if place is not None and run.has(*place, "errored"):
        run.check_losses(run.count(*place, "errored"), run.count(*place, "total"), *place, "errored")


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


def _is_uniform(run: Run) -> bool:
    """Tell whether all prompts and all outputs had one length."""
    return all(run.is_zero(*_of(f"{side}_token_count"), "std_dev") for side in ("prompt", "output"))
