"""A shell script that starts one replica of a pool on the machine it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from planner.export.documents import Document, comment
from planner.export.engine import PORT, Settings, served_by
from planner.export.placed import PlacedPool
from planner.export.target import Target, Written
from planner.plan.schema import Plan

BASH = "#!/usr/bin/env bash\n"
UNDECIDED = (
    "which GPUs of a machine a replica takes (CUDA_VISIBLE_DEVICES)",
    "the port of each",
    "what routes to them",
)
RANK = '"${NODE_RANK:?rank of this machine in the replica, 0 on the first}"'
LEADER = '"${LEADER:?address of the first machine of the replica}"'
_START = """
# Start one replica of a pool on this machine: this script, the name of the pool, and more flags of the engine if need be.
# HOST and PORT say where it listens.
set -euo pipefail

usage() {
  printf 'usage: %s POOL [FLAG...]\\npools:\\n' "$0" >&2
"""


def script_target(engine: str, sentence: str) -> Target:
    """Return the target of the scripts of an engine."""

    def write(plan: Plan, placed: Sequence[PlacedPool]) -> Written:  # noqa: ARG001
        return Written((Document("serve", pool_script(placed)),))

    return Target(
        name=engine,
        sentence=sentence,
        ending=".sh",
        write=write,
        engines=(engine,),
        leaves_out=True,
        undecided=UNDECIDED,
        first_line=BASH,
    )


def pool_script(placed: Sequence[PlacedPool]) -> str:
    """Return the script below its comment; pools that have several places stand in it once."""
    pools = {p.pool.name: p for p in placed}
    names = "".join(f"  printf '  %s\\n' {quote(name)} >&2\n" for name in pools)
    cases = "".join(_case(p) for p in pools.values())
    return f'{_START}{names}  exit 64\n}}\n\ncase "${{1-}}" in\n{cases}\n(*) usage ;;\nesac\n'


def command(
    placed: PlacedPool, host: str, port: str, rank: str, leader: str, more: bool = True, indent: str = ""
) -> str:
    """Return the command of one replica over several lines; `host`, `port`, `rank` and `leader` are words of the shell.

    Where there are `more` flags, they are the arguments of the script at that time.
    """
    engine, launch = placed.engine, placed.launch
    served = {k: v for k, v in served_by(launch, "", "").items() if k not in ("host", "port")}
    lines = [*_words(placed, served), f"{engine.flags['host']} {host}", f"{engine.flags['port']} {port}"]
    lines += _words(placed, placed.settings)
    if launch.nodes > 1:
        joining = engine.joining(launch.nodes, rank, leader)
        lines += [f"{engine.flags[name]} {value}" for name, value in joining.items()]
    if more:
        lines.append('"$@"')
    return f" \\\n{indent}  ".join([" ".join(map(quote, engine.program)), *lines])


def worker_flags(placed: PlacedPool, rank: str) -> str:
    """Return the line that adds the flags of all nodes of a replica but the first; empty where there are none."""
    flags = " ".join(placed.engine.flags[name] for name in placed.engine.worker)
    return f'[ {rank} = 0 ] || set -- {flags} "$@"\n' if flags and placed.launch.nodes > 1 else ""


def _words(placed: PlacedPool, settings: Settings) -> list[str]:
    return [" ".join(map(quote, words)) for words in placed.engine.arguments(settings)]


def _case(placed: PlacedPool) -> str:
    pool, launch = placed.pool, placed.launch
    gpus = f"{launch.gpus} x {pool.gpu}" + (f" on {launch.nodes} nodes" if launch.nodes > 1 else "")
    places = ", ".join(f"{p.provider} {p.region} x{p.replicas}" for p in pool.placement)
    replicas = f"{pool.replicas} replica{'s' if pool.replicas > 1 else ''} of {pool.model}"
    said = comment([f"{pool.name}: {replicas}, each on {gpus}; {places}; weights {placed.weights}"])
    host, port = (f'"${{{name}:-{value}}}"' for name, value in (("HOST", "0.0.0.0"), ("PORT", PORT)))
    workers = worker_flags(placed, RANK)
    body = [
        "shift\n",
        *([workers] if workers else []),
        f"exec {command(placed, host, port, RANK, LEADER, indent='  ')}\n",
    ]
    # With its opening parenthesis, a pattern may be a word of the shell, such as `esac`.
    return f"\n{said}({quote(pool.name)})\n{''.join(f'  {line}' for line in body)}  ;;\n"
