"""Training memory of one GPU, what checkpoints and offload cost, and the cheapest remedy that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.physics.training import (
    Checkpoint,
    Offload,
    Tier,
    TrainedShape,
    TrainingMemory,
    TrainingSetup,
    ZeroStage,
    hidden_share,
    moved_bytes,
    recompute_share,
    step_flops,
    training_memory,
)
from planner.sizing.advice import Advice, Scarce
from planner.sizing.decode import MS
from planner.sizing.inputs import DEFAULT_FORMAT, Gpu, SizingError, Subject

MOST_GPUS = 4096


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One combination, per GPU. `moved` bytes pass to and from the offload tier in one step.

    `recompute_share` is compute above a step without checkpoints, `hidden_share` what part of the transfer the compute
    of the step can hide at best, `hbm_over_tier` how many times slower the tier is. `remedy` is the cheapest change
    that fits, in the order checkpoint, offload, shard.
    """

    model: str | None
    parameters: float
    gpu: str | None
    context_tokens: int
    batch: int
    gpus: int
    zero: int
    attention: str
    checkpoint: str
    offload: str
    tier: str | None
    activation_factor: float
    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    total_bytes: float
    memory_bytes: float | None
    free_bytes: float | None
    fits: bool | None
    recompute_share: float
    compute_ms: float | None
    offloaded_bytes: float
    moved_bytes: float
    transfer_ms: float | None
    hidden_share: float | None
    hbm_over_tier: float | None
    remedy: str | None
    remedy_total_bytes: float | None
    scarce: str
    lever: str


@dataclass(frozen=True, slots=True)
class TierBandwidth:
    """Bytes/s of the drive behind one GPU; the CPU is reached over the GPU's own link to the host."""

    nvme_bytes_per_s: float

    def of(self, tier: Tier, gpu: Gpu) -> float:
        """Return the bytes/s between a GPU and a tier."""
        host = gpu.host_bandwidth()
        return host if tier is Tier.CPU else min(host, self.nvme_bytes_per_s)


def training_row(
    subject: Subject,
    gpu: Gpu,
    context: int,
    batch: int,
    gpus: int,
    zero: ZeroStage,
    attention: str,
    checkpoint: Checkpoint,
    offload: Offload,
    tier: Tier,
    activation_factor: float,
    flops_share: float,
    tiers: TierBandwidth,
) -> TrainingRow:
    """Return the memory of a step of `batch` sequences per GPU. Raises `SizingError`."""
    setup = TrainingSetup(batch, context, gpus, zero, checkpoint, attention == "fused", offload, activation_factor)
    shape = _shape(subject, setup.fused)
    held = training_memory(shape, setup)
    moved = moved_bytes(shape, setup, tier)
    bandwidth = tiers.of(tier, gpu)
    peak = gpu.known_peak(DEFAULT_FORMAT)
    compute_s = step_flops(shape, setup) / (peak * flops_share) if peak else None
    is_moving = offload is not Offload.NONE
    free = None if gpu.memory_bytes is None else gpu.memory_bytes - held.total_bytes
    remedy = _remedy(shape, setup, gpu.memory_bytes) if free is not None and free < 0.0 else None
    hidden = hidden_share(moved / bandwidth, compute_s) if is_moving and compute_s is not None else None
    advice = _advice(held, free, remedy, hidden)
    return TrainingRow(
        model=subject.name,
        parameters=subject.parameters,
        gpu=gpu.name,
        context_tokens=context,
        batch=batch,
        gpus=gpus,
        zero=int(zero),
        attention=attention,
        checkpoint=checkpoint,
        offload=offload,
        tier=tier if is_moving else None,
        activation_factor=activation_factor,
        parameters_bytes=held.parameters_bytes,
        gradients_bytes=held.gradients_bytes,
        optimizer_bytes=held.optimizer_bytes,
        activations_bytes=held.activations_bytes,
        total_bytes=held.total_bytes,
        memory_bytes=gpu.memory_bytes,
        free_bytes=free,
        fits=None if free is None else free >= 0.0,
        recompute_share=recompute_share(shape, setup),
        compute_ms=None if compute_s is None else compute_s * MS,
        offloaded_bytes=held.offloaded_bytes,
        moved_bytes=moved,
        transfer_ms=moved / bandwidth * MS if is_moving else None,
        hidden_share=hidden,
        hbm_over_tier=gpu.bandwidth_bytes_per_s / bandwidth if is_moving and gpu.bandwidth_bytes_per_s else None,
        remedy=remedy[0] if remedy else None,
        remedy_total_bytes=remedy[1].total_bytes if remedy else None,
        scarce=advice.scarce,
        lever=advice.lever,
    )


def _shape(subject: Subject, is_fused: bool) -> TrainedShape:
    arch = subject.arch
    if not arch.n_layers or not arch.d_model:
        raise SizingError("no shape of the layers: give --model, or --layers and --hidden")
    if not is_fused and not arch.n_heads:
        raise SizingError("attention without fusion stores scores per head: give --heads")
    return TrainedShape(subject.parameters, arch.n_layers, arch.d_model, arch.n_heads)


def _remedy(shape: TrainedShape, setup: TrainingSetup, memory_bytes: float | None) -> tuple[str, TrainingMemory] | None:
    """Return the first change that fits, with the memory it leads to; None when none does."""
    for label, changed in _remedies(shape, setup):
        held = training_memory(shape, changed)
        if memory_bytes is not None and held.total_bytes <= memory_bytes:
            return label, held
    return None


def _remedies(shape: TrainedShape, setup: TrainingSetup) -> Iterator[tuple[str, TrainingSetup]]:
    """Yield changes, the cheapest first: checkpoints, then offload on top of them, then shards over the fewest GPUs."""
    checkpoints = list(_checkpoints(shape, setup))
    yield from checkpoints
    before, slim = min([("", setup), *checkpoints], key=lambda c: training_memory(shape, c[1]).total_bytes)
    offloads = list(_offloads(before, slim))
    yield from offloads
    for label, base in [(before, slim), *offloads[-1:]]:
        for gpus in _doublings(base.gpus):
            for stage in ZeroStage:
                if stage >= max(base.zero, ZeroStage.OPTIMIZER):
                    change = f"ZeRO {int(stage)} over {gpus:,} GPUs"
                    yield _joined(label, change), replace(base, zero=stage, gpus=gpus)


def _checkpoints(shape: TrainedShape, setup: TrainingSetup) -> Iterator[tuple[str, TrainingSetup]]:
    """Yield the checkpoints that hold less than now, those that recompute least first."""
    now = training_memory(shape, setup).total_bytes
    for kind in Checkpoint:
        changed = replace(setup, checkpoint=kind)
        if training_memory(shape, changed).total_bytes < now:
            extra = f"{recompute_share(shape, changed):.0%}".replace("%", " %")
            yield f"checkpoint {kind} ({extra} more compute)", changed


def _offloads(before: str, setup: TrainingSetup) -> Iterator[tuple[str, TrainingSetup]]:
    if setup.offload is Offload.NONE:
        for kind in (Offload.OPTIMIZER, Offload.ACTIVATIONS):
            yield _joined(before, f"offload {kind}"), replace(setup, offload=kind)
    if setup.offload is not Offload.ALL:
        yield _joined(before, "offload optimizer and activations"), replace(setup, offload=Offload.ALL)


def _doublings(gpus: int) -> Iterator[int]:
    count = max(gpus, 2)
    while count <= MOST_GPUS:
        yield count
        count *= 2


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _advice(
    held: TrainingMemory, free: float | None, remedy: tuple[str, TrainingMemory] | None, hidden: float | None
) -> Advice:
    if free is None or free < 0.0:
        states = held.total_bytes - held.activations_bytes
        largest = "activations" if held.activations_bytes > states else "parameters, gradients and optimizer"
        if free is None:
            return Advice(Scarce.CAPACITY, f"{largest} are the larger part: checkpoint, then offload, then shard")
        if remedy is None:
            return Advice(
                Scarce.CAPACITY, f"{largest} are the larger part and no remedy fits: a smaller batch or model"
            )
        return Advice(Scarce.CAPACITY, f"{largest} are the larger part: {remedy[0]}")
    if hidden is not None and hidden < 1.0:
        return Advice(
            Scarce.HOST_LINK, "the transfer outlasts the compute: a larger batch, more accumulation, or shard instead"
        )
    return Advice(Scarce.NONE, "it fits: use what is free for a larger batch")
