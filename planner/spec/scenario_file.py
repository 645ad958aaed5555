"""Read a file of scenarios: text in; what is otherwise than in the spec in each, or every mistake with its place, out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator

from planner.diagnostics import Diagnostic, has_errors
from planner.source import Document, YamlPath, parse
from planner.spec.fields import Line, some
from planner.spec.load import section_of, tidy, values_of
from planner.spec.refuse import mistake
from planner.spec.section import Section

MOST_SCENARIOS = 10_000


def _as_yaml(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        raise mistake("scenario/nothing-set", "this scenario sets nothing", "write `set: {KEY: VALUE}`")
    return {str(key): json.dumps(each, ensure_ascii=False) for key, each in value.items()}


class ScenarioSpec(Section):
    """One case that may come: the keys of the spec or the catalog that have other values then."""

    name: Line
    """Name in plans and messages; unique."""
    set: Annotated[dict[str, str], BeforeValidator(_as_yaml)]
    """Values by key, as `planner sweep --set` takes them."""


class ScenarioFile(Section):
    """Scenarios that one fleet is to hold in."""

    TITLE: ClassVar[str] = "the file of scenarios"

    scenarios: Annotated[tuple[ScenarioSpec, ...], AfterValidator(some("scenario"))]
    """The scenarios, besides the spec as it is."""


@dataclass(frozen=True)
class LoadedScenarios:
    """A file of scenarios that was read: its scenarios when they are usable, and what was found, sorted by place."""

    path: str
    scenarios: tuple[ScenarioSpec, ...] | None
    diagnostics: tuple[Diagnostic, ...]
    document: Document | None


def is_scenario_file(document: Document) -> bool:
    """Tell whether a file has scenarios and nothing else that is of a spec."""
    return "scenarios" in document.data and all(
        key in ScenarioFile.model_fields or key.startswith("x-") for key in document.data
    )


def load_scenarios(text: str, path: str) -> LoadedScenarios:
    """Read a file of scenarios. `path` names the file in messages; nothing is opened."""
    document, diagnostics = parse(text, path)
    if document is None:
        return LoadedScenarios(path, None, tidy(diagnostics), None)
    data, found = values_of(document)
    file = section_of(ScenarioFile, data, document, found)
    found = [*diagnostics, *found]
    if file is not None:
        found += _repeated(file, document)
    usable = file is not None and not has_errors(found)
    return LoadedScenarios(path, file.scenarios if file is not None and usable else None, tidy(found), document)


def _repeated(file: ScenarioFile, document: Document) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    first: dict[str, int] = {}
    for index, scenario in enumerate(file.scenarios):
        if scenario.name in first:
            path: YamlPath = ("scenarios", index, "name")
            found.append(
                Diagnostic("scenario/repeated", f"there are two scenarios `{scenario.name}`", document.span(path))
            )
        first.setdefault(scenario.name, index)
    if len(file.scenarios) > MOST_SCENARIOS:
        message = f"{len(file.scenarios):,} scenarios are more than {MOST_SCENARIOS:,}"
        found.append(Diagnostic("scenario/too-many", message, document.span(("scenarios",))))
    return found
