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
from planner.physics.memory import weights_bytes
from planner.physics.types import Architecture, Device, Layout
from planner.validation.speed_engines import UNLIMITED, EngineClass, engine_class
from planner.validation.speed_formats import kv_format, weight_format
from planner.validation.start_up import MOST_GPUS, NotScored, UnknownArchitecture
from planner.validation.table import EXCESS, Row

MILLI = 1e-3
OFFLINE_REQUESTS = 3000.0
SHORT_OFFLINE_REQUESTS = 30_000.0
SHORT_TOKENS = 128.0
NOMINAL_SHARE = 0.9
"""Mean over nominal length where lengths are drawn from 0.8 to 1 of the nominal one."""
DEFAULT_PROMPTS = 1000.0
DEFAULT_PROMPT, DEFAULT_OUTPUT = 512.0, 128.0
MOST_COUNT = 4096
LEAST_COMPUTED = 0.1
"""Share of a prompt that is computed at least: the rest may come from a prefix cache."""
TOO_FAST = 2.0
STATED_SEQUENCES = ("closed_loop", "static_batch", "burst_all_at_once")  # there `load` bounds the sequences in flight
"""Real rows reach 1.5 times the datasheet's limit: embeddings are not streamed, and unstated layouts are guessed."""
RATES = frozenset({"rate", "static_rate", "decode", "prompt_rate"})
"""Statistics that fall when steps take longer."""
LEAST, MOST = 1e-9, 1e9
"""Range of every number in a row; what lies outside measures nothing, be it seconds, tokens, users or tokens/s."""
LOADED = ("closed_loop", "open_loop", "burst_all_at_once")
MLPERF_LENGTHS = {
    "llama2": (225.0, 291.0), "mixtral": (180.0, 146.0), "405b": (9400.0, 650.0), "8b": (870.0, 128.0), "r1": (800.0, 3700.0),
}  # fmt: skip
"""Assumed mean prompt and output of the MLPerf data sets, by a part of the model's name; the logs do not state prompts."""
_PLAIN = re.compile(r"[+-]?[0-9]{0,40}\.?[0-9]{0,40}(?:[eE][+-]?[0-9]{1,4})?(?<=[0-9.])(?<!^\.)")
_DISAGGREGATED = re.compile(
    r"prefill (?P<pn>\d{1,6})x\(tp(?P<pt>\d{1,6}) ep\d+ dpattn=(?P<pd>true|false)\).*decode (?P<dn>\d{1,6})x\(tp(?P<dt>\d{1,6}) ep\d+ dpattn=(?P<dd>true|false)\) on (?P<dg>\d{1,6})"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """What a row measures: the metric it is scored under and its statistic, in base units."""

    name: str
    statistic: str


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

    @property
    def combination(self) -> tuple[str, str, str, str]:
        """Engine class, GPU, model family kind and weight format: what one level correction is for."""
        return (self.engine.name, self.device.name, self.family, self.weights)


def target_of(scenario: str, metric: str) -> Target | None:
    """Return what a metric in a scenario is scored as (the table of the manual), None when it is not scored."""
    if (
        "unspecified" in metric
        or "spec_decode" in scenario
        or metric.startswith(("req_s", "total_tok", "e2e", "itl_fit"))
    ):
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
    if kind not in ("ttft", "tpot", "itl") or statistic not in ("mean", "p50", "p99"):
        return None
    name = "ttft" if kind == "ttft" else "tpot"
    return Target("tail_ms" if statistic == "p99" else f"{name}_ms", f"{name}_{statistic}")


def speed_row(row: Row, catalog: Catalog, number: int) -> SpeedRow:
    """Return a row as inputs. Raises `NotScored`: with `scorable` False where the row itself leaves too much open."""
    if EXCESS in row:
        raise NotScored("more cells than columns", scorable=True)
    scenario, metric = row.get("scenario", ""), row.get("metric", "")
    target = target_of(scenario, metric)
    if target is None:
        raise NotScored("metric without a defined statistic, or not modelled", scorable=False)
    value = _positive(row, "value")
    if value is None:
        raise NotScored("the value is no positive number", scorable=True)
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
    )
    placed = _with_layout(draft, row, devices)
    loaded = _with_load(_with_lengths(placed, row), row)
    if metric.endswith("per_gpu"):
        loaded = replace(loaded, value=loaded.value * (_gpus(row) * devices or _all_gpus(loaded)))
    return _checked(loaded)


def _checked(row: SpeedRow) -> SpeedRow:
    """Refuse what no machine can do, by the datasheet: reading the weights once a step, and two operations per weight and token.

    A step gives every sequence in flight one token at most, so that a throughput is bounded by both.
    """
    gpus = row.layout.gpus
    active = row.arch.n_params_active
    read_s = (
        weights_bytes(row.arch, Layout(), row.weights)
        * active
        / row.arch.n_params_total
        / (row.device.bandwidth_bytes_per_s * gpus)
    )
    token_s = 2.0 * active / (max(row.device.flops.values()) * gpus)
    statistic = row.target.statistic
    least_s = {"decode": read_s, "prompt": token_s * row.prompt_tokens, "prompt_rate": token_s}.get(statistic)
    if statistic.startswith("tpot"):
        least_s = read_s
    elif statistic in ("rate", "static_rate"):
        least_s = token_s / row.replicas
        if row.scenario in STATED_SEQUENCES:
            least_s = max(least_s, read_s / row.load)
    elif statistic.startswith("ttft") and row.prefill_layout is None:
        least_s = token_s * row.prompt_tokens * LEAST_COMPUTED
    if least_s is not None and _seconds(row) * TOO_FAST < least_s:
        raise NotScored("impossible: faster than the datasheet bandwidth or FLOP/s allow", scorable=False)
    return row


def _seconds(row: SpeedRow) -> float:
    return 1.0 / row.value if row.target.statistic in RATES else row.value


def _meant(kind: str, named: str, meaning: Callable[[str], Label]) -> Label:
    """Return what a label means. Raises `NotScored` for one that means nothing in the catalog."""
    try:
        label = meaning(named)
    except UnknownName:
        raise NotScored(f"{kind} {tidy(named)}: not in the catalog", scorable=True) from None
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


def _gpus(row: Row) -> int:
    """Return the stated number of GPUs, 0 where there is none."""
    return _degree(row, "n_gpus") or 0


def _all_gpus(row: SpeedRow) -> float:
    prefill = row.prefill_ranks * row.prefill_layout.gpus if row.prefill_layout else 0.0
    return row.layout.gpus * row.replicas + prefill


def _degree(row: Row, column: str) -> int | None:
    text = row.get(column, "")
    if not text:
        return None
    value = _positive(row, column)
    if value is None or value != int(value):
        raise NotScored(f"{column} is no count", scorable=True)
    return _count(text)


def _with_layout(row: SpeedRow, stated: Row, devices: int) -> SpeedRow:
    gpus = _gpus(stated) * devices
    tensor, pipeline = _degree(stated, "tp"), _degree(stated, "pp") or 1
    extra = stated.get("parallel_extra", "").casefold()
    split = _DISAGGREGATED.search(extra)
    if split:
        return _disaggregated(row, split)
    if "disagg" in extra:
        raise NotScored("layout of a disaggregated deployment is not readable", scorable=True)
    data = re.fullmatch(r"dep(\d{1,6})", extra)
    if data:
        ranks = _count(data[1])
        return _placed(row, Layout(attention_data=ranks, expert=ranks), gpus)
    if "layer split" in extra or (row.engine.name in ("llamacpp", "exllama") and gpus > 1 and tensor is None):
        return _placed(row, Layout(pipeline=max(gpus, 1)), gpus)
    if tensor is None:
        return _guessed(row, gpus, pipeline)
    if "dp_attention=true" in extra or "enable-dp-attention" in extra or _is_dense_free(row, stated, tensor):
        return _placed(row, Layout(attention_data=tensor, expert=tensor, pipeline=pipeline), gpus)
    return _placed(row, Layout(tensor, pipeline), gpus)


def _is_dense_free(row: SpeedRow, stated: Row, tensor: int) -> bool:
    """Tell whether a table prints TP for what its notes call attention-data parallelism."""
    return row.arch.is_moe and tensor > 1 and "attention_dp" in stated.get("notes", "").casefold()


def _placed(row: SpeedRow, layout: Layout, gpus: int) -> SpeedRow:
    if layout.gpus > MOST_GPUS:
        raise NotScored(f"more than {MOST_GPUS} GPUs in one replica", scorable=True)
    if gpus and gpus < layout.gpus:
        raise NotScored("the layout needs more GPUs than are stated", scorable=True)
    return replace(row, layout=layout, replicas=float(max(gpus // layout.gpus, 1)))


def _guessed(row: SpeedRow, gpus: int, pipeline: int) -> SpeedRow:
    """A table that names no layout ran the smallest power of two that leaves room for a cache, in copies."""
    tensor = 1
    while tensor * 2 <= max(gpus, 1) and tensor < 8 and not _roomy(row, tensor):
        tensor *= 2
    return _placed(row, Layout(tensor, pipeline), gpus)


def _roomy(row: SpeedRow, tensor: int) -> bool:
    try:
        return weights_bytes(row.arch, Layout(tensor), row.weights) < 0.6 * row.device.usable_bytes
    except ValueError as error:
        raise NotScored(str(error), scorable=True) from None


def _disaggregated(row: SpeedRow, split: re.Match[str]) -> SpeedRow:
    counts = {name: _count(split[name]) for name in ("pn", "pt", "dn", "dt", "dg")}
    decode = _half(counts["dt"], max(counts["dg"] // counts["dn"], 1), split["dd"] == "true")
    prefill = _half(counts["pt"], counts["pt"], split["pd"] == "true")
    placed = _placed(row, decode, decode.gpus * counts["dn"])
    return replace(placed, prefill_layout=prefill, prefill_ranks=float(counts["pn"]))


def _half(tensor: int, gpus: int, data: bool) -> Layout:
    return Layout(attention_data=gpus, expert=gpus) if data else Layout(tensor)


def _count(text: str) -> int:
    """Return a count of GPUs or replicas. Raises `NotScored` for zero and for more than anybody has in one deployment."""
    value = float(text)
    if not 1.0 <= value <= MOST_COUNT:
        raise NotScored(f"a layout needs 1 to {MOST_COUNT} GPUs or replicas", scorable=True)
    return int(value)


def _with_lengths(row: SpeedRow, stated: Row) -> SpeedRow:
    prompt, output = _positive(stated, "isl"), _positive(stated, "osl")
    if row.scenario.startswith("mlperf"):
        assumed = next(
            (pair for part, pair in MLPERF_LENGTHS.items() if part in stated["model"].casefold().replace("-", "")), None
        )
        prompt = prompt or (assumed[0] if assumed else None)
        output = output or (assumed[1] if assumed else None)
    needs_output = row.target.statistic not in ("prompt", "prompt_rate", "decode")
    if prompt is None and row.scenario != "batch1" and row.target.statistic != "decode":
        raise NotScored("no prompt length", scorable=False)
    if output is None and needs_output:
        raise NotScored("no output length", scorable=False)
    share = NOMINAL_SHARE if "range ratio 0.8" in stated.get("notes", "") else 1.0
    return replace(
        row,
        prompt_tokens=(prompt or DEFAULT_PROMPT) * share,
        output_tokens=max((output or DEFAULT_OUTPUT) * share, 1.0),
    )


def _with_load(row: SpeedRow, stated: Row) -> SpeedRow:
    users, batch, rate = (_positive(stated, c) for c in ("concurrency", "batch", "request_rate"))
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


def _prompts(stated: Row) -> float:
    found = re.search(r"(\d{1,9}) prompts", stated.get("notes", ""))
    return max(float(found[1]), 1.0) if found else DEFAULT_PROMPTS


def _equal_lengths(row: Row) -> bool:
    notes = row.get("notes", "").casefold()
    return "range ratio 1" in notes or "uniform lengths" in notes


def _positive(row: Row, column: str) -> float | None:
    text = row.get(column, "")
    if not _PLAIN.fullmatch(text):
        return None
    value = float(text)
    return value if LEAST <= value <= MOST else None
