"""One published measurement of speed as inputs of the speed model: what the row states, and named defaults for blanks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner.catalog import Catalog, UnknownName
from planner.catalog.canonical import tidy
from planner.catalog.labels import Label
from planner.physics.attention import family_of
from planner.physics.bands import family_kind
from planner.physics.memory import UnknownArchitecture
from planner.physics.types import Architecture, Device, Layout
from planner.validation.cells import PLACE, Kind, NotScored, Row, parsed, quoted, refuse_unreadable
from planner.validation.cells import number as cell
from planner.validation.impossible import check_length
from planner.validation.skips import name_reason
from planner.validation.speed_engines import UNLIMITED, EngineClass, engine_class, is_date
from planner.validation.speed_formats import is_kv_word, kv_format, weight_format
from planner.validation.speed_layouts import all_gpus, stated_gpus, with_layout
from planner.validation.speed_limits import check_fits, check_speed
from planner.validation.speed_targets import Target, scored_target

MILLI = 1e-3
OFFLINE_REQUESTS = 3000.0
SHORT_OFFLINE_REQUESTS = 30_000.0
SHORT_TOKENS = 128.0
NOMINAL_SHARE = 0.9
"""Mean over nominal length where lengths are drawn from 0.8 to 1 of the nominal one."""
DEFAULT_PROMPTS = 1000.0
DEFAULT_PROMPT, DEFAULT_OUTPUT = 512.0, 128.0
VALUE = Kind("positive number", 1e-9, 1e9)
"""What lies outside measures nothing, be it seconds or tokens/s."""
LENGTH = Kind("length in tokens", 1.0, 1e9)
USERS = Kind("number of requests in flight", 0.0, 1e7, above=True)
BATCH = Kind("batch", 0.0, 1e6, above=True)
RATE = Kind("rate of requests per second", 0.0, 1e6, above=True)
UNBOUNDED = ("inf", "infinity")
"""Request rates of tools that send everything at once."""
MLPERF_LENGTHS = {
    "llama2": (225.0, 291.0), "mixtral": (180.0, 146.0), "405b": (9400.0, 650.0), "8b": (870.0, 128.0), "r1": (800.0, 3700.0),
}  # fmt: skip
"""Assumed mean prompt and output of the MLPerf data sets, by a part of the model's name; the logs do not state prompts."""


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """Inputs and measured value of one row; `value` is in seconds or tokens/s of the whole deployment.

    `load` is users (closed loop), requests (offline, burst), requests/s (open loop) or sequences (static), over all
    `replicas`; an open loop ends after `requests`. `prefill_ranks` of `prefill_layout` compute prompts where other GPUs do.
    """

    row: int
    source: str
    gpu: str
    arch: Architecture
    family: str
    device: Device
    layout: Layout
    replicas: float
    weights: str
    kv: str
    engine: EngineClass
    scenario: str
    target: Target
    value: float
    prompt_tokens: float
    output_tokens: float
    load: float
    max_sequences: float
    equal_lengths: bool
    requests: float = DEFAULT_PROMPTS
    prefill_ranks: float = 0.0
    prefill_layout: Layout | None = field(default=None)
    place: str = ""

    @property
    def combination(self) -> tuple[str, str, str, str]:
        """Engine class, GPU, model family kind and weight format: what one level correction is for."""
        return (self.engine.name, self.device.name, self.family, self.weights)


def speed_row(row: Row, catalog: Catalog, number: int) -> SpeedRow:
    """Return a row as inputs. Raises `NotScored`: with `scorable` False where the row itself leaves too much open."""
    refuse_unreadable(row)
    scenario, metric = row.get("scenario", ""), row.get("metric", "")
    target = scored_target(scenario, metric)
    value = cell(row, "value", VALUE)
    if value is None:
        raise NotScored("no value is stated", scorable=True)
    if row.get("date", "") and not is_date(row["date"]):
        raise NotScored(f"date {quoted(row['date'])} is no date (as in 2025-11)", scorable=True)
    device, devices = _device(row, catalog)
    arch = _architecture(row, catalog)
    engine = engine_class(row.get("engine", ""), row.get("date", ""), device.vendor, arch.is_moe)
    if engine is None:
        raise NotScored(
            f"engine {tidy(row.get('engine', '')) or 'not named (--engine)'}: no class of the speed model",
            scorable=True,
        )
    weights = _weights(row, arch)
    draft = SpeedRow(
        row=number,
        source=tidy(row.get("source", "")),
        gpu=tidy(row.get("gpu", "")),
        arch=arch,
        family=family_kind(arch),
        device=device,
        layout=Layout(),
        replicas=1.0,
        weights=weights,
        kv=_kv(row, weights, engine, device, arch, scenario),
        engine=engine,
        scenario=scenario,
        target=target,
        value=value * (MILLI if "_ms" in metric else 1.0),
        prompt_tokens=1.0,
        output_tokens=1.0,
        load=1.0,
        max_sequences=engine.max_sequences,
        equal_lengths=_equal_lengths(row),
        place=row.get(PLACE, ""),
    )
    placed = with_layout(draft, row, devices)
    check_fits(placed, row, devices)
    loaded = _with_load(_with_lengths(placed, row), row)
    if metric.endswith("per_gpu"):
        loaded = replace(loaded, value=loaded.value * (stated_gpus(row) * devices or all_gpus(loaded)))
    check_speed(loaded)
    return loaded


def _meant(kind: str, named: str, meaning: Callable[[str], Label]) -> Label:
    """Return what a label means. Raises `NotScored` for one that means nothing in the catalog."""
    try:
        label = meaning(named)
    except UnknownName as error:
        raise NotScored(name_reason(kind, named, error), scorable=True) from None
    if label.absent:
        raise NotScored(f"{kind} {tidy(named)}: {label.absent}", scorable=True)
    return label


def _device(row: Row, catalog: Catalog) -> tuple[Device, int]:
    named = row.get("gpu", "")
    if not named:
        raise NotScored("no GPU is named (--gpu)", scorable=False)
    label = _meant("GPU", named, catalog.gpu_label)
    return catalog.gpu(label.gpu).device(), label.devices


def _architecture(row: Row, catalog: Catalog) -> Architecture:
    named = row.get("model", "")
    if not named:
        raise NotScored("no model is named (--model)", scorable=False)
    if row.get("model_inferred", "").casefold() in {"yes", "true", "1"}:
        raise NotScored("the model is inferred, nobody named it", scorable=False)
    arch = catalog.architecture(_meant("model", named, catalog.model_label).name)
    try:
        family_of(arch)
    except UnknownArchitecture as error:
        raise NotScored(str(error), scorable=True) from None
    return arch


def _weights(row: Row, arch: Architecture) -> str:
    stated = row.get("weight_dtype", "")
    if not stated:
        return arch.native_format
    found = weight_format(stated)
    if found is None:
        raise NotScored(f"weight format {tidy(stated.casefold())}: not known", scorable=True)
    return arch.native_format if found == "bf16" and arch.native_format in ("bf16", "fp16") else found


def _kv(row: Row, weights: str, engine: EngineClass, device: Device, arch: Architecture, scenario: str) -> str:
    """Return the cache format; unstated: 8 bits where an engine's builds of that time quantise it (see the manual)."""
    stated = row.get("kv_dtype", "")
    if stated and not is_kv_word(stated):
        raise NotScored(f"KV format {tidy(stated.casefold())}: not known", scorable=True)
    if stated:
        return kv_format(stated)
    narrow = weights not in ("bf16", "fp16", "fp32")
    if engine.name.startswith("trt") and narrow and weights != "mxfp4":
        return "fp8"
    if scenario.startswith("mlperf") and device.vendor == "AMD":
        return "fp8"
    if arch.is_mla and weights in ("nvfp4", "mxfp4") and "fp4" in device.flops:
        return "fp8"
    if weights == "mxfp4" and device.name.startswith("B200"):
        return "fp8"
    return "bf16"


def _with_lengths(row: SpeedRow, stated: Row) -> SpeedRow:
    needs_prompt = row.target.statistic != "decode"
    needs_output = row.target.statistic not in ("prompt", "prompt_rate", "decode")
    prompt, output = _length(stated, "isl", needs_prompt), _length(stated, "osl", needs_output)
    share = NOMINAL_SHARE if "range ratio 0.8" in stated.get("notes", "") else 1.0
    check_length(row.arch, ((prompt or 0.0) + (output or 0.0)) * share, "prompt and output")
    if row.scenario.startswith("mlperf"):
        assumed = next(
            (pair for part, pair in MLPERF_LENGTHS.items() if part in stated["model"].casefold().replace("-", "")), None
        )
        prompt = prompt or (assumed[0] if assumed else None)
        output = output or (assumed[1] if assumed else None)
    if prompt is None and row.scenario != "batch1" and needs_prompt:
        raise NotScored("no prompt length (isl)", scorable=False)
    if output is None and needs_output:
        raise NotScored("no output length (osl)", scorable=False)
    return replace(
        row,
        prompt_tokens=(prompt or DEFAULT_PROMPT) * share,
        output_tokens=max((output or DEFAULT_OUTPUT) * share, 1.0),
    )


def _length(stated: Row, column: str, is_needed: bool) -> float | None:
    """Return a length, None for a blank. Where none is needed 0 is one: a decode may start from an empty cache."""
    is_none = not is_needed and parsed(stated.get(column, "")) == 0.0
    return None if is_none else cell(stated, column, LENGTH)


def _with_load(row: SpeedRow, stated: Row) -> SpeedRow:
    users, batch, rate = cell(stated, "concurrency", USERS), cell(stated, "batch", BATCH), _rate(stated)
    if row.scenario == "closed_loop":
        if users is None:
            raise NotScored("no concurrency", scorable=False)
        # A harness that holds a concurrency sets the engine's batch limit to it.
        limit = UNLIMITED if row.engine.reserving or row.engine.name in ("atom", "sglang_new") else row.max_sequences
        return replace(row, load=users, max_sequences=limit)
    if row.scenario in ("offline_max", "mlperf_offline"):
        short = row.prompt_tokens <= SHORT_TOKENS and row.output_tokens <= SHORT_TOKENS
        requests = users or (SHORT_OFFLINE_REQUESTS if short else OFFLINE_REQUESTS)
        if row.scenario == "mlperf_offline":
            requests = SHORT_OFFLINE_REQUESTS * row.replicas
        return replace(row, load=requests)
    if row.scenario == "static_batch":
        if batch is None:
            raise NotScored("no batch", scorable=False)
        return replace(row, load=batch)
    if row.scenario == "burst_all_at_once":
        return replace(row, load=users or _prompts(stated))
    if row.scenario in ("open_loop", "mlperf_server", "mlperf_interactive"):
        if rate is None:
            raise NotScored("no request rate", scorable=False)
        return replace(row, load=rate, requests=_prompts(stated))
    return replace(row, load=batch or users or 1.0)


def _rate(stated: Row) -> float | None:
    is_unbounded = stated.get("request_rate", "").casefold() in UNBOUNDED
    return None if is_unbounded else cell(stated, "request_rate", RATE)


def _prompts(stated: Row) -> float:
    found = re.search(r"(\d{1,9}) prompts", stated.get("notes", ""))
    return max(float(found[1]), 1.0) if found else DEFAULT_PROMPTS


def _equal_lengths(row: Row) -> bool:
    notes = row.get("notes", "").casefold()
    return "range ratio 1" in notes or "uniform lengths" in notes
