"""`planner estimate`: one deployment: does it fit, how many sequences, how fast, and what it is short of."""

from __future__ import annotations

import re
from os.path import exists, isfile
from pathlib import Path
from typing import NoReturn

import typer

from planner.catalog import UnknownName
from planner.cli import estimate_options as options
from planner.cli import grid
from planner.cli.estimate_options import (
    BatchedOption,
    BatchOption,
    BlockOption,
    ChunkedOption,
    ConcurrencyOption,
    ConfidenceOption,
    DcpOption,
    DpOption,
    DraftOption,
    EngineOption,
    EpOption,
    ExplainOption,
    FindOption,
    GpuOption,
    ImagesOption,
    InputOption,
    KvOption,
    LengthOption,
    LorasOption,
    MaxOption,
    ModelOption,
    OutputOption,
    PpOption,
    RankOption,
    RateOption,
    SeqsOption,
    TargetsOption,
    TpOption,
    TpotOption,
    TtftOption,
    UtilizationOption,
    VersionOption,
    VideosOption,
    WeightsOption,
)
from planner.cli.exits import ExitCode
from planner.cli.inputs import open_folder, refuse_catalog
from planner.cli.options import AnswerFormat, AnswerFormatOption, CatalogOption
from planner.cli.streams import answer, note, usage_error
from planner.diagnostics import DiagnosticError
from planner.estimate.answer import Estimate, Load, Search
from planner.estimate.deployment import DEFAULT_ENGINE, DeploymentError, Request, deploy
from planner.estimate.estimate import estimate as estimate_of
from planner.physics.footprint import UnknownArchitecture
from planner.physics.format_labels import WEIGHT_LABELS
from planner.physics.formats import UnknownFormat
from planner.physics.types import Architecture
from planner.report.estimate import as_data, render
from planner.report.figures import visible
from planner.report.rows import as_json

CONFIG_ENDING = ".json"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def estimate(
    model: ModelOption,
    gpu: GpuOption,
    tp: TpOption = None,
    pp: PpOption = "1",
    ep: EpOption = "1",
    dp: DpOption = "1",
    dcp: DcpOption = "1",
    weights: WeightsOption = None,
    kv: KvOption = None,
    input_tokens: InputOption = None,
    output_tokens: OutputOption = None,
    batch: BatchOption = None,
    concurrency: ConcurrencyOption = None,
    rate: RateOption = None,
    at_most: MaxOption = False,
    engine: EngineOption = DEFAULT_ENGINE,
    engine_version: VersionOption = None,
    gpu_memory_utilization: UtilizationOption = None,
    max_model_len: LengthOption = None,
    max_num_seqs: SeqsOption = None,
    max_num_batched_tokens: BatchedOption = None,
    chunked_prefill: ChunkedOption = None,
    block_size: BlockOption = None,
    images: ImagesOption = None,
    videos: VideosOption = None,
    max_loras: LorasOption = None,
    lora_rank: RankOption = None,
    lora_targets: TargetsOption = None,
    draft: DraftOption = None,
    confidence: ConfidenceOption = options.DEFAULT_CONFIDENCE_TEXT,
    find: FindOption = None,
    ttft_p95: TtftOption = None,
    tpot_p95: TpotOption = None,
    explain: ExplainOption = False,
    catalog: CatalogOption = None,
    output: AnswerFormatOption = AnswerFormat.TABLE,
) -> None:
    """Describe one deployment: memory, concurrency, speed, what it is short of, and what makes it fit.

    Example: planner estimate --model llama-3.3-70b --gpu h100-sxm --tp 4 --weights fp8 --concurrency 64

    Exit codes: 0 it fits, 3 it does not, 1 unknown names, 64 wrong usage.
    """
    shares = (options.degree("--ep", ep), options.degree("--dcp", dcp)) != (1, 1)
    options.leave_out_searched(find, {"--tp": tp, "--max-model-len": max_model_len}, shares)
    asked = Request(
        tensor=options.degree("--tp", tp),
        pipeline=options.degree("--pp", pp),
        expert=options.degree("--ep", ep),
        attention_data=options.degree("--dp", dp),
        decode_context=options.degree("--dcp", dcp),
        weights=_weights(weights),
        kv=_word(kv),
        engine=engine,
        engine_version=engine_version,
        utilization=options.utilization("--gpu-memory-utilization", gpu_memory_utilization),
        max_model_len=options.tokens("--max-model-len", max_model_len),
        max_num_seqs=options.sequences("--max-num-seqs", max_num_seqs),
        max_num_batched_tokens=options.tokens("--max-num-batched-tokens", max_num_batched_tokens),
        chunked_prefill=chunked_prefill,
        block_size=options.block("--block-size", block_size),
        images=options.media("--images", images),
        videos=options.media("--videos", videos),
        lora=options.lora(max_loras, lora_rank, lora_targets),
        draft=draft,
        input_tokens=options.tokens("--input", input_tokens),
        output_tokens=options.tokens("--output", output_tokens),
    )
    limits = {"--ttft-p95": ttft_p95, "--tpot-p95": tpot_p95}
    load = options.load(batch, concurrency, rate, at_most, confidence, find, limits)
    found = _estimate(asked, load, model, gpu, find, catalog)
    answer(as_json(as_data(found)) if output is AnswerFormat.JSON else _text(render(found, explain)))
    if not found.fit.fits or (found.found is not None and found.found.value is None):
        raise typer.Exit(ExitCode.INFEASIBLE)


def _estimate(asked: Request, load: Load, model: str, gpu: str, find: Search | None, folder: Path | None) -> Estimate:
    """Make the estimate. Leaves with one line for what cannot be estimated."""
    shape = _imported("--model", model) if _is_file(model) else model
    draft = _imported("--draft", asked.draft) if asked.draft is not None and _is_file(asked.draft) else None
    opened = open_folder(folder)
    try:
        return estimate_of(deploy(asked, opened, shape, gpu, draft), load, opened, find)
    except DeploymentError as error:
        usage_error(str(error))
    except UnknownFormat as error:
        _refuse_format(error, asked)
    except UnknownArchitecture as error:
        note(f"error[model/unsupported]: {error}")
        raise typer.Exit(ExitCode.WRONG_INPUT) from None
    except (UnknownName, DiagnosticError) as error:
        refuse_catalog(error)


def _refuse_format(error: UnknownFormat, asked: Request) -> NoReturn:
    flag = "--kv" if error.name == asked.kv and error.name != asked.weights else "--weights"
    grid.refuse_format(flag, error.name, error.legal)


def _is_file(model: str) -> bool:
    """Tell whether a model is meant as a file: one that is there, or a name that only a file can have."""
    return model.lower().endswith(CONFIG_ENDING) or isfile(model)


def _imported(flag: str, path: str) -> Architecture:
    """Return the shape of a model from its config file, named after the folders that the file lies in."""
    from planner.cli.models import import_config

    if not exists(path):
        usage_error(f"{flag}: there is no file {path}; give the path of a config.json, or a model of the catalog")
    folders = Path(path).absolute().parent.parts[-2:]
    last = folders[-1] if folders and _PART.fullmatch(folders[-1]) else "model"
    named = len(folders) == 2 and all(_PART.fullmatch(part) for part in folders)
    return import_config(path, "/".join(folders) if named else f"local/{last}").architecture()


def _word(text: str | None) -> str | None:
    return None if text is None else visible(text).strip().lower()


def _weights(text: str | None) -> str | None:
    word = _word(text)
    return None if word is None else WEIGHT_LABELS.get(word, word)


def _text(lines: list[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
