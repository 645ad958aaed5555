"""Weights or KV cache partly in host memory: time of a decode step, and how much has to move. Pure functions of floats."""

from __future__ import annotations


def split_step_s(
    resident_bytes: float, bandwidth_bytes_per_s: float, offloaded_bytes: float, host_bytes_per_s: float
) -> float:
    """Return the seconds of a step that reads part of its bytes from HBM and part through the host.

    The parts follow each other, since a layer needs its input before it starts (llama.cpp `--n-gpu-layers`, and
    FlexGen, arXiv 2303.06865, section 4 without overlap): resident / HBM bandwidth + offloaded / host bandwidth.
    """
    return resident_bytes / bandwidth_bytes_per_s + offloaded_bytes / host_bytes_per_s


def share_to_move(movable_bytes: float, fixed_bytes: float, memory_bytes: float) -> float | None:
    """Return the least share (0 to 1) of `movable_bytes` that must leave a memory that also holds `fixed_bytes`.

    None when `fixed_bytes` alone do not fit.
    """
    if fixed_bytes > memory_bytes:
        return None
    surplus = movable_bytes + fixed_bytes - memory_bytes
    return min(max(surplus, 0.0) / movable_bytes, 1.0)
