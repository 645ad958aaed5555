"""Offload at inference: weights or cache partly in host memory, what a step then takes, and how much has to move."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from planner.physics.formats import weight_format
from planner.physics.offload import share_to_move, split_step_s
from planner.physics.textbook import nominal_weight_bytes, tokens_per_s
from planner.sizing.advice import Advice, Scarce, percent_up
from planner.sizing.decode import MS, TERA
from planner.sizing.inputs import Gpu, SizingError, Subject, Workspace

GIGA = 1e9
_ROUNDING = 1e-9
_ROUNDING_DIGITS = 9


@dataclass(frozen=True, slots=True)
class OffloadRow:
    """One combination. Sizes are memory; `*_ms` follow each other in a step.

    `weights_to_move_share` is the least share of the weights that must leave the GPU for the rest to fit beside cache
    and workspace, `layers_to_move` the same in whole layers, `ceiling_when_moved_tok_s` the ceiling there. Absent when
    cache and workspace alone do not fit.
    """

    model: str | None
    parameters: float
    gpu: str | None
    context_tokens: int | None
    batch: int
    weights: str
    kv: str
    cpu_weights_share: float
    cpu_kv_share: float
    bandwidth_tb_s: float
    host_gb_s: float
    memory_bytes: float
    weights_bytes: float
    kv_bytes: float | None
    workspace_bytes: float
    resident_bytes: float
    offloaded_bytes: float
    free_bytes: float
    fits: bool
    hbm_ms: float
    host_ms: float
    step_ms: float
    ceiling_tok_s: float
    all_in_hbm_tok_s: float
    hbm_over_host: float
    weights_to_move_share: float | None
    layers_to_move: int | None
    ceiling_when_moved_tok_s: float | None
    scarce: str
    lever: str


def offload_row(
    subject: Subject,
    gpu: Gpu,
    context: int | None,
    batch: int,
    weights: str,
    kv: str,
    cpu_weights: float | None,
    cpu_layers: int | None,
    cpu_kv: float,
    workspace: Workspace,
) -> OffloadRow:
    """Return the step with a share of the weights, or some layers, and a share of the cache in host memory.

    Raises `SizingError`, also for a share of a cache whose size is unknown.
    """
    tokens = subject.context(context)
    share = _share(subject, cpu_weights, cpu_layers)
    held = subject.weights_bytes(weights)
    read = subject.step_parameters(batch) * nominal_weight_bytes(weight_format(weights))
    cache = batch * subject.cache(kv).bytes_at(tokens or 0) if tokens or cpu_kv else 0.0
    memory, kept = gpu.memory(), workspace.of(gpu.memory())
    resident = held * (1.0 - share) + cache * (1.0 - cpu_kv)
    free = memory - resident - kept
    fits = free >= -_ROUNDING * memory
    step = _Step(read, cache, cpu_kv, gpu.bandwidth(), gpu.host_bandwidth())
    least = share_to_move(held, cache * (1.0 - cpu_kv) + kept, memory)
    layers = subject.arch.n_layers
    advice = _advice(fits, least, share, step)
    return OffloadRow(
        model=subject.name,
        parameters=subject.parameters,
        gpu=gpu.name,
        context_tokens=tokens,
        batch=batch,
        weights=weights,
        kv=kv,
        cpu_weights_share=share,
        cpu_kv_share=cpu_kv,
        bandwidth_tb_s=step.bandwidth / TERA,
        host_gb_s=step.host_bandwidth / GIGA,
        memory_bytes=memory,
        weights_bytes=held,
        kv_bytes=cache if tokens else None,
        workspace_bytes=kept,
        resident_bytes=resident,
        offloaded_bytes=held * share + cache * cpu_kv,
        free_bytes=free,
        fits=fits,
        hbm_ms=step.hbm_bytes(share) / step.bandwidth * MS,
        host_ms=step.host_bytes(share) / step.host_bandwidth * MS,
        step_ms=step.seconds(share) * MS,
        ceiling_tok_s=tokens_per_s(batch, step.seconds(share)),
        all_in_hbm_tok_s=tokens_per_s(batch, (read + cache) / step.bandwidth),
        hbm_over_host=step.bandwidth / step.host_bandwidth,
        weights_to_move_share=least,
        layers_to_move=None if least is None or not layers else ceil(round(least * layers, _ROUNDING_DIGITS)),
        ceiling_when_moved_tok_s=None if least is None else tokens_per_s(batch, step.seconds(least)),
        scarce=advice.scarce,
        lever=advice.lever,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """Bytes that one step reads, and the two bandwidths in bytes/s."""

    weights: float
    cache: float
    cpu_kv: float
    bandwidth: float
    host_bandwidth: float

    def hbm_bytes(self, share: float) -> float:
        return self.weights * (1.0 - share) + self.cache * (1.0 - self.cpu_kv)

    def host_bytes(self, share: float) -> float:
        return self.weights * share + self.cache * self.cpu_kv

    def seconds(self, share: float) -> float:
        return split_step_s(self.hbm_bytes(share), self.bandwidth, self.host_bytes(share), self.host_bandwidth)


def _share(subject: Subject, cpu_weights: float | None, cpu_layers: int | None) -> float:
    if cpu_layers is None:
        return cpu_weights or 0.0
    if cpu_weights is not None:
        raise SizingError("--cpu-weights and --cpu-layers say the same thing: give one of them")
    layers = subject.arch.n_layers
    if not layers:
        raise SizingError("--cpu-layers needs the number of layers: give --model or --layers")
    if cpu_layers > layers:
        raise SizingError(f"--cpu-layers: {cpu_layers:,} is more than the {layers:,} layers of the model")
    return cpu_layers / layers


def _advice(fits: bool, least: float | None, share: float, step: _Step) -> Advice:
    if least is None:
        return Advice(
            Scarce.CAPACITY, "cache and workspace alone do not fit: quantise KV, shorter contexts, or KV on the host"
        )
    if not fits:
        return Advice(Scarce.CAPACITY, f"move {percent_up(least)} of the weights to the host, or quantise them")
    if step.host_bytes(share) / step.host_bandwidth > step.hbm_bytes(share) / step.bandwidth:
        return Advice.of(Scarce.HOST_LINK)
    return Advice.of(Scarce.BANDWIDTH)
