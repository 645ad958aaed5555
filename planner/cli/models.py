"""Models that a command is given as a file: the `config.json` of a Hugging Face repository."""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

from planner.catalog import Catalog, find_catalog
from planner.catalog.huggingface import UnsupportedConfig, entry_from_config, parse_config, read_config
from planner.catalog.huggingface.read import LARGEST_BYTES, quantisation_beside
from planner.catalog.model import ModelEntry
from planner.catalog.store import shipped_catalog
from planner.cli.inputs import refuse
from planner.cli.streams import STANDARD, usage_error
from planner.diagnostics import STANDARD_INPUT_NAME, Diagnostic, DiagnosticError, Span

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def entry_name(name: str | None, config: str) -> str:
    """Return the name of an imported entry: as given, else that of the folders the file lies in. Leaves on a bad one."""
    if name is None:
        folders = Path(config).absolute().parent.parts[-2:] if config != STANDARD else ()
        name = "/".join(folders)
        if not _NAME.fullmatch(name):
            usage_error("give the model a name: --name ORG/NAME")
        return name
    if not _NAME.fullmatch(name):
        usage_error(f"--name {name!r} is no ORG/NAME of letters, digits, dots, dashes and underscores")
    return name


def import_config(config: str, name: str, read: date | None = None) -> ModelEntry:
    """Return the entry of a config file. Leaves with a usage error, or with diagnostics when it cannot be used."""
    try:
        data, beside = _files(config)
    except OSError as error:
        usage_error(f"cannot read {config}: {error.strerror or error}")
    except DiagnosticError as error:
        refuse(error.diagnostics)
    shown = STANDARD_INPUT_NAME if config == STANDARD else config
    try:
        return entry_from_config(
            data, name, "config.json of the model repository", (read or date.today()).isoformat(), beside
        )
    except UnsupportedConfig as error:
        span = Span(shown, 1, 1, 2)
        refuse([Diagnostic("model/unsupported", f"{name}: {reason}", span) for reason in error.reasons])


def _files(config: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    if config == STANDARD:
        return parse_config(sys.stdin.buffer.read(LARGEST_BYTES + 1), STANDARD_INPUT_NAME), None
    path = Path(config)
    return read_config(path), quantisation_beside(path)


def model_file(folder: Path | None, name: str) -> Path:
    """Return where the catalog in `folder`, or the nearest one, keeps a model. Leaves when there is none to write to."""
    root = folder or find_catalog(Path.cwd())
    if root is None or not (root / "catalog.yaml").is_file():
        usage_error("no catalog folder here to write to; give --catalog DIR, or --out FILE")
    if root.resolve() == shipped_catalog().resolve() and folder is None and root.name == "_catalog":
        usage_error("the catalog of the installed package is not changed; give --catalog DIR, or --out FILE")
    try:
        Catalog.open(root)
    except DiagnosticError as error:
        refuse(error.diagnostics)
    return root / "models" / f"{name}.yaml"


def name_there(folder: Path | None, name: str) -> str:
    """Return a name as the catalog that an entry is written to spells it already, else as given. Leaves without one."""
    root = model_file(folder, name).parents[2]
    same = (known for known in Catalog.open(root).model_names() if known.casefold() == name.casefold())
    return next(same, name)
