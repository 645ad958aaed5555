"""`planner size`: textbook calculators over grids: KV cache, decode ceiling, roofline, HBM budget, concurrency, training.

Every flag that takes a list makes a grid: all combinations, the first flag of the help changing slowest.
"""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import grid
from planner.cli.commands import CONTEXT_SETTINGS, help_when_alone
from planner.cli.options import CatalogOption, flag
from planner.cli.size_grid import (
    NATIVE,
    Asked,
    formats,
    native,
    optional,
    print_rows,
    shapes_of,
    stated_gpus,
)
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
from planner.physics.training import Checkpoint, Offload, Tier, ZeroStage
from planner.sizing.concurrency import concurrency_row
from planner.sizing.decode import decode_row
from planner.sizing.hbm import hbm_row
from planner.sizing.inputs import Unit
from planner.sizing.intensity import intensity_row
from planner.sizing.kv import kv_row
from planner.sizing.offload import offload_row
from planner.sizing.training import TierBandwidth, training_row

ENGINE = "vllm"

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
        "context": grid.token_counts("--context", context) or (None,),
        "batch": grid.items("--batch", batch, grid.count),
        **formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "reserve": grid.token_counts("--reserve", reserve) or (None,),
    }
    shapes = shapes_of(params, layers, heads, kv_heads, head_dim)
    print_rows("kv", native(kv_row), Asked(model, shapes), axes, catalog, output)


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
        "context": grid.token_counts("--context", context) or (None,),
        "batch": grid.items("--batch", batch, grid.count),
        **formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "kv_memory": optional("--kv-memory", kv_memory, grid.memory(units)),
    }
    shapes = shapes_of(params, layers, heads, kv_heads, head_dim)
    stated = stated_gpus(units, bandwidth=bandwidth)
    asked = Asked(model, shapes, gpu, stated, units, compared=True)
    print_rows("decode", native(decode_row), asked, axes, catalog, output)


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
        "context": grid.token_counts("--context", context) or (None,),
        "batch": grid.items("--batch", batch, grid.count),
        **formats(weights, kv),
    }
    shapes = shapes_of(heads=heads, kv_heads=kv_heads)
    stated = stated_gpus(Unit.GB, bandwidth=bandwidth, tflops=tflops)
    asked = Asked(model, shapes, gpu, stated, compared=True)
    print_rows("intensity", native(intensity_row), asked, axes, catalog, output)


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
        "context": grid.token_counts("--context", context) or (None,),
        "batch": grid.items("--batch", batch, grid.count),
        **formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
        "units": (units,),
    }
    shapes = shapes_of(params, layers, heads, kv_heads, head_dim)
    stated = stated_gpus(units, memory=memory)
    asked = Asked(model, shapes, gpu, stated, units, engine)
    print_rows("hbm", native(hbm_row), asked, axes, catalog, output)


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
        "context": grid.token_counts("--context", context) or (None,),
        **formats(weights, kv),
        "tensor": grid.items("--tp", tp, grid.at_most(grid.MOST_GPUS)),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
        "weights_memory": optional("--weights-memory", weights_memory, grid.memory(units)),
        "units": (units,),
    }
    shapes = shapes_of(params, layers, heads, kv_heads, head_dim)
    stated = stated_gpus(units, memory=memory, bandwidth=bandwidth)
    asked = Asked(model, shapes, gpu, stated, units, engine)
    print_rows("concurrency", native(concurrency_row), asked, axes, catalog, output)


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
        "context": grid.token_counts("--context", context),
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
    shapes = shapes_of(params, layers, heads, hidden=hidden)
    stated = stated_gpus(units, memory=memory, tflops=tflops, host_bandwidth=host_bandwidth)
    print_rows("training", training_row, Asked(model, shapes, gpu, stated, units), axes, catalog, output)


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
        "context": grid.token_counts("--context", context) or (None,),
        "batch": grid.items("--batch", batch, grid.count),
        **formats(weights, kv),
        "cpu_weights": optional("--cpu-weights", cpu_weights, grid.share),
        "cpu_layers": optional("--cpu-layers", cpu_layers, grid.count_or_zero),
        "cpu_kv": grid.items("--cpu-kv", cpu_kv, grid.share),
        "workspace": grid.items("--workspace", workspace, grid.workspace(units)),
    }
    shapes = shapes_of(params, layers, heads, kv_heads, head_dim)
    stated = stated_gpus(units, memory=memory, bandwidth=bandwidth, host_bandwidth=host_bandwidth)
    print_rows("offload", native(offload_row), Asked(model, shapes, gpu, stated, units), axes, catalog, output)
