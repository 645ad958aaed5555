"""The part of the program that is about nodes alone: what it costs to hold given numbers of replicas of each size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True)
class Needs:
    """Replicas of each size beyond which some cheapest fleet does not go, and the `penalty` of so many of each candidate."""

    most: Mapping[Size, int]
    penalty: float

    @classmethod
    def of(cls, problem: FleetProblem) -> Needs:
        """Return what the models of a problem need at most.

        Among candidates that serve the same workloads of a model at the same mix, any one could do what all of them do on as many nodes.
        Where shares of the cost are limited, every one may be had for the nodes that it lets buy.
        """
        most_of = ProgramIndex(problem).most_replicas
        alike: dict[tuple[Size, str, object], int] = defaultdict(int)
        for column in problem.columns:
            mix = frozenset((w, s.mix_share) for w, s in column.services.items())
            own = column.name if problem.cost_shares else mix
            key = (Size.of(column), column.model, own)
            alike[key] = max(alike[key], most_of[column.name])
        most: dict[Size, int] = defaultdict(int)
        for (size, *_), count in alike.items():
            most[size] += count
        return cls(dict(most), sum(c.penalty * most_of[c.name] for c in problem.columns))

    @classmethod
    def together(cls, parts: Iterable[Needs]) -> Needs:
        """Return what several models need at most."""
        most: dict[Size, int] = defaultdict(int)
        penalty = 0.0
        for part in parts:
            penalty += part.penalty
            for size, count in part.most.items():
                most[size] += count
        return cls(dict(most), penalty)


def compile_supply(problem: FleetProblem, needs: Needs, blocks: Sequence[FleetProblem] = ()) -> CompiledProgram:
    """Compile every row that couples models, over stand-ins: one candidate for each size, which serves nothing.

    The column `replicas[Size.name]` counts all replicas of that size in the fleet, except those of the models in `blocks`
    (problems of one model each), which the program holds with all their candidates and rows.
    """
    most = needs.most
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
