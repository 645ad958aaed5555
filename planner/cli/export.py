"""`planner export`: write deployment files of a saved plan, or the nodes to buy as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.delivery import check_out
from planner.cli.inputs import read_plan, refuse
from planner.cli.options import QuietOption, flag, is_file
from planner.cli.plan_spec import check_fleet
from planner.cli.streams import answer, note, save, usage_error

if TYPE_CHECKING:
    from planner.export import Choices, Exported
    from planner.export.target import Target
    from planner.plan.schema import Plan


def export(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A saved plan, or - for standard input.")],
    to: Annotated[
        str,
        flag(
            "--to", "What to write: csv, dynamo, kserve, kubernetes, llm-d, sglang, skypilot or vllm.", metavar="TARGET"
        ),
    ],
    pool: Annotated[list[str] | None, flag("--pool", "Only this pool; repeatable.", metavar="NAME")] = None,
    image: Annotated[
        list[str] | None,
        flag("--image", "Container image of a pool, a model, or all; repeatable.", metavar="[NAME=]IMAGE"),
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        flag("--checkpoint", "Weights of a pool or a model: a repository or path; repeatable.", metavar="NAME=WEIGHTS"),
    ] = None,
    out: Annotated[str | None, flag("--out", "Save everything in one file.", "-o", metavar="FILE")] = None,
    out_dir: Annotated[
        Path | None, flag("--out-dir", "Save a file for every pool and place in this folder.", metavar="DIR")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Write what deploys a plan: shell scripts, manifests, values of charts; or the nodes to buy.

    Example: planner export plan.json --to kubernetes --out-dir deploy

    Nothing is applied. What the plan does not decide stands at the start of every file.
    """
    from planner.diagnostics import DiagnosticError
    from planner.export import export as export_plan

    target = _target(to)
    if out is not None and out_dir is not None:
        usage_error("--out-dir: give it or --out, not both")
    check_out(out, [plan])
    try:
        saved = read_plan(plan)
        check_fleet(saved, plan, "export")
        exported = export_plan(saved, plan, target, _choices(saved, target, pool or [], image or [], checkpoint or []))
    except DiagnosticError as error:
        refuse(error.diagnostics)
    if not quiet:
        for line in exported.notes:
            note(f"planner: {line}")
    _deliver(exported, target, out, out_dir, quiet)


def _target(name: str) -> Target:
    from difflib import get_close_matches

    from planner.export import all_targets

    targets = all_targets()
    if name not in targets:
        close = get_close_matches(name, targets, n=1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        usage_error(f"--to: there is no target `{name}`; there are {', '.join(targets)}{meant}")
    return targets[name]


def _choices(plan: Plan, target: Target, pools: list[str], images: list[str], checkpoints: list[str]) -> Choices:
    """Read the flags that name pools. Leaves with a usage error for pools that the plan does not have."""
    from planner.export import Choices
    from planner.export.choices import is_image

    known = [p.name for p in plan.pools]
    if pools and not target.engines:
        usage_error(f"--pool: {target.name} is about nodes, which pools share; leave it out")
    for name in pools:
        if name not in known:
            usage_error(f"--pool: the plan has no pool `{name}`; it has {', '.join(known)}")
    of_all: set[str] = set()
    image_of: dict[str, str] = {}
    for text in images:
        owners, image = _named(text, plan)
        if not is_image(image):
            usage_error(_no_image(text, image, plan))
        of_all |= set() if owners else {image}
        image_of |= dict.fromkeys(owners, image)
    if len(of_all) > 1:
        usage_error("--image: it names two images for all pools; write POOL=IMAGE for the image of one")
    weights: dict[str, str] = {}
    for text in checkpoints:
        owners, found = _named(text, plan)
        if not owners or not found:
            usage_error(
                f"--checkpoint: say whose weights `{text}` are, as `{known[0]}=ORG/REPOSITORY`; the plan has the pools "
                + ", ".join(known)
            )
        weights |= dict.fromkeys(owners, found)
    return Choices(next(iter(of_all), None), image_of, weights, frozenset(pools))


def _no_image(text: str, image: str, plan: Plan) -> str:
    """Say what is wrong with a value of --image: who it is for where that is no name of the plan, or else the image."""
    name, sign, _ = text.partition("=")
    if sign and image == text:
        names = ", ".join(dict.fromkeys([*(p.name for p in plan.pools), *(p.model for p in plan.pools)]))
        return f"--image: the plan has no pool or model `{name}`; it has {names}"
    return f"--image: `{image}` is no image; write [NAME=][HOST/]PATH[:TAG][@DIGEST], such as chat=vllm/vllm-openai:v0.33.0"


def _named(text: str, plan: Plan) -> tuple[tuple[str, ...], str]:
    """Split `POOL=VALUE` or `MODEL=VALUE` where it starts with a name of the plan, the longest that fits."""
    owners = {p.model: tuple(other.name for other in plan.pools if other.model == p.model) for p in plan.pools}
    owners |= {p.name: (p.name,) for p in plan.pools}
    fitting = [name for name in owners if text.startswith(f"{name}=")]
    if not fitting:
        return (), text
    name = max(fitting, key=len)
    return owners[name], text.removeprefix(f"{name}=")


def _deliver(exported: Exported, target: Target, out: str | None, folder: Path | None, quiet: bool) -> None:
    if folder is None:
        if target.one_each and len(exported.documents) > 1 and not quiet:
            note(f"planner: {target.name} takes these one by one; --out-dir DIR writes a file of each")
        if out is None or not is_file(out):
            answer(exported.text)
            return
        save(Path(out), exported.text)
        written = [Path(out)]
    else:
        _make(folder)
        written = [folder / exported.file(document)[0] for document in exported.documents]
        for path, document in zip(written, exported.documents, strict=True):
            save(path, exported.file(document)[1])
    if not quiet:
        for path in written:
            note(f"wrote {path}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        usage_error(f"cannot write into {folder}: {error.strerror or error}")
