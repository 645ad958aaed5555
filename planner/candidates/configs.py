"""Models that a spec brings along as a `config.json`: read from below the folder of the spec, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.catalog.huggingface import UnsupportedConfig, entry_from_config, read_config
from planner.catalog.huggingface.read import quantisation_beside
from planner.catalog.model import ModelEntry
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.source import FilePath
from planner.spec import LoadedSpec

READ = "with the spec"


def config_models(loaded: LoadedSpec) -> tuple[dict[str, ModelEntry], list[Diagnostic]]:
    """Return the entries of all models that name a config, by the path in the spec, and what is wrong with the others."""
    entries: dict[str, ModelEntry] = {}
    problems: list[Diagnostic] = []
    home = loaded.home
    for name, path in _configs(loaded):
        span = loaded.span(("models", name, "config"))
        try:
            entries[path] = _entry(home, path)
        except UnsupportedConfig as error:
            problems += [Diagnostic("model/unsupported", f"`{path}`: {reason}", span) for reason in error.reasons]
        except DiagnosticError as error:
            problems += [Diagnostic(d.code, f"`{path}`: {d.message}", span) for d in error.diagnostics]
        except OSError as error:
            problems.append(Diagnostic("model/config", f"cannot read `{path}`: {error.strerror or error}", span))
    return entries, problems


def _configs(loaded: LoadedSpec) -> Iterator[tuple[str, str]]:
    if loaded.spec is None:
        return
    for name, model in loaded.spec.models.items():
        if model.config is not None:
            yield name, model.config


def _entry(home: FilePath, path: str) -> ModelEntry:
    file = home / path
    if not file.resolve().is_relative_to(home.resolve()):
        raise OSError("it leads outside of the folder of the spec")
    beside: Mapping[str, Any] | None = quantisation_beside(file)
    return entry_from_config(read_config(file), path, "config.json of the spec", READ, beside)
