"""Time that the GPUs of one replica spend talking: all-reduce, all-to-all, pipeline hops; inside nodes and across."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.physics.constants import SpeedConstants
from planner.physics.types import Architecture, Device, Layout

ACTIVATION_BYTES = 2.0
"""Bytes of one activation element: 16-bit, as in the fit."""

ALLTOALL_BYTES = 1.5
"""Mean bytes per element of dispatch (8-bit) and combine (16-bit), as in the fit."""

COLLECTIVES_PER_LAYER = 2
"""One after the attention and one after the feed-forward part; dispatch and combine for experts."""

SERVER_GPUS = 8
"""Largest scale-up domain of one server; a wider one (NVL72) joins servers with the same links."""


@dataclass(frozen=True, slots=True)
class Collectives:
    """Seconds per step and per token of the step, before the engine multiplier."""

    step_s: float
    allreduce_token_s: float
    alltoall_token_s: float
    hop_token_s: float


@dataclass(frozen=True, slots=True)
class _Link:
    """The GPU link that a group inside a node uses."""

    bytes_per_s: float
    allreduce_latency_s: float
    allreduce_share: float
    alltoall_latency_s: float
    alltoall_share: float


@dataclass(frozen=True, slots=True)
class _Group:
    """Ranks of a collective: how many in all, inside one node, and over how many nodes."""

    ranks: int
    inside: int

    @property
    def nodes(self) -> int:
        return -(-self.ranks // self.inside)


def collectives(arch: Architecture, device: Device, layout: Layout, constants: SpeedConstants) -> Collectives:
    """Return the collective times of a layout. All-reduce and all-to-all: catalog/calibration (fitted inside nodes).

    Across nodes an all-reduce runs in two levels: inside each node, then between nodes where every GPU carries its
    share of the data over its own network port. Rates and latency there are assumptions marked in the calibration.
    Raises `ValueError` for several GPUs of a device without any link.
    """
    if layout.gpus > 1 and max(device.link_bytes_per_s, device.pcie_bytes_per_s) <= 0.0:
        raise ValueError(f"{device.name} has no link between GPUs")
    domain = _domain(device, layout)
    tensor = _group(layout.tensor, domain)
    everyone = _group(layout.tensor * layout.attention_data, domain)
    allreduce_step, allreduce_token = _allreduce(arch, device, layout, tensor, constants)
    alltoall_step, alltoall_token = _alltoall(arch, device, layout, everyone, constants)
    hop_step, hop_token = _hops(arch, device, layout, domain, constants)
    step = allreduce_step + alltoall_step + hop_step
    return Collectives(step, allreduce_token, alltoall_token, hop_token)


def _domain(device: Device, layout: Layout) -> int:
    """GPUs of the replica that share links: a node, or more servers in one scale-up domain."""
    if not layout.crosses_nodes:
        return layout.gpus
    return max(layout.node_gpus, device.scale_up_gpus) if device.scale_up_gpus > SERVER_GPUS else layout.node_gpus


def _group(ranks: int, domain: int) -> _Group:
    return _Group(ranks, min(ranks, domain))


def _link(device: Device, ranks: int, constants: SpeedConstants) -> _Link:
    """Pick the link of `ranks` GPUs: groups wider than the scale-up domain (bridged cards) fall back to PCIe."""
    c = constants
    wired = device.link_class in ("nvlink", "xgmi") and ranks <= max(device.scale_up_gpus, 1)
    if not wired:
        rate = device.pcie_bytes_per_s or device.link_bytes_per_s
        latency = c.alltoall_latency_s * c.alltoall_latency_pcie_factor
        return _Link(rate, c.allreduce_latency_pcie_s, c.allreduce_share_pcie, latency, c.alltoall_share_pcie)
    rate = device.link_bytes_per_s
    if device.link_class == "xgmi":
        latency, share = c.allreduce_latency_xgmi_s, c.allreduce_share_xgmi
    else:
        latency, share = c.allreduce_latency_nvlink_s, c.allreduce_share_nvlink
    return _Link(rate, latency, share, c.alltoall_latency_s, c.alltoall_share)


def _network_bytes_per_s(device: Device, constants: SpeedConstants) -> float:
    port = min(constants.network_bytes_per_s, device.link_bytes_per_s or device.pcie_bytes_per_s)
    return port * constants.network_share


def _allreduce(
    arch: Architecture, device: Device, layout: Layout, group: _Group, constants: SpeedConstants
) -> tuple[float, float]:
    """Seconds per step and per token of all tensor-parallel all-reduces."""
    token_bytes = arch.d_model * ACTIVATION_BYTES / layout.attention_data
    step = token = 0.0
    if group.inside > 1:
        link = _link(device, group.inside, constants)
        step += link.allreduce_latency_s * (
            1.0 + constants.allreduce_latency_doubling * (math.log2(group.inside) - 1.0)
        )
        ring = 2.0 * (group.inside - 1) / group.inside
        token += ring * token_bytes / (link.allreduce_share * link.bytes_per_s)
    if group.nodes > 1:
        step += constants.network_latency_s
        ring = 2.0 * (group.nodes - 1) / group.nodes
        token += ring * token_bytes / group.inside / _network_bytes_per_s(device, constants)
    calls = COLLECTIVES_PER_LAYER * arch.n_layers
    return calls * step, calls * token


def _alltoall(
    arch: Architecture, device: Device, layout: Layout, group: _Group, constants: SpeedConstants
) -> tuple[float, float]:
    """Seconds per step and per token of expert dispatch and combine under attention-data parallelism."""
    if layout.attention_data == 1 or not arch.is_moe:
        return 0.0, 0.0
    sent = min(1.0, arch.experts_per_token / group.ranks) * arch.d_model * ALLTOALL_BYTES
    link = _link(device, group.inside, constants)
    step = link.alltoall_latency_s
    token = (group.inside - 1) / group.ranks * sent / (link.alltoall_share * link.bytes_per_s)
    if group.nodes > 1:
        step += constants.network_latency_s
        remote = (group.ranks - group.inside) / group.ranks
        token += remote * sent / _network_bytes_per_s(device, constants)
    calls = COLLECTIVES_PER_LAYER * arch.n_moe_layers
    return calls * step, calls * token


def _hops(
    arch: Architecture, device: Device, layout: Layout, domain: int, constants: SpeedConstants
) -> tuple[float, float]:
    """Seconds per step and per token of handing activations to a stage on another node.

    Hops inside a node are part of the fitted slowdown per stage.
    """
    stage = layout.tensor * layout.attention_data
    crossing = layout.pipeline - 1 if stage > domain else -(-layout.gpus // domain) - 1
    if layout.pipeline == 1 or crossing == 0:
        return 0.0, 0.0
    token_bytes = arch.d_model * ACTIVATION_BYTES / layout.attention_data
    token = token_bytes / _network_bytes_per_s(device, constants)
    return crossing * constants.network_latency_s, crossing * token
