"""Read a file of policies: text in; its policies, or every mistake with its place, out. Never raises on any text."""

from __future__ import annotations

from dataclasses import dataclass

from planner.diagnostics import Diagnostic, Span, has_errors
from planner.source import Document, YamlPath, parse
from planner.spec.checks import check_policy_names
from planner.spec.load import section_of, tidy, values_of
from planner.spec.policies import PolicyFile, PolicySpec


@dataclass(frozen=True)
class LoadedPolicies:
    """A file of policies that was read: its policies when they are usable, and what was found, sorted by place."""

    path: str
    policies: tuple[PolicySpec, ...] | None
    diagnostics: tuple[Diagnostic, ...]
    document: Document | None

    def span(self, path: YamlPath, key: bool = False) -> Span:
        """Return the place of a value, or its key."""
        return self.document.span(path, key) if self.document is not None else Span(self.path, 1, 1, 2)


def is_policy_file(document: Document) -> bool:
    """Tell whether a file has policies and nothing else that is of a spec."""
    return "policies" in document.data and all(
        key in PolicyFile.model_fields or key.startswith("x-") for key in document.data
    )


def load_policies(text: str, path: str) -> LoadedPolicies:
    """Read a file of policies. `path` names the file in messages; nothing is opened."""
    document, diagnostics = parse(text, path)
    if document is None:
        return LoadedPolicies(path, None, tidy(diagnostics), None)
    data, found = values_of(document)
    found.extend(check_policy_names(data, document))
    file = section_of(PolicyFile, data, document, found)
    found = [*diagnostics, *found]
    usable = file is not None and not has_errors(found)
    return LoadedPolicies(path, file.policies if file is not None and usable else None, tidy(found), document)
