"""Check settings before anything is planned: every key leads somewhere, and every value by itself makes a spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.candidates.references import check_references
from planner.catalog import UnknownName
from planner.diagnostics import Diagnostic, DiagnosticError, Severity, Span
from planner.sweep.base import Base, Place, UnknownKeyError, holds
from planner.sweep.setting import Setting, SettingError, Value, read_setting
from planner.units import UnitError

FLAG = "--set"
"""Name of the settings in messages, which stand there one a line."""
_ABOUT_KEYS = ("unknown-key", "unknown-path")


def read_settings(texts: Sequence[str], base: Base) -> tuple[Setting, ...]:
    """Read settings. Raises `DiagnosticError` with all that is wrong with them."""
    found: list[Diagnostic] = []
    settings: list[Setting] = []
    places: dict[str, Place] = {}
    for line, text in enumerate(texts, 1):
        try:
            setting = read_setting(text, base.unit)
        except SettingError as error:
            found.append(Diagnostic("sweep/setting", str(error), _span(line, error.start, error.end)))
            continue
        settings.append(setting)
        wrong = _wrong_key(setting, line, base, places)
        found += [wrong] if wrong is not None else _wrong_values(setting, line, base)
    if found:
        raise DiagnosticError(found)
    return tuple(settings)


def _wrong_key(setting: Setting, line: int, base: Base, earlier: dict[str, Place]) -> Diagnostic | None:
    """Return what is wrong with a key. If it leads somewhere, that is added to where `earlier` keys lead."""
    span = _span(line, 0, len(setting.key))
    try:
        place = base.place(setting.key)
    except UnknownKeyError as error:
        label = f"did you mean `{error.meant}`?" if error.meant else ""
        return Diagnostic("sweep/unknown-path", str(error), span, label=label)
    for key, other in earlier.items():
        if place == other:
            return Diagnostic("sweep/setting", f"`{setting.key}` is set twice", span, label="remove one")
        if holds(place, other):
            message = f"`{setting.key}` would undo `{key}`, which is a part of it"
            return Diagnostic("sweep/setting", message, span, label=f"set it before `{key}`")
    earlier[setting.key] = place
    return None


def _wrong_values(setting: Setting, line: int, base: Base) -> Iterator[Diagnostic]:
    """Yield what is wrong with each of the values of a key."""
    said: set[str] = set()
    for value in _ends(setting.values):
        for found in _wrong_with(setting, value, base):
            if found.message not in said:
                said.add(found.message)
                is_about_key = found.code.endswith(_ABOUT_KEYS)
                span = _span(line, 0, len(setting.key)) if is_about_key else _span(line, value.start, value.end)
                yield Diagnostic(found.code, found.message, span, label=found.label, help=found.help)


def _ends(values: Sequence[Value]) -> Iterator[Value]:
    """Yield the values of a list; of those of a range only the first and the last."""
    for _, group in groupby(values, lambda value: (value.start, value.end)):
        steps = list(group)
        yield from steps[:1] if len(steps) == 1 else (steps[0], steps[-1])


def _wrong_with(setting: Setting, value: Value, base: Base) -> list[Diagnostic]:
    try:
        loaded, catalog = base.variant(((setting.key, value.text),))
        catalog.check_changes()
        found = [*loaded.diagnostics, *check_references(loaded, catalog)]
    except UnitError as error:
        return [Diagnostic(f"spec/{error.kind}", error.message, label=error.hint)]
    except UnknownName as error:
        return [Diagnostic("catalog/unknown-name", str(error))]
    except DiagnosticError as error:
        found = list(error.diagnostics)
    return [d for d in found if d.severity is Severity.ERROR]


def _span(line: int, start: int, end: int) -> Span:
    return Span(FLAG, line, start + 1, max(end, start + 1) + 1)
