"""`planner size`: textbook calculators over grids: KV cache, decode ceiling, roofline, HBM budget, concurrency, training.

Every flag that takes a list makes a grid: all combinations, the first flag of the help changing slowest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Annotated, Any

import typer

from planner.catalog import Catalog, UnknownName
from planner.catalog.engine import EngineProfile
from planner.cli import grid
from planner.cli.commands import CONTEXT_SETTINGS, help_when_alone
from planner.cli.exits import ExitCode
from planner.cli.inputs import open_folder, refuse_catalog
from planner.cli.options import CatalogOption, flag
from planner.cli.size_options import (
    BandwidthOption,
    BatchOption,
    ContextOption,
    EngineOption,
    Format,
    FormatOption,
    GpuOption,
    HeadDimOption,
    HeadsOption,
    HiddenOption,
    HostOption,
    KvHeadsOption,
    KvOption,
    LayersOption,
    MemoryOption,
    ModelOption,
    ParamsOption,
    PlainContextOption,
    TflopsOption,
    TpOption,
    UnitsOption,
    WeightsOption,
    WorkspaceOption,
    listed_flag,
)
from planner.cli.streams import answer, note, usage_error
from planner.diagnostics import DiagnosticError
from planner.physics.footprint import UnknownArchitecture
from planner.physics.formats import KV_FORMATS, WEIGHT_FORMATS
from planner.physics.training import Checkpoint, Offload, Tier, ZeroStage
from planner.report.rows import as_csv, as_json
from planner.report.sizing import render
from planner.sizing.concurrency import concurrency_row
from planner.sizing.decode import decode_row
from planner.sizing.grid import as_data, check_size, combinations
from planner.sizing.hbm import hbm_row
from planner.sizing.inputs import Gpu, SizingError, StatedGpu, StatedShape, Subject, Unit, gpu, subject
from planner.sizing.intensity import intensity_row
from planner.sizing.kv import kv_row
from planner.sizing.offload import offload_row
from planner.sizing.training import TierBandwidth, training_row

ENGINE = "vllm"
NATIVE = "native"
WEIGHT_NAMES = (NATIVE, *WEIGHT_FORMATS)
Axes = dict[str, Sequence[object]]

app = typer.Typer(
    name="size",
    help=(
        "Textbook calculators over grids of comma lists.\n\n"
        "Example: planner size kv --model llama-3-8b --context 8192,32768 --batch 1,32\n\n"
        "A list makes one row for each of its values, several lists one for each combination. 12k is 12000; write"
        " numbers without separators, since a comma starts the next value."
    ),
    context_settings=CONTEXT_SETTINGS,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.callback()(help_when_alone)


@app.command("kv")
def kv_cache(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    head_dim: HeadDimOption = None,
    context: ContextOption = None,
    batch: BatchOption = "1",
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    tp: TpOption = "1",
    reserve: Annotated[
        str | None, listed_flag("--reserve", "Tokens that an allocator without pages reserves per sequence.", "N,...")
    ] = None,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """KV cache: bytes per token, per sequence and batch, beside the weights.

    Example: planner size kv --model llama-3-8b --context 2048,8192 --batch 1,32
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        **_formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "reserve": _optional("--reserve", reserve, grid.count),
    }
    shapes = _shapes(params, layers, heads, kv_heads, head_dim)
    with _refusals():
        opened = open_folder(catalog) if model else None
        rows = combinations(_native(kv_row), {"subject": _subjects(opened, model, shapes), **axes})
    _print("kv", rows, output, Unit.GB)


@app.command("decode")
def decode(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    head_dim: HeadDimOption = None,
    gpu: GpuOption = None,
    bandwidth: BandwidthOption = None,
    context: PlainContextOption = None,
    batch: BatchOption = "1",
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    tp: TpOption = "1",
    kv_memory: Annotated[
        str | None, listed_flag("--kv-memory", "Bytes of cache that a step reads on one GPU: 16GB.", "SIZE,...")
    ] = None,
    units: UnitsOption = Unit.GB,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Decode ceiling: bandwidth over the bytes of a step, and 70 to 85 % of it.

    Example: planner size decode --model llama-3-8b --gpu h100-sxm --weights bf16,int8,int4
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        **_formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "kv_memory": _optional("--kv-memory", kv_memory, grid.memory(units)),
    }
    shapes = _shapes(params, layers, heads, kv_heads, head_dim)
    stated = _stated_gpus(units, bandwidth=bandwidth)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        gpus = _gpus(opened, gpu, stated, units)
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": gpus}
        rows = combinations(_native(decode_row), {**about, **axes, "first": _first(gpus)})
    _print("decode", rows, output, units)


@app.command("intensity")
def intensity(
    model: ModelOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    gpu: GpuOption = None,
    bandwidth: BandwidthOption = None,
    tflops: TflopsOption = None,
    context: Annotated[str | None, listed_flag("--context", "Tokens of a prompt, for its regime.", "N,...")] = None,
    batch: BatchOption = "1",
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Arithmetic intensity of decode against the ridge of the roofline.

    Example: planner size intensity --gpu h100-sxm --batch 1,32,295,512
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        **_formats(weights, kv),
    }
    shapes = _shapes(heads=heads, kv_heads=kv_heads)
    stated = _stated_gpus(Unit.GB, bandwidth=bandwidth, tflops=tflops)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        gpus = _gpus(opened, gpu, stated, Unit.GB)
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": gpus}
        rows = combinations(_native(intensity_row), {**about, **axes, "first": _first(gpus)})
    _print("intensity", rows, output, Unit.GB)


@app.command("hbm")
def hbm(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    head_dim: HeadDimOption = None,
    gpu: GpuOption = None,
    memory: MemoryOption = None,
    context: ContextOption = None,
    batch: BatchOption = "1",
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    tp: TpOption = "1",
    workspace: WorkspaceOption = "10%",
    engine: EngineOption = ENGINE,
    units: UnitsOption = Unit.GB,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """HBM budget of one GPU: the rule of thumb, and an engine's real parts beside it.

    Example: planner size hbm --model llama-3-8b --gpu l4,h100-sxm --context 8192 --batch 1,32
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        **_formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
        "units": (units,),
    }
    shapes = _shapes(params, layers, heads, kv_heads, head_dim)
    stated = _stated_gpus(units, memory=memory)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": _gpus(opened, gpu, stated, units)}
        rows = combinations(_native(hbm_row), {**about, **axes, "engine": (_engine(opened, engine),)})
    _print("hbm", rows, output, units)


@app.command("concurrency")
def concurrency(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    head_dim: HeadDimOption = None,
    gpu: GpuOption = None,
    memory: MemoryOption = None,
    bandwidth: BandwidthOption = None,
    context: ContextOption = None,
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    tp: TpOption = "1",
    workspace: WorkspaceOption = "10%",
    weights_memory: Annotated[
        str | None,
        listed_flag("--weights-memory", "Memory of the weights on one GPU; default: parameters x width.", "SIZE,..."),
    ] = None,
    engine: EngineOption = ENGINE,
    units: UnitsOption = Unit.GB,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Sequences that fit, and how fast a step with all of them is.

    Example: planner size concurrency --model llama-2-7b --gpu a100-sxm-40gb --kv fp16,int8 --units GiB
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        **_formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
        "weights_memory": _optional("--weights-memory", weights_memory, grid.memory(units)),
        "units": (units,),
    }
    shapes = _shapes(params, layers, heads, kv_heads, head_dim)
    stated = _stated_gpus(units, memory=memory, bandwidth=bandwidth)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": _gpus(opened, gpu, stated, units)}
        rows = combinations(_native(concurrency_row), {**about, **axes, "engine": (_engine(opened, engine),)})
    _print("concurrency", rows, output, units)


@app.command("training")
def training(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    hidden: HiddenOption = None,
    gpu: GpuOption = None,
    memory: MemoryOption = None,
    tflops: TflopsOption = None,
    host_bandwidth: HostOption = None,
    context: Annotated[str, flag("--context", "Tokens per sequence.", metavar="N,...")] = "4096",
    batch: Annotated[str, flag("--batch", "Sequences per GPU and step.", metavar="N,...")] = "1",
    gpus: Annotated[str, flag("--gpus", "Data-parallel GPUs.", metavar="N,...")] = "1",
    zero: Annotated[str, flag("--zero", "ZeRO stages, 0 to 3.", metavar="N,...")] = "0",
    attention: Annotated[
        str, flag("--attention", "fused, or full: it stores batch x heads x sequence^2 scores.", metavar="KIND,...")
    ] = "fused",
    checkpoint: Annotated[
        str, flag("--checkpoint", "none, selective, layer, sqrt.", metavar="KIND,...")
    ] = Checkpoint.NONE.value,
    offload: Annotated[
        str, flag("--offload", "none, optimizer, activations, all.", metavar="WHAT,...")
    ] = Offload.NONE.value,
    tier: Annotated[str, flag("--tier", "Where offloaded bytes live: cpu, nvme.", metavar="TIER,...")] = Tier.CPU.value,
    activation_factor: Annotated[
        str, flag("--activation-factor", "Tensors of batch x tokens x width kept per layer.", metavar="C,...")
    ] = "16",
    nvme_bandwidth: Annotated[str, flag("--nvme-bandwidth", "Drive behind one GPU.", metavar="RATE")] = "7GB/s",
    mfu: Annotated[str, flag("--mfu", "Share of the compute peak that training reaches.", metavar="SHARE")] = "40%",
    units: UnitsOption = Unit.GB,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Training memory of one GPU, what checkpoints and offload cost, and the cheapest remedy.

    Example: planner size training --model llama-3-8b --gpu h100-sxm --batch 8 --checkpoint none,layer,sqrt
    """
    axes = {
        "context": grid.items("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        "gpus": grid.items("--gpus", gpus, grid.count),
        "zero": [ZeroStage(int(z)) for z in grid.items("--zero", zero, grid.one_of("0123"))],
        "attention": grid.items("--attention", attention, grid.one_of(("fused", "full"))),
        "checkpoint": [Checkpoint(c) for c in grid.items("--checkpoint", checkpoint, grid.one_of(Checkpoint))],
        "offload": [Offload(o) for o in grid.items("--offload", offload, grid.one_of(Offload))],
        "tier": [Tier(t) for t in grid.items("--tier", tier, grid.one_of(Tier))],
        "activation_factor": grid.items("--activation-factor", activation_factor, grid.factor),
        "flops_share": (grid.single("--mfu", mfu, grid.positive_share),),
        "tiers": (TierBandwidth(grid.single("--nvme-bandwidth", nvme_bandwidth, grid.bandwidth)),),
    }
    shapes = _shapes(params, layers, heads, hidden=hidden)
    stated = _stated_gpus(units, memory=memory, tflops=tflops, host_bandwidth=host_bandwidth)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": _gpus(opened, gpu, stated, units)}
        rows = combinations(training_row, {**about, **axes})
    _print("training", rows, output, units)


@app.command("offload")
def offload(
    model: ModelOption = None,
    params: ParamsOption = None,
    layers: LayersOption = None,
    heads: HeadsOption = None,
    kv_heads: KvHeadsOption = None,
    head_dim: HeadDimOption = None,
    gpu: GpuOption = None,
    memory: MemoryOption = None,
    bandwidth: BandwidthOption = None,
    host_bandwidth: HostOption = None,
    context: ContextOption = None,
    batch: BatchOption = "1",
    weights: WeightsOption = NATIVE,
    kv: KvOption = "bf16",
    cpu_weights: Annotated[
        str | None, listed_flag("--cpu-weights", "Shares of the weights in host memory: 30%.", "SHARE,...")
    ] = None,
    cpu_layers: Annotated[str | None, listed_flag("--cpu-layers", "Layers in host memory instead.", "N,...")] = None,
    cpu_kv: Annotated[str, flag("--cpu-kv", "Shares of the cache in host memory.", metavar="SHARE,...")] = "0",
    workspace: WorkspaceOption = "10%",
    units: UnitsOption = Unit.GB,
    catalog: CatalogOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Weights or cache partly in host memory: the step, the ceiling, and what has to move.

    Example: planner size offload --model llama-3-8b --gpu rtx-4090 --weights bf16 --cpu-layers 0,8,16
    """
    axes = {
        "context": _optional("--context", context, grid.count),
        "batch": grid.items("--batch", batch, grid.count),
        **_formats(weights, kv),
        "cpu_weights": _optional("--cpu-weights", cpu_weights, grid.share),
        "cpu_layers": _optional("--cpu-layers", cpu_layers, grid.count_or_zero),
        "cpu_kv": grid.items("--cpu-kv", cpu_kv, grid.share),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
    }
    shapes = _shapes(params, layers, heads, kv_heads, head_dim)
    stated = _stated_gpus(units, memory=memory, bandwidth=bandwidth, host_bandwidth=host_bandwidth)
    with _refusals():
        opened = open_folder(catalog) if model or gpu else None
        about: Axes = {"subject": _subjects(opened, model, shapes), "gpu": _gpus(opened, gpu, stated, units)}
        rows = combinations(_native(offload_row), {**about, **axes})
    _print("offload", rows, output, units)


def _optional(name: str, text: str | None, read: Callable[[str, str], Any]) -> tuple[Any, ...]:
    """Read a list, or one absent value."""
    return grid.items(name, text, read) or (None,)


def _formats(weights: str, kv: str) -> Axes:
    return {
        "weights": grid.items("--weights", weights, grid.format_of(WEIGHT_NAMES)),
        "kv": grid.items("--kv", kv, grid.format_of(KV_FORMATS)),
    }


def _native(calculate: Callable[..., Any]) -> Callable[..., Any]:
    """Let a calculator take `native` for the format that its model is published in."""

    def row(*, subject: Subject, weights: str, **others: Any) -> Any:
        return calculate(subject=subject, weights=subject.native_format if weights == NATIVE else weights, **others)

    return row


def _shapes(
    params: str | None = None,
    layers: str | None = None,
    heads: str | None = None,
    kv_heads: str | None = None,
    head_dim: str | None = None,
    hidden: str | None = None,
) -> list[StatedShape]:
    return _combined(
        StatedShape,
        _optional("--params", params, grid.parameters),
        _optional("--layers", layers, grid.at_most(grid.MOST_LAYERS)),
        _optional("--heads", heads, grid.at_most(grid.MOST_HEADS)),
        _optional("--kv-heads", kv_heads, grid.at_most(grid.MOST_HEADS)),
        _optional("--head-dim", head_dim, grid.at_most(grid.MOST_WIDTH)),
        _optional("--hidden", hidden, grid.at_most(grid.MOST_WIDTH)),
    )


def _stated_gpus(
    units: Unit,
    memory: str | None = None,
    bandwidth: str | None = None,
    tflops: str | None = None,
    host_bandwidth: str | None = None,
) -> list[StatedGpu]:
    return _combined(
        StatedGpu,
        _optional("--memory", memory, grid.memory(units)),
        _optional("--bandwidth", bandwidth, grid.bandwidth),
        tuple(t and t * 1e12 for t in _optional("--tflops", tflops, grid.factor)),
        _optional("--host-bandwidth", host_bandwidth, grid.bandwidth),
    )


def _combined(build: Callable[..., Any], *axes: Sequence[Any]) -> list[Any]:
    with _refusals():
        check_size(map(len, axes))
    return [build(*values) for values in product(*axes)]


def _subjects(catalog: Catalog | None, models: str | None, shapes: list[StatedShape]) -> list[Subject]:
    names = _optional("--model", models, grid.name)
    check_size([len(names), len(shapes)])
    return [subject(catalog, name, shape) for name in names for shape in shapes]


def _gpus(catalog: Catalog | None, names: str | None, stated: list[StatedGpu], units: Unit) -> list[Gpu]:
    wanted = _optional("--gpu", names, grid.name)
    check_size([len(wanted), len(stated)])
    return [gpu(catalog, name, figures, units) for name in wanted for figures in stated]


def _first(gpus: list[Gpu]) -> tuple[Gpu | None]:
    """Return what several GPUs are compared with; one alone is compared with nothing."""
    return (gpus[0] if len(gpus) > 1 else None,)


def _engine(catalog: Catalog | None, name: str) -> EngineProfile | None:
    return catalog.engine(name) if catalog is not None else None


@contextmanager
def _refusals() -> Iterator[None]:
    """Leave with one line for what a calculator or the catalog refuses."""
    try:
        yield
    except SizingError as error:
        usage_error(str(error))
    except (UnknownName, DiagnosticError) as error:
        refuse_catalog(error)
    except UnknownArchitecture as error:
        note(f"planner: {error}")
        raise typer.Exit(ExitCode.WRONG_INPUT) from None


def _print(calculator: str, rows: Sequence[Any], output: Format, units: Unit) -> None:
    data = [as_data(row, units) for row in rows]
    if output is Format.JSON:
        answer(as_json({"rows": data}))
    elif output is Format.CSV:
        answer(as_csv(data))
    else:
        answer("".join(f"{line}\n" for line in render(calculator, data, units)))
