"""The pools of a plan as they are deployed: one entry per pool and place, with what starts one of its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.export.choices import Choices
from planner.export.engine import WIDE_DTYPES, Engine, Launch, Settings, Unsupported, all_engines, full_release
from planner.export.gpus import vendor
from planner.export.names import unique_names
from planner.plan.schema import NodePlan, Placement, Plan, Pool

SPOT = "spot"


@dataclass(frozen=True)
class PlacedPool:
    """Replicas of a pool at one place.

    `name` is theirs alone in the export, in letters that Kubernetes takes. `image` is None where there is no default,
    `given_image` where the user named none.
    `nodes` are the nodes of the plan that they may lie on. Over the periods of the plan the place has `least` to `most`
    replicas; where a pool has several places, the plan does not say which of them shrinks, and each keeps its share,
    rounded up.
    """

    name: str
    pool: Pool
    place: Placement
    engine: Engine
    launch: Launch
    settings: Settings
    image: str | None
    given_image: str | None
    nodes: tuple[NodePlan, ...]
    least: int
    most: int

    @property
    def gpus_per_node(self) -> int:
        """GPUs that a replica takes on each of its nodes."""
        return min(self.launch.gpus, self.launch.serving.gpus_in_node)

    @property
    def weights(self) -> str:
        """The format of the weights, and where it is made."""
        return self.pool.weights + (", quantised as they load" if self.launch.quantised_on_load else "")


def placed_pools(
    plan: Plan, pools: Mapping[str, Engine], choices: Choices, longest_name: int
) -> tuple[PlacedPool, ...]:
    """Return all replicas of some pools by place. Raises `UnsupportedPools` with everything that cannot be started."""
    launches: dict[str, tuple[Launch, Settings]] = {}
    problems: dict[str, Unsupported] = {}
    for pool in plan.pools:
        if pool.name in pools:
            try:
                launch = _launch(pool, pools[pool.name], choices.checkpoints.get(pool.name))
                launches[pool.name] = launch, pools[pool.name].settings(launch)
            except Unsupported as problem:
                problems[pool.name] = problem
    if problems:
        raise UnsupportedPools(problems)
    places = [(pool, place) for pool in plan.pools if pool.name in launches for place in pool.placement]
    names = unique_names([_full_name(pool, place) for pool, place in places], longest_name)
    return tuple(
        PlacedPool(
            name=name,
            pool=pool,
            place=place,
            engine=pools[pool.name],
            launch=launches[pool.name][0],
            settings=launches[pool.name][1],
            image=choices.image_of(pool.name) or _image(pool, pools[pool.name]),
            given_image=choices.image_of(pool.name),
            nodes=_nodes(plan, pool, place, launches[pool.name][0]),
            least=_share(min(pool.replicas_by_period.values()), pool, place),
            most=place.replicas,
        )
        for name, (pool, place) in zip(names, places, strict=True)
    )


class UnsupportedPools(Exception):  # noqa: N818
    """Pools that cannot be exported, each with the reason."""

    def __init__(self, problems: Mapping[str, Unsupported]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{name}: {p.reason}" for name, p in problems.items()))


def engine_of(pool: Pool) -> Engine:
    """Return the engine of a pool. Raises `Unsupported` for one that no export knows."""
    engines = all_engines()
    if pool.engine.name not in engines:
        raise Unsupported(
            f"it runs on {pool.engine.name}, whose flags exports do not know; they know those of {', '.join(engines)}",
            "`--to csv` lists the nodes to buy all the same; `--pool NAME` exports other pools",
        )
    return engines[pool.engine.name]


def _launch(pool: Pool, engine: Engine, checkpoint: str | None) -> Launch:
    """Find the weights that a pool loads: the checkpoint that is named, else the model's own where they give the format."""
    serving = pool.serving
    if serving is None:
        raise Unsupported(
            "its plan is of an older release, which did not save how engines are started",
            "solve its spec again; `planner solve SPEC --prefer PLAN` keeps the fleet",
            code="plan/older",
        )
    named = checkpoint or pool.checkpoint
    if named is not None:
        return Launch(pool, serving, _repository(named), quantised_on_load=False)
    own = serving.repository
    is_wide = serving.native_weights in WIDE_DTYPES
    if own is not None and (pool.weights == serving.native_weights or (is_wide and pool.weights in WIDE_DTYPES)):
        return Launch(pool, serving, _repository(own), quantised_on_load=False)
    if own is not None and is_wide and engine.on_load(pool.weights, pool.engine.version) is not None:
        return Launch(pool, serving, _repository(own), quantised_on_load=True)
    reason = f"it serves {pool.weights} weights, and no checkpoint is named that has them"
    if own is not None:
        reason += (
            f": {own} has {serving.native_weights}, which {engine.name} does not quantise to {pool.weights} on load"
        )
    raise Unsupported(
        reason,
        f"name one with `--checkpoint {pool.name}=ORG/REPOSITORY`, or in the spec under models.{pool.model}.checkpoints",
        f"or plan without this format: models.{pool.model}.weights lists those to pick from",
        code="export/no-checkpoint",
    )


def _repository(name: str) -> str:
    if name.startswith("-"):
        raise Unsupported(f"`{name}` is not a repository or a path: engines would read it as a flag")
    return name


def _image(pool: Pool, engine: Engine) -> str | None:
    pattern = engine.images.get(vendor(pool.gpu))
    return None if pattern is None else pattern.format(version=full_release(pool.engine.version))


def _full_name(pool: Pool, place: Placement) -> str:
    return pool.name if len(pool.placement) == 1 else f"{pool.name}-{place.provider}-{place.region}"


def _nodes(plan: Plan, pool: Pool, place: Placement, launch: Launch) -> tuple[NodePlan, ...]:
    least = min(launch.gpus, launch.serving.gpus_in_node)
    return tuple(
        n
        for n in plan.nodes
        if (n.provider, n.region, n.gpu) == (place.provider, place.region, pool.gpu)
        and (n.term == SPOT) == pool.spot
        and n.gpus_per_node >= least
        and pool.gpus_per_node in (None, n.gpus_per_node)
    )


def _share(least: int, pool: Pool, place: Placement) -> int:
    """Return the replicas that a place keeps when the pool has its least: its share, rounded up."""
    total = sum(p.replicas for p in pool.placement)
    return -(-least * place.replicas // total)
