"""What a measurement of speed is scored as: its scenario and metric, in the words of the manual."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from planner.source.nearest import nearest
from planner.validation.cells import NotScored, quoted

SCENARIOS = (
    "offline_max", "closed_loop", "open_loop", "burst_all_at_once", "static_batch", "batch1", "mlperf_offline",
    "mlperf_server", "mlperf_interactive",
)  # fmt: skip
LOADED = ("closed_loop", "open_loop", "burst_all_at_once")
RATES = frozenset({"rate", "static_rate", "decode", "prompt_rate"})
"""Statistics that fall when steps take longer."""
_KINDS, _STATISTICS = ("ttft", "tpot", "itl"), ("mean", "p50", "p99")
LATENCIES = tuple(f"{kind}_ms_{statistic}" for kind in _KINDS for statistic in _STATISTICS)
METRICS = (
    "output_tok_s_total", "output_tok_s_per_gpu", "batch_latency_s", "decode_tok_s_batch1", "prefill_ms", "ttft_ms_batch1",
    "prefill_tok_s", *LATENCIES,
)  # fmt: skip
"""Every metric that is scored in some scenario."""
ELSEWHERE = ("req_s", "total_tok", "e2e", "itl_fit")
"""How metrics begin that tables have and the speed model does not answer."""

LEAST_ALIKE = 0.85
"""Metrics are made of the same parts, so that a lower likeness is chance."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a row measures: the metric it is scored under and its statistic, in base units."""

    name: str
    statistic: str


def scored_target(scenario: str, metric: str) -> Target:
    """Return what a row is scored as. Raises `NotScored` with the nearest legal spelling where a word is not known."""
    for kind, word in (("scenario", scenario), ("metric", metric)):
        if not word:
            raise NotScored(f"no {kind} is named", scorable=False)
    if "spec_decode" in scenario:
        raise NotScored("speculative decoding is not modelled", scorable=False)
    if scenario not in SCENARIOS:
        raise NotScored(f"unknown scenario {quoted(scenario)}; {_legal(scenario, SCENARIOS)}", scorable=False)
    target = target_of(scenario, metric)
    if target is not None:
        return target
    shown = quoted(metric)
    if metric in METRICS:
        raise NotScored(f"metric {shown} is not scored in scenario {scenario}", scorable=False)
    close = _meant_metric(metric)
    hint = f"; did you mean `{close}`?" if close else ""
    raise NotScored(f"metric {shown} is without a defined statistic, or not modelled{hint}", scorable=False)


def _legal(word: str, legal: tuple[str, ...]) -> str:
    close = nearest(word, legal)
    return f"did you mean `{close}`?" if close else f"known: {', '.join(legal)}"


def _meant_metric(word: str) -> str | None:
    """Return the metric that a word is a slip of: all but a letter or two, and not another percentile."""
    if "unspecified" in word or word.startswith(ELSEWHERE):
        return None
    close = nearest(word, METRICS)
    if close is None or SequenceMatcher(None, word, close).ratio() < LEAST_ALIKE or _letters(word) == _letters(close):
        return None
    return close


def _letters(word: str) -> str:
    return re.sub(r"\d", "", word)


def target_of(scenario: str, metric: str) -> Target | None:
    """Return what a metric in a scenario is scored as (the table of the manual), None when it is not scored."""
    if "unspecified" in metric or "spec_decode" in scenario or metric.startswith(ELSEWHERE):
        return None
    if metric == "decode_tok_s_batch1":
        return Target("decode_tok_s_batch1", "decode")
    if metric in ("prefill_ms", "ttft_ms_batch1"):
        return Target("prefill", "prompt")
    if metric == "prefill_tok_s":
        return Target("prefill", "prompt_rate")
    if scenario.startswith("mlperf"):
        return _mlperf_target(scenario, metric)
    rate = metric in ("output_tok_s_total", "output_tok_s_per_gpu")
    if rate and scenario in ("offline_max", "closed_loop"):
        return Target("output_tok_s_offline" if scenario == "offline_max" else "output_tok_s_closed_loop", "rate")
    if scenario == "static_batch" and (rate or metric == "batch_latency_s"):
        return Target("static_latency", "static_rate" if rate else "static")
    if scenario in LOADED:
        return _latency_target(metric)
    return None


def _mlperf_target(scenario: str, metric: str) -> Target | None:
    if metric.startswith("output_tok_s"):
        return Target("mlperf_offline", "rate") if scenario == "mlperf_offline" else None
    latency = _latency_target(metric)
    return Target("mlperf_latency", latency.statistic) if latency else None


def _latency_target(metric: str) -> Target | None:
    kind, _, statistic = metric.partition("_ms_")
    if kind not in _KINDS or statistic not in _STATISTICS:
        return None
    name = "ttft" if kind == "ttft" else "tpot"
    return Target("tail_ms" if statistic == "p99" else f"{name}_ms", f"{name}_{statistic}")
