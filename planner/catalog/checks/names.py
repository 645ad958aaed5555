"""Checks of short names and labels: each must lead to something."""

from __future__ import annotations

from planner.catalog.checks.findings import Findings, place
from planner.catalog.store import Catalog
from planner.diagnostics import Diagnostic


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
