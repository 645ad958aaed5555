"""What the second rating pass hands to the making of candidates."""

from __future__ import annotations

from dataclasses import dataclass

from planner.candidates.types import Array


@dataclass(frozen=True)
class PoolRating:
    """Largest mean batch and requests/s of one replica in pools of at least `replicas`, arrays [shape, workload].

    A rate of 0 means that the workload cannot be served, or that this pool class is of no use there. `limit_batch` is
    the largest batch before the factor of a lone replica.
    """

    replicas: int
    batch: Array
    rate: Array
    limit_batch: Array


@dataclass(frozen=True)
class SharedRating:
    """Largest mean batch and requests/s, all workloads together, of one replica that a group of workloads shares.

    `group` holds indices of workloads with `mix`, their shares of the requests, `shape` that of the shape; `kv_pool_bytes` is the
    KV room per replica at their mix.
    """

    replicas: int
    shape: int
    group: tuple[int, ...]
    mix: tuple[float, ...]
    batch: float
    limit_batch: float
    rate: float
    kv_pool_bytes: float
