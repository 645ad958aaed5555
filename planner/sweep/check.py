"""Check settings before anything is planned: every key leads somewhere, and every value by itself makes a spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.candidates.references import check_references
from planner.catalog import UnknownName
from planner.diagnostics import Diagnostic, DiagnosticError, Severity, Span
from planner.sweep.base import Base, UnknownKeyError
from planner.sweep.setting import Setting, SettingError, Value, read_setting
from planner.units import UnitError

FLAG = "--set"
"""Name of the settings in messages, which stand there one a line."""
_ABOUT_KEYS = ("unknown-key", "unknown-path")


def read_settings(texts: Sequence[str], base: Base) -> tuple[Setting, ...]:
    """Read settings. Raises `DiagnosticError` with all that is wrong with them."""
    found: list[Diagnostic] = []
    settings: list[Setting] = []
    for line, text in enumerate(texts, 1):
        try:
            setting = read_setting(text, base.unit)
        except SettingError as error:
            found.append(Diagnostic("sweep/setting", str(error), _span(line, error.start, error.end)))
            continue
        if setting.key.casefold() in (s.key.casefold() for s in settings):
            message = f"`{setting.key}` is set twice"
            found.append(Diagnostic("sweep/setting", message, _span(line, 0, len(setting.key)), label="remove one"))
            continue
        settings.append(setting)
        found += _wrong(setting, line, base)
    if found:
        raise DiagnosticError(found)
    return tuple(settings)


def _wrong(setting: Setting, line: int, base: Base) -> Iterator[Diagnostic]:
    """Yield what is wrong with a key, or else with each of its values."""
    try:
        base.place(setting.key)
    except UnknownKeyError as error:
        label = f"did you mean `{error.meant}`?" if error.meant else ""
        yield Diagnostic("sweep/unknown-path", str(error), _span(line, 0, len(setting.key)), label=label)
        return
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
