"""What makes a deployment fit that does not: the cheapest changes in order, each one tried on the budget itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from planner.catalog import Catalog
from planner.estimate.deployment import (
    Deployment,
    default_max_num_seqs,
    legal_tensor_degrees,
    legal_weights,
    on_gpu,
    refusal,
)
from planner.estimate.memory import Fit, fit, fits, longest_context
from planner.estimate.words import counted
from planner.physics.formats import kv_format, weight_format
from planner.physics.kernels import unsupported
from planner.physics.memory import FractionOf, weights_bytes
from planner.physics.types import Architecture

MOST_UTILIZATION = 0.95
"""Highest memory fraction to advise: some memory is gone before the engine starts."""
UTILIZATION_STEP = 0.01
LEAST_BATCHED_TOKENS = 512
LEAST_NUM_SEQS = 16
MOST_TENSOR = 64
FRACTION_NAMES = {
    FractionOf.TOTAL: "gpu_memory_utilization",
    FractionOf.FREE_AFTER_LOAD: "free_gpu_memory_fraction",
    FractionOf.STATIC: "mem_fraction_static",
}
"""What engines call their memory fraction."""


class Cost(StrEnum):
    """What a remedy costs: nothing but a setting, some quality, or more hardware."""

    SETTING = "setting"
    PRECISION = "precision"
    HARDWARE = "hardware"


@dataclass(frozen=True)
class Remedy:
    """A change, or two together, with which the deployment fits: what to write, and the budget it leads to."""

    change: str
    flags: str
    cost: Cost
    fit: Fit

    @property
    def deployment(self) -> Deployment:
        """The deployment with the change."""
        return self.fit.deployment


@dataclass(frozen=True)
class _Setting:
    change: str
    flags: str
    deployment: Deployment


@dataclass(frozen=True)
class _Lever:
    """One thing that can be changed. `settings` yields its settings for a deployment, the mildest first."""

    name: str
    cost: Cost
    settings: Callable[[Deployment], Iterator[_Setting]]


def remedies(deployment: Deployment, catalog: Catalog) -> list[Remedy]:
    """Return the changes that make the deployment fit, settings first, then precision, then hardware.

    Only changes that fit are returned; when none does alone, the first pair that does. Raises `UnknownArchitecture`.
    """
    levers = list(_levers(deployment, catalog))
    alone = [found for lever in levers if (found := _mildest(lever, deployment))]
    if alone:
        return alone
    pairs = sorted(combinations(levers, 2), key=lambda pair: max(map(_rank, pair)))
    tried = (_pair(a, b, deployment) or _pair(b, a, deployment) for a, b in pairs)
    found = next((pair for pair in tried if pair is not None), None)
    return [] if found is None else [found]


def _levers(deployment: Deployment, catalog: Catalog) -> Iterator[_Lever]:
    yield _Lever("chunks", Cost.SETTING, _chunks)
    yield _Lever("media", Cost.SETTING, _media)
    yield _Lever("batched_tokens", Cost.SETTING, _batched_tokens)
    yield _Lever("num_seqs", Cost.SETTING, _num_seqs)
    yield _Lever("fraction", Cost.SETTING, _fraction)
    yield _Lever("length", Cost.SETTING, _length)
    yield _Lever("kv", Cost.PRECISION, _kv)
    yield from (_Lever(f"weights_{bits}", Cost.PRECISION, _weights_of(bits)) for bits in _bits(deployment.weights))
    yield _Lever("tensor", Cost.HARDWARE, _tensor)
    yield _Lever("gpu", Cost.HARDWARE, _gpus_of(deployment, catalog))


def _mildest(lever: _Lever, deployment: Deployment) -> Remedy | None:
    found = next((s for s in _accepted(lever, deployment) if fits(s.deployment)), None)
    return None if found is None else Remedy(found.change, found.flags, lever.cost, fit(found.deployment))


def _accepted(lever: _Lever, deployment: Deployment) -> Iterator[_Setting]:
    return (setting for setting in lever.settings(deployment) if refusal(setting.deployment) is None)


def _pair(first: _Lever, second: _Lever, deployment: Deployment) -> Remedy | None:
    """Return the mildest setting of `first` with which some setting of `second` fits, and the mildest of that."""
    options = list(_accepted(first, deployment))
    if not options or _mildest(second, options[-1].deployment) is None:
        return None
    for one in options:
        other = _mildest(second, one.deployment)
        if other is not None:
            cost = max(first, second, key=_rank).cost
            return Remedy(f"{one.change}, and {other.change}", f"{one.flags} {other.flags}", cost, other.fit)
    return None


def _rank(lever: _Lever) -> int:
    return list(Cost).index(lever.cost)


def _chunks(d: Deployment) -> Iterator[_Setting]:
    if not d.chunks:
        changed = d.changed(chunked_prefill=True)
        yield _Setting("split prompts over steps", "--chunked-prefill", changed)


def _media(d: Deployment) -> Iterator[_Setting]:
    """Fewer images and videos per prompt: videos go first."""
    if not d.architecture.vision_patches:
        return
    images, videos = d.images, d.videos
    while images + videos > 0:
        images, videos = (images, videos - 1) if videos > 0 else (images - 1, 0)
        what = f"{counted(images, 'image')} and {counted(videos, 'video')}"
        flags = f"--images {images} --videos {videos}"
        yield _Setting(f"allow {what} per prompt", flags, d.changed(images=images, videos=videos))


def _batched_tokens(d: Deployment) -> Iterator[_Setting]:
    tokens = d.max_num_batched_tokens // 2
    while tokens >= LEAST_BATCHED_TOKENS:
        yield _Setting(
            f"steps of {counted(tokens, 'token')}",
            f"--max-num-batched-tokens {tokens}",
            d.changed(max_num_batched_tokens=tokens),
        )
        tokens //= 2


def _num_seqs(d: Deployment) -> Iterator[_Setting]:
    count = d.max_num_seqs // 2
    while count >= (1 if d.stated_slots > 1 else LEAST_NUM_SEQS):
        slots = count if d.stated_slots > 1 else 1
        changed = d.changed(max_num_seqs=count, stated_slots=slots)
        yield _Setting(f"at most {counted(count, 'sequence')} at once", f"--max-num-seqs {count}", changed)
        count //= 2


def _fraction(d: Deployment) -> Iterator[_Setting]:
    """A higher memory fraction; a lower one too where the engine's activations live outside of it."""
    kind = d.engine.memory.fraction_of
    if kind is FractionOf.NONE:
        return
    shares = [round(d.utilization + UTILIZATION_STEP * i, 2) for i in range(1, 100)]
    shares = [share for share in shares if share <= MOST_UTILIZATION]
    if kind is FractionOf.STATIC:
        lower = (round(d.utilization - UTILIZATION_STEP * i, 2) for i in range(1, 100))
        shares += [share for share in lower if share >= 0.5]
    for share in shares:
        way = "raise" if share > d.utilization else "lower"
        name = FRACTION_NAMES[kind]
        yield _Setting(
            f"{way} {name} to {share:.2f}", f"--gpu-memory-utilization {share:.2f}", d.changed(utilization=share)
        )


def _length(d: Deployment) -> Iterator[_Setting]:
    """The longest length that fits, if the requests asked about still do."""
    tokens = longest_context(d)
    if d.tokens <= tokens < d.max_model_len:
        yield _shorter(d, tokens)
        return
    if d.chunked_prefill is None and tokens > d.max_model_len and d.engine.memory.chunks_prompts(tokens):
        from_tokens = max(d.engine.memory.chunked_from_tokens, d.max_model_len)
        changed = d.changed(max_model_len=from_tokens)
        change = f"sequences of at least {from_tokens:,} tokens, from which on this version chunks prompts"
        yield _Setting(change, f"--max-model-len {from_tokens}", changed)


def _shorter(d: Deployment, tokens: int) -> _Setting:
    return _Setting(
        f"sequences of at most {counted(tokens, 'token')}", f"--max-model-len {tokens}", d.changed(max_model_len=tokens)
    )


def _kv(d: Deployment) -> Iterator[_Setting]:
    name = "int8" if d.engine.name == "llama.cpp" else "fp8"
    if kv_format(name).bytes_per_element < kv_format(d.kv).bytes_per_element:
        yield _Setting(f"{name} KV cache", f"--kv {name}", d.changed(kv=name))


def _bits(weights: str) -> tuple[int, ...]:
    return tuple(bits for bits in (8, 4) if bits < weight_format(weights).bits)


def _weights_of(bits: int) -> Callable[[Deployment], Iterator[_Setting]]:
    def settings(d: Deployment) -> Iterator[_Setting]:
        legal = legal_weights(d.engine.name, d.kv, d.device)
        now = weights_bytes(d.architecture, d.layout, d.weights)
        for name in _preferred(bits, d.architecture):
            if name in legal and weights_bytes(d.architecture, d.layout, name) < now:
                yield _Setting(f"{name} weights", f"--weights {name}", d.changed(weights=name))

    return settings


def _preferred(bits: int, arch: Architecture) -> tuple[str, ...]:
    """Formats of a width that are published for many models, floating point first; the native one before all."""
    known = {8: ("fp8", "int8", "q8_0"), 4: ("int4", "nvfp4", "q4_k_m")}[bits]
    native = arch.native_format
    return (native, *known) if weight_format(native).bits == bits else known


def _tensor(d: Deployment) -> Iterator[_Setting]:
    degree = 2 * d.layout.tensor
    legal = legal_tensor_degrees(d.architecture)
    while degree in legal and degree <= MOST_TENSOR:
        layout = replace(d.layout, tensor=degree, expert=_experts(d, degree))
        change = f"tensor parallelism {degree} ({layout.gpus} GPUs)"
        flags = f"--tp {degree}" + (f" --ep {layout.expert}" if layout.expert > 1 else "")
        yield _Setting(change, flags, d.changed(layout=layout))
        degree *= 2


def _experts(d: Deployment, tensor: int) -> int:
    return tensor * d.layout.attention_data if d.layout.expert > 1 else 1


def _seqs_flag(d: Deployment) -> str:
    """Return the flag for a default batch cap that was lowered to the tokens of a step, else nothing."""
    is_lowered = (
        d.max_num_seqs < default_max_num_seqs(d.engine, d.device) and d.max_num_seqs == d.max_num_batched_tokens
    )
    return f" --max-num-seqs {d.max_num_seqs}" if is_lowered and d.asked.max_num_seqs is None else ""


def _gpus_of(deployment: Deployment, catalog: Catalog) -> Callable[[Deployment], Iterator[_Setting]]:
    """GPUs of the catalog with more memory, the smallest first; those that are no slower come before all others."""
    found: list[tuple[bool, float, str]] = []

    def larger() -> Sequence[str]:
        if not found:
            now = deployment.device
            for name in catalog.gpu_names():
                device = catalog.gpu(name).device()
                if device.usable_bytes > now.usable_bytes and deployment.engine.supports(device.vendor):
                    slower = device.bandwidth_bytes_per_s < now.bandwidth_bytes_per_s
                    other = device.vendor != now.vendor
                    found.append((slower or other, device.usable_bytes, name))
            found.sort()
        return [name for _, _, name in found]

    def settings(d: Deployment) -> Iterator[_Setting]:
        for name in larger():
            changed = on_gpu(d, catalog.gpu(name))
            if unsupported(d.engine.name, d.weights, d.kv, changed.device) is None:
                flags = f"--gpu {name}" + _seqs_flag(changed)
                yield _Setting(f"a GPU with more memory: {name}", flags, changed)

    return settings
