"""The generated parts of the page about `planner export`: its targets, its engines, and a command of a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from export_plans import exported, prod

from planner.export import all_targets
from planner.export.engine import all_engines


def targets() -> str:
    """Return what each target writes, of which engines, and what it leaves to decide."""
    lines = ["| target | writes | engines | left to decide |", "| --- | --- | --- | --- |"]
    for target in all_targets().values():
        engines = ", ".join(target.engines) or "any"
        lines.append(f"| `{target.name}` | {target.sentence} | {engines} | {'; '.join(target.undecided) or '-'} |")
    return "\n".join(lines)


def engines() -> str:
    """Return the release whose flags are known of each engine, and where they are documented."""
    lines = ["| engine | flags of | documented in | image | weights made on load |", "| --- | --- | --- | --- | --- |"]
    for engine in all_engines().values():
        image = engine.images["nvidia"].format(version="RELEASE")
        made = engine.on_load("fp8", engine.version)
        lines.append(
            f"| {engine.name} | {engine.version} | <{engine.source}> | `{image}` | fp8, with `--quantization {made}` |"
        )
    return "\n".join(lines)


def script() -> str:
    """Return the part of a script that starts one pool."""
    text = exported(prod(), "vllm", pools=frozenset({"chat-2"})).text
    case = text[text.index("# chat-2:") : text.index("\n(*) usage")].rstrip()
    return f"```sh\n{case}\n```"


def export_parts() -> Mapping[str, Callable[[], str]]:
    """Return the generated parts of the page."""
    return {"targets": targets, "engines": engines, "script": script}
