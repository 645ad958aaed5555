"""Flags of `planner estimate`, and the reading of their values. Every mistake is one line that names its flag."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

import typer

from planner.cli import grid
from planner.cli.options import flag
from planner.cli.size_options import listed_flag
from planner.cli.streams import usage_error
from planner.estimate.answer import Load, LoadKind, Search
from planner.estimate.deployment import DEFAULT_CONFIDENCE
from planner.physics.memory import TARGETS, Lora
from planner.units import UnitError, parse_quantity

LEAST_RATE = 1e-6
MOST_RATE = 1e9
MOST_TOKENS = 10**9
MOST_SEQUENCES = 65_536
LEAST_CONFIDENCE = 0.5
MOST_MEDIA = 10_000
LEAST_UTILIZATION = 0.01
LEAST_TIME_S = 1e-6
MOST_TIME_S = 1e6
BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


ModelOption = Annotated[
    str, flag("--model", "Model of the catalog, or the path of a config.json.", metavar="NAME|FILE", show_default=False)
]
GpuOption = Annotated[str, flag("--gpu", "GPU of the catalog.", metavar="NAME", show_default=False)]
TpOption = Annotated[str | None, listed_flag("--tp", "Tensor parallelism; default: 1.", "N")]
PpOption = Annotated[str, flag("--pp", "Pipeline stages.", metavar="N")]
EpOption = Annotated[str, flag("--ep", "Expert parallelism: 1, or all GPUs of a stage.", metavar="N")]
DpOption = Annotated[str, flag("--dp", "Attention data parallelism of mixture-of-experts models.", metavar="N")]
DcpOption = Annotated[
    str, flag("--dcp", "Decode context parallelism: ranks that share copies of the cache.", metavar="N")
]
WeightsOption = Annotated[
    str | None, listed_flag("--weights", "Weight format; default: the model's native one.", "FORMAT")
]
KvOption = Annotated[str | None, listed_flag("--kv", "KV format; default: bf16.", "FORMAT")]
InputOption = Annotated[str | None, listed_flag("--input", "Prompt tokens of a request; default: 1024.", "N")]
OutputOption = Annotated[str | None, listed_flag("--output", "Generated tokens of a request; default: 256.", "N")]
BatchOption = Annotated[
    str | None, listed_flag("--batch", "Load: one decode step of so many sequences, or all that fit; default: 1.", "N")
]
ConcurrencyOption = Annotated[
    str | None, listed_flag("--concurrency", "Load: so many requests in flight, each followed by the next.", "N")
]
RateOption = Annotated[
    str | None, listed_flag("--rate", "Load: requests per second on one replica: 3, 90 req/min.", "RATE")
]
MaxOption = Annotated[bool, flag("--max", "Load: the largest rate that one replica bears.")]
EngineOption = Annotated[str, flag("--engine", "Serving engine.", metavar="NAME")]
VersionOption = Annotated[
    str | None, listed_flag("--engine-version", "Its release; default: the newest known.", "VERSION")
]
UtilizationOption = Annotated[
    str | None,
    listed_flag("--gpu-memory-utilization", "Memory fraction of the engine; default: the engine's own.", "SHARE"),
]
LengthOption = Annotated[
    str | None, listed_flag("--max-model-len", "Longest sequence; default: 32768, or the model's own if less.", "N")
]
SeqsOption = Annotated[str | None, listed_flag("--max-num-seqs", "Most sequences at once; default: the engine's.", "N")]
BatchedOption = Annotated[
    str | None, listed_flag("--max-num-batched-tokens", "Most tokens of a step; default: 8192.", "N")
]
ChunkedOption = Annotated[
    bool | None,
    typer.Option(
        "--chunked-prefill/--no-chunked-prefill",
        help="Whether prompts are split over steps; default: as the engine does.",
        envvar="PLANNER_CHUNKED_PREFILL",
        show_envvar=False,
        show_default=False,
    ),
]
BlockOption = Annotated[str | None, listed_flag("--block-size", "Tokens of a KV block; default: the engine's.", "N")]
ImagesOption = Annotated[str | None, listed_flag("--images", "Most images of a prompt; default: 1.", "N")]
VideosOption = Annotated[str | None, listed_flag("--videos", "Most videos of a prompt; default: 1.", "N")]
LorasOption = Annotated[str | None, listed_flag("--max-loras", "Adapters in memory at once.", "N")]
RankOption = Annotated[str | None, listed_flag("--lora-rank", "Rank of the adapters.", "N")]
TargetsOption = Annotated[
    str | None,
    listed_flag("--lora-targets", f"Projections with adapters: {','.join(TARGETS)}; default: all.", "NAME,..."),
]
DraftOption = Annotated[
    str | None, listed_flag("--draft", "Draft model of speculative decoding, in memory too.", "NAME|FILE")
]
ConfidenceOption = Annotated[
    str, flag("--confidence", "Share of such deployments that times hold for, from 50 %.", metavar="SHARE")
]
FindOption = Annotated[
    Search | None,
    typer.Option("--find", help="Search for a value, and describe the deployment there.", show_default=False),
]
TtftOption = Annotated[str | None, listed_flag("--ttft-p95", "Limit for --find max-rate: 2s.", "TIME")]
TpotOption = Annotated[str | None, listed_flag("--tpot-p95", "Limit for --find max-rate: 50ms.", "TIME")]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Add the parts of a step and where constants come from.")
]


def tokens(name: str, text: str | None, most: int = MOST_TOKENS) -> int | None:
    """Read a count of tokens or sequences, None for an absent flag."""
    if text is None:
        return None
    value = grid.single(name, text, grid.count)
    if value > most:
        usage_error(f"{name}: {grid.quoted(text)} is too many; legal: 1 to {most:,}")
    return value


def sequences(name: str, text: str | None) -> int | None:
    """Read how many sequences an engine may run at once."""
    return tokens(name, text, MOST_SEQUENCES)


def degree(name: str, text: str | None) -> int:
    """Read a degree of parallelism, 1 for an absent flag."""
    return tokens(name, text) or 1


def media(name: str, text: str | None) -> int | None:
    """Read a limit on images or videos, which may be zero."""
    if text is None:
        return None
    value = grid.single(name, text, grid.count_or_zero)
    if value > MOST_MEDIA:
        usage_error(f"{name}: {grid.quoted(text)} is too many; legal: 0 to {MOST_MEDIA:,}")
    return value


def utilization(name: str, text: str | None) -> float | None:
    """Read a memory fraction."""
    if text is None:
        return None
    value = _parsed(name, text, "ratio")
    if not LEAST_UTILIZATION <= value <= 1.0:
        usage_error(f"{name}: {grid.quoted(text)} is not a memory fraction; legal: {LEAST_UTILIZATION:g} to 1")
    return value


def block(name: str, text: str | None) -> int | None:
    """Read the tokens of a block."""
    value = tokens(name, text)
    if value is not None and value not in BLOCK_SIZES:
        usage_error(f"{name}: {value} is no block size; legal: {', '.join(map(str, BLOCK_SIZES))}")
    return value


def confidence(name: str, text: str) -> float:
    """Read a confidence, within the bounds of a spec."""
    value = _parsed(name, text, "share")
    if not LEAST_CONFIDENCE <= value < 1.0:
        usage_error(f"{name}: {grid.quoted(text)} is no confidence; legal: at least 50 % and below 100 %")
    return value


def lora(max_loras: str | None, rank: str | None, targets: str | None) -> Lora | None:
    """Read the adapters. Leaves when only a part of them is given."""
    if max_loras is None and rank is None and targets is None:
        return None
    count, width = tokens("--max-loras", max_loras), tokens("--lora-rank", rank)
    if count is None:
        usage_error("--max-loras is missing: adapters need --max-loras N and --lora-rank N")
    if width is None:
        usage_error("--lora-rank is missing: adapters need --max-loras N and --lora-rank N")
    named = grid.items("--lora-targets", targets, lambda f, item: grid.one_of(TARGETS)(f, item.removesuffix("_proj")))
    return Lora(count, width, tuple(dict.fromkeys(named)) or TARGETS)


def leave_out_searched(search: Search | None, given: dict[str, str | None], shares: bool) -> None:
    """Leave when a flag states what a search looks for. `shares`: other degrees depend on the tensor parallelism."""
    flag_of = {Search.MAX_MODEL_LEN: "--max-model-len"} | ({} if shares else {Search.MIN_TP: "--tp"})
    name = None if search is None else flag_of.get(search)
    if name is not None and given[name] is not None:
        usage_error(f"{name}: --find {search} searches for it: leave it out")


def load(
    batch: str | None,
    concurrency: str | None,
    rate: str | None,
    at_most: bool,
    sure: str,
    search: Search | None,
    limits: dict[str, str | None],
) -> Load:
    """Read the load: one of the flags, or none. Leaves when several are given, or limits without their search."""
    given = [
        n
        for n, v in (("--batch", batch), ("--concurrency", concurrency), ("--rate", rate), ("--max", at_most or None))
        if v is not None
    ]
    if len(given) > 1:
        usage_error(f"{given[1]}: give one load, not {' and '.join(given)}")
    if given and search in (Search.MAX_RATE, Search.MAX_CONCURRENCY):
        usage_error(f"{given[0]}: --find {search} searches for the load itself: leave it out")
    limits_s = {f"{n.removeprefix('--').replace('-', '_')}": _time(n, v) for n, v in limits.items() if v is not None}
    if limits_s and search is not Search.MAX_RATE:
        usage_error(f"{next(n for n, v in limits.items() if v is not None)}: is a limit for --find max-rate")
    level = confidence("--confidence", sure)
    if concurrency is not None:
        return Load(LoadKind.CONCURRENCY, float(tokens("--concurrency", concurrency) or 1), level)
    if rate is not None:
        return Load(LoadKind.RATE, _rate("--rate", rate), level)
    if at_most or search is Search.MAX_RATE:
        return Load(LoadKind.MAX, 0.0, level, limits_s)
    return Load(LoadKind.BATCH, float(tokens("--batch", batch) or 1), level)


DEFAULT_CONFIDENCE_TEXT = f"{DEFAULT_CONFIDENCE:.0%}"


def _rate(name: str, text: str) -> float:
    bare = text.strip()
    try:
        value = parse_quantity(bare, "count") if bare[-1:].isdigit() else parse_quantity(bare, "rate")
    except UnitError as error:
        usage_error(f"{name}: {error.message}; {error.hint}")
    if not isfinite(value) or not LEAST_RATE <= value <= MOST_RATE:
        usage_error(f"{name}: {grid.quoted(text)} is no rate; legal: {LEAST_RATE:g} to {MOST_RATE:g} req/s")
    return value


def _time(name: str, text: str) -> float:
    value = _parsed(name, text, "time")
    if not LEAST_TIME_S <= value <= MOST_TIME_S:
        usage_error(f"{name}: {grid.quoted(text)} is no latency; legal: {LEAST_TIME_S:g} to {MOST_TIME_S:g} s")
    return value


def _parsed(name: str, text: str, dimension: str) -> float:
    try:
        return parse_quantity(text, dimension)
    except UnitError as error:
        usage_error(f"{name}: {error.message}; {error.hint}")
