"""Checks of short names and labels: each must lead to something."""

from __future__ import annotations

from planner.catalog.checks.findings import Findings, place
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic


def case_findings(catalog: Catalog) -> Findings:
    """Yield names that differ from another one in case only: names ignore case, so one of the two is never found."""
    for kind, names in (
        ("gpus", catalog.gpu_names()),
        ("models", catalog.model_names()),
        ("offers", catalog.providers()),
        ("engines", catalog.engine_names()),
        ("calibration", catalog.calibration_names()),
    ):
        first: dict[str, str] = {}
        for name in names:
            other = first.setdefault(name.casefold(), name)
            if other != name:
                message = f"{name}: {kind}/ has {other} too, and names ignore case"
                yield Diagnostic("catalog/duplicate-name", message, place(catalog.root / kind / f"{name}.yaml"))


def alias_findings(catalog: Catalog) -> Findings:
    """Yield short names that stand for nothing."""
    path = catalog.root / "aliases.yaml"
    aliases = catalog.aliases
    for kind, table, legal in (
        ("gpus", aliases.gpus, catalog.gpu_names()),
        ("models", aliases.models, catalog.model_names()),
    ):
        for alias, meant in table.items():
            for name in sorted(set(meant) - set(legal)):
                message = f"alias {alias}: no `{name}` in {kind}/"
                yield Diagnostic("catalog/unknown-name", message, place(path, kind, alias))


def label_findings(catalog: Catalog) -> Findings:
    """Yield labels that have neither a name nor a reason for having none, or a wrong name."""
    path = catalog.root / "labels.yaml"
    labels = catalog.labels
    for kind, table, legal in (
        ("gpus", labels.gpus, catalog.gpu_names()),
        ("models", labels.models, catalog.model_names()),
    ):
        for text, label in table.items():
            if bool(label.name) == bool(label.absent):
                message = f"label {text}: give a name, or `absent` with the reason"
                yield Diagnostic("catalog/invalid-value", message, place(path, kind, text))
            elif label.name and label.name not in legal:
                message = f"label {text}: no `{label.name}` in {kind}/"
                yield Diagnostic("catalog/unknown-name", message, place(path, kind, text))
