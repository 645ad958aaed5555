"""What a calculator is about: a model and a GPU, from the catalog, from stated figures, or the one changed by the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from planner.catalog import Catalog
from planner.physics.formats import kv_format, weight_format
from planner.physics.memory import KvFootprint, KvRules, kv_footprint, split_parameters
from planner.physics.textbook import (
    FLOPS_PER_PARAMETER,
    batch_at,
    decode_flops,
    kv_elements_per_token,
    nominal_kv_bytes,
    nominal_weight_bytes,
    parameters_read,
    weight_intensity,
)
from planner.physics.types import Architecture, Device, Layout

READ_RULES = KvRules(chunked_windows=True, grouped_layers=False, window_slack_tokens=0)
"""What attention reads of a cache, as opposed to what an engine reserves: exactly the window of local layers."""
ELEMENT_BYTES = 2.0
"""Width of the format that elements are counted in."""
DEFAULT_CONTEXT_TOKENS = 4096
DEFAULT_FORMAT = "bf16"
PCIE_5_BYTES_PER_S = 64e9
"""One way over 16 lanes of PCIe 5.0, where no GPU says otherwise."""


class SizingError(ValueError):
    """Inputs that a calculator cannot work with; the text says which flag is missing or does not go with another."""


class Unit(StrEnum):
    """How sizes are counted: labels of GPUs and bare numbers are read in it, and the answer is printed in it."""

    GB = "GB"
    GIB = "GiB"

    @property
    def size_bytes(self) -> float:
        """Bytes of one unit."""
        return 1e9 if self is Unit.GB else 2.0**30


@dataclass(frozen=True, slots=True)
class StatedShape:
    """Figures of a model that are stated instead of, or beside, a catalog entry. None: not stated."""

    parameters: float | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """The model of a row. Shape fields of `arch` are 0 when unknown; `is_whole` tells that it is a catalog entry."""

    name: str | None
    arch: Architecture
    is_whole: bool
    native_format: str

    @property
    def has_cache_shape(self) -> bool:
        """Tell whether the size of the KV cache is known."""
        return self.arch.kv_elements_per_token > 0 or self.arch.n_state_layers > 0

    @property
    def parameters(self) -> float:
        """All parameters. Raises `SizingError` when they are unknown."""
        if self.arch.n_params_total == 0:
            raise SizingError("no parameter count: give --model or --params")
        return float(self.arch.n_params_total)

    @property
    def known_parameters(self) -> float | None:
        """All parameters, None when they are unknown."""
        return float(self.arch.n_params_total) or None

    def weights_bytes(self, weights: str) -> float:
        """Return parameters x nominal width, over all GPUs. Raises `SizingError`."""
        return self.parameters * nominal_weight_bytes(weight_format(weights))

    def step_parameters(self, batch: float) -> float:
        """Return the parameters that a decode step of `batch` tokens reads: fewer than all with routed experts."""
        if not self.arch.is_moe:
            return self.parameters
        experts = split_parameters(self.arch).experts
        return parameters_read(self.parameters, experts, self.arch.experts_per_token / self.arch.n_experts, batch)

    @property
    def active_parameters(self) -> float:
        """Parameters that one token uses. Raises `SizingError`."""
        return float(self.arch.n_params_active) if self.arch.is_moe else self.parameters

    def decode_intensity(self, tokens: float, bytes_per_parameter: float) -> float:
        """Return the FLOP per byte of weights of a step of `tokens` tokens: fewer where they hit few experts."""
        if not self.arch.is_moe:
            return weight_intensity(tokens, bytes_per_parameter)
        return decode_flops(self.active_parameters, tokens) / (self.step_parameters(tokens) * bytes_per_parameter)

    def balanced_batch(self, ridge: float, bytes_per_parameter: float) -> float:
        """Return the batch whose weights have the intensity `ridge`, in FLOP per byte."""
        dense = ridge * bytes_per_parameter / FLOPS_PER_PARAMETER
        if not self.arch.is_moe:
            return dense
        most = dense * self.parameters / self.active_parameters
        return batch_at(ridge, lambda batch: self.decode_intensity(batch, bytes_per_parameter), most)

    def cache(self, kv: str, tensor: int = 1, stored: bool = False) -> KvFootprint:
        """Return the cache of one sequence on the fullest of `tensor` GPUs at the nominal width of `kv`.

        With `stored` at the width that engines allocate, scales included. Raises `SizingError`, `UnknownArchitecture`.
        """
        if not self.has_cache_shape:
            raise SizingError("no shape of the KV cache: give --model, or --layers, --kv-heads and --head-dim")
        known = kv_format(kv)
        width = (known.bytes_per_element if stored else nominal_kv_bytes(known)) / ELEMENT_BYTES
        elements = kv_footprint(self.arch, Layout(tensor=tensor), DEFAULT_FORMAT, READ_RULES)
        return replace(
            elements,
            global_bytes_per_token=elements.global_bytes_per_token * width,
            local_bytes_per_token=elements.local_bytes_per_token * width,
        )

    def context(self, stated: int | None) -> int | None:
        """Return the stated context, else the default where the cache has a known shape, else None."""
        if stated is None and self.has_cache_shape:
            return DEFAULT_CONTEXT_TOKENS
        return stated


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU of a row. `memory_bytes` is the label on the card; `device` is the catalog's view of it, if there is one.

    What is unknown is None; the methods raise `SizingError` for what a calculator cannot do without.
    """

    name: str | None
    memory_bytes: float | None
    bandwidth_bytes_per_s: float | None
    flops: Mapping[str, float]
    host_bytes_per_s: float | None
    device: Device | None

    def memory(self) -> float:
        """Return the memory in bytes."""
        if self.memory_bytes is None:
            raise SizingError("no memory size: give --gpu or --memory")
        return self.memory_bytes

    def bandwidth(self) -> float:
        """Return the memory bandwidth in bytes/s."""
        if self.bandwidth_bytes_per_s is None:
            raise SizingError("no memory bandwidth: give --gpu or --bandwidth")
        return self.bandwidth_bytes_per_s

    def known_peak(self, weights: str) -> float | None:
        """Return the dense peak in FLOP/s for matrix products in a weight format: that of bf16 without own hardware."""
        return self.flops.get(self.rate_format(weights))

    def peak(self, weights: str) -> float:
        """Return `known_peak`. Raises `SizingError` when it is unknown."""
        peak = self.known_peak(weights)
        if peak is None:
            raise SizingError("no compute peak: give --gpu or --tflops")
        return peak

    def rate_format(self, weights: str) -> str:
        """Return the format whose rate the matrix products of a weight format reach."""
        wanted = weight_format(weights).peak
        return wanted if wanted in self.flops else DEFAULT_FORMAT

    def host_bandwidth(self) -> float:
        """Return bytes/s one way between GPU and host: PCIe 5.0 where nothing is stated."""
        return self.host_bytes_per_s or PCIE_5_BYTES_PER_S


@dataclass(frozen=True, slots=True)
class StatedGpu:
    """Figures of a GPU that are stated instead of, or beside, a catalog entry. None: not stated."""

    memory_bytes: float | None = None
    bandwidth_bytes_per_s: float | None = None
    flops: float | None = None
    host_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory set aside for everything but weights and cache: a share of the memory, or bytes."""

    share: float | None = None
    size_bytes: float | None = None

    def of(self, memory_bytes: float) -> float:
        """Return the bytes set aside."""
        if self.size_bytes is not None:
            return self.size_bytes
        return (self.share or 0.0) * memory_bytes


def subject(catalog: Catalog | None, name: str | None, stated: StatedShape) -> Subject:
    """Return the model called `name` with what is stated changed, or one of stated figures alone.

    Raises `SizingError` for figures that cannot be changed, `UnknownName` for the name.
    """
    if name is None or catalog is None:
        return _checked(_textbook_subject(stated), stated)
    entry = catalog.model(name)
    arch = catalog.architecture(entry.name)
    return _checked(Subject(entry.name, _changed(arch, stated), True, arch.native_format), stated)


def gpu(catalog: Catalog | None, name: str | None, stated: StatedGpu, unit: Unit) -> Gpu:
    """Return the GPU called `name` with what is stated changed, or one of stated figures. Raises `UnknownName`."""
    rates = {} if stated.flops is None else {DEFAULT_FORMAT: stated.flops}
    if name is None or catalog is None:
        return Gpu(None, stated.memory_bytes, stated.bandwidth_bytes_per_s, rates, stated.host_bytes_per_s, None)
    entry = catalog.gpu(name)
    device = entry.device()
    if stated.memory_bytes is not None:
        device = replace(device, usable_bytes=stated.memory_bytes)
    return Gpu(
        name=entry.name,
        memory_bytes=stated.memory_bytes or entry.memory.label_gb * unit.size_bytes,
        bandwidth_bytes_per_s=stated.bandwidth_bytes_per_s or device.bandwidth_bytes_per_s,
        flops=rates or device.flops,
        host_bytes_per_s=stated.host_bytes_per_s or device.pcie_bytes_per_s or None,
        device=device,
    )


def _checked(about: Subject, stated: StatedShape) -> Subject:
    """Refuse stated figures that no model can have, or that say something of a cache and leave its size open."""
    heads, kv_heads = about.arch.n_heads, about.arch.n_kv_heads
    if (stated.heads or stated.kv_heads) and heads and kv_heads and not about.arch.is_mla and heads % kv_heads:
        raise SizingError(f"{heads:,} query heads cannot share {kv_heads:,} KV heads: --kv-heads must divide --heads")
    if stated.head_dim and not about.has_cache_shape:
        raise SizingError("--head-dim alone is no shape of the KV cache: give --layers and --kv-heads too")
    return about


def _textbook_subject(stated: StatedShape) -> Subject:
    heads, head_dim, layers = stated.heads or 0, stated.head_dim or 0, stated.layers or 0
    kv_heads = stated.kv_heads or heads
    elements = kv_elements_per_token(layers, kv_heads, head_dim)
    arch = Architecture(
        name="",
        family="",
        n_layers=layers,
        d_model=stated.width or heads * head_dim,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        d_ff=0,
        vocab=0,
        tie_embeddings=False,
        gated_mlp=True,
        attention="GQA",
        n_attention_layers=layers,
        kv_elements_per_token=int(elements),
        n_params_total=math.ceil(stated.parameters or 0.0),
        n_params_active=math.ceil(stated.parameters or 0.0),
        native_format=DEFAULT_FORMAT,
        max_position=0,
    )
    return Subject(None, arch, False, DEFAULT_FORMAT)


def _changed(arch: Architecture, stated: StatedShape) -> Architecture:
    if stated == StatedShape():
        return arch
    if stated.parameters is not None and arch.is_moe:
        raise SizingError(f"--params does not go with {arch.name}: a mixture of experts has two parameter counts")
    is_plain = not (arch.is_mla or arch.n_local_layers or arch.n_state_layers)
    changes_cache = any((stated.layers, stated.kv_heads, stated.head_dim))
    if not is_plain and changes_cache:
        raise SizingError(
            f"--layers, --kv-heads and --head-dim do not go with {arch.name}: its layers do not all cache full keys and values"
        )
    layers = stated.layers or arch.n_layers
    kv_heads, head_dim = stated.kv_heads or arch.n_kv_heads, stated.head_dim or arch.head_dim
    elements = int(kv_elements_per_token(layers, kv_heads, head_dim)) if changes_cache else arch.kv_elements_per_token
    parameters = math.ceil(stated.parameters) if stated.parameters is not None else None
    return replace(
        arch,
        n_layers=layers,
        n_attention_layers=stated.layers or arch.n_attention_layers,
        n_heads=stated.heads or arch.n_heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        d_model=stated.width or arch.d_model,
        kv_elements_per_token=elements,
        n_params_total=parameters or arch.n_params_total,
        n_params_active=parameters or arch.n_params_active,
    )
