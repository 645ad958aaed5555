"""Export a plan: check that its pools can be started, and write the files of a target."""

from __future__ import annotations

from planner.catalog.engine import version_key
from planner.diagnostics import Diagnostic, DiagnosticError, Span
from planner.export.choices import Choices
from planner.export.documents import Exported, header
from planner.export.engine import Engine, Unsupported
from planner.export.placed import PlacedPool, UnsupportedPools, engine_of, placed_pools
from planner.export.target import Target
from planner.plan.schema import Plan


def export(plan: Plan, path: str, target: Target, choices: Choices) -> Exported:
    """Return the files of a plan for a target. Raises `DiagnosticError` at `path` for all that it cannot express."""
    try:
        engines, notes = _engines(plan, target, choices)
        placed = placed_pools(plan, engines, choices, target.longest_name)
        written = target.write(plan, placed)
    except UnsupportedPools as error:
        raise DiagnosticError(_diagnostic(path, name, problem) for name, problem in error.problems.items()) from None
    notes += [*_on_load(placed), *_of_other_releases(placed), *written.notes]
    return Exported(
        header=target.first_line + (header(plan, target.name, target.undecided) if target.has_comment else ""),
        documents=written.documents,
        ending=target.ending,
        separator=target.separator,
        notes=tuple(notes),
    )


def _engines(plan: Plan, target: Target, choices: Choices) -> tuple[dict[str, Engine], list[str]]:
    """Return the engine of every pool to export, by name, and notes about pools that are left out."""
    found: dict[str, Engine] = {}
    problems: dict[str, Unsupported] = {}
    notes: list[str] = []
    wanted = [p for p in plan.pools if target.engines and (not choices.pools or p.name in choices.pools)]
    for pool in wanted:
        try:
            if target.leaves_out and pool.engine.name not in target.engines:
                notes.append(f"left out: pool `{pool.name}` runs on {pool.engine.name}")
                continue
            engine = engine_of(pool)
            if engine.name not in target.engines:
                raise Unsupported(f"it runs on {engine.name}; {target.name} starts {', '.join(target.engines)} only")
            found[pool.name] = engine
        except Unsupported as problem:
            problems[pool.name] = problem
    if wanted and not found and not problems:
        problems = {p.name: Unsupported(f"it runs on {p.engine.name}, not on {target.name}") for p in wanted}
    if problems:
        raise UnsupportedPools(problems)
    return found, notes


def _on_load(placed: tuple[PlacedPool, ...]) -> list[str]:
    """Say which pools quantise their weights as they load: that is no checkpoint whose quality anybody published."""
    names = dict.fromkeys(p.pool.name for p in placed if p.launch.quantised_on_load)
    said = f"weights are quantised as they load in {', '.join(names)}; --checkpoint POOL=ORG/REPOSITORY names prepared ones"
    return [said] if names else []


def _of_other_releases(placed: tuple[PlacedPool, ...]) -> list[str]:
    """Say which pools run on a release whose flags were not looked up."""
    others = {
        (p.engine.name, p.pool.engine.version, p.engine.version)
        for p in placed
        if version_key(p.pool.engine.version)[:2] != version_key(p.engine.version)[:2]
    }
    return [
        f"flags are those of {name} {known}; the plan is for {planned}: check them against that release"
        for name, planned, known in sorted(others)
    ]


def _diagnostic(path: str, pool: str, problem: Unsupported) -> Diagnostic:
    return Diagnostic(problem.code, f"pool `{pool}`: {problem.reason}", Span(path, 1, 1, 2), help=problem.help)
