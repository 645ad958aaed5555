"""The part of the program that is about nodes alone: what it costs to hold given numbers of replicas of each size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.program.compile import CompiledProgram, compile_model
from planner.program.data import Column, FleetProblem, ModelRules
from planner.program.fleet import build_supply
from planner.program.index import ProgramIndex


@dataclass(frozen=True, order=True, slots=True)
class Size:
    """What nodes know of a replica: its GPU type, the GPUs it takes in each of how many nodes, and where it may lie."""

    gpu: str
    node_gpus: int
    nodes_spanned: int
    cells: tuple[str, ...]
    cells_by_period: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, column: Column) -> Size:
        """Return the size of the replicas of a candidate."""
        return cls(column.gpu, column.node_gpus, column.nodes_spanned, column.cells, column.cells_by_period)

    @property
    def name(self) -> str:
        """Name of the stand-in candidate of this size in the supply program."""
        return f"{'+'.join(self.cells)}/{self.node_gpus}x{self.nodes_spanned}"


def sizes_of(columns: Iterable[Column]) -> tuple[Size, ...]:
    """Return the sizes that replicas of the candidates have, sorted."""
    return tuple(sorted({Size.of(c) for c in columns}))


def compile_supply(problem: FleetProblem, blocks: Sequence[FleetProblem] = ()) -> CompiledProgram:
    """Compile every row that couples models, over stand-ins: one candidate for each size, which serves nothing.

    The column `replicas[Size.name]` counts all replicas of that size in the fleet, except those of the models in `blocks`
    (problems of one model each), which the program holds with all their candidates and rows.
    """
    most = _most_replicas(problem)
    stated = replace(
        problem,
        columns=(*(c for b in blocks for c in b.columns), *(_stand_in(size) for size in sorted(most))),
        demands=tuple(d for b in blocks for d in b.demands),
        rules=(
            *(r for b in blocks for r in b.rules),
            *(ModelRules(size.name, 1, False, 0, count) for size, count in sorted(most.items())),
        ),
        losses=tuple(sorted(name for b in blocks for name in b.losses)),
        outages=tuple(o for b in blocks for o in b.outages),
        routed_outages=tuple(o for b in blocks for o in b.routed_outages),
        block_bounds=(),
        cover_weights=tuple(w for b in blocks for w in b.cover_weights),
    )
    return compile_model(build_supply(stated))


def _most_replicas(problem: FleetProblem) -> dict[Size, int]:
    """Return the replicas of each size beyond which some cheapest fleet does not go.

    Among candidates that serve the same workloads of a model, any one could do what all of them do on as many nodes. Where
    shares of the cost are limited, every one may be had for the nodes that it lets buy.
    """
    index = ProgramIndex(problem)
    alike: dict[tuple[object, ...], int] = defaultdict(int)
    for column in problem.columns:
        own = column.name if problem.cost_shares else frozenset(column.services)
        key = (Size.of(column), column.model, own)
        alike[key] = max(alike[key], index.most_replicas[column.name])
    most: dict[Size, int] = defaultdict(int)
    for (size, *_), count in alike.items():
        assert isinstance(size, Size)
        most[size] += count
    return most


def _stand_in(size: Size) -> Column:
    return Column(
        name=size.name,
        model=size.name,
        shape=size.name,
        gpu=size.gpu,
        weights="",
        kv_cache="",
        node_gpus=size.node_gpus,
        nodes_spanned=size.nodes_spanned,
        min_replicas=1,
        cells=size.cells,
        cells_by_period=size.cells_by_period,
        kv_pool_bytes=1.0,
        batch_slots=1.0,
        bandwidth_bytes_per_s=1.0,
        flops_per_s=1.0,
        services={},
    )
