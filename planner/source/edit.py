"""Plain data with other values in it: where a dotted key leads, and what the data is with a value there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.diagnostics import Diagnostic, DiagnosticError
from planner.source.document import YamlPath
from planner.source.parse import parse

_VALUE = "value"
Names = Mapping[str, str | int]


def own_names(_path: YamlPath, node: Any) -> Names:
    """Return the names of what lies below a value: the keys of a mapping, the numbers of a list."""
    if isinstance(node, list):
        return {str(index): index for index in range(len(node))}
    return {name: name for name in node} if isinstance(node, dict) else {}


def path_of(data: Any, key: str, names_at: Callable[[YamlPath, Any], Names] = own_names) -> YamlPath:
    """Return the path that a dotted key stands for, case ignored where no name is written just so.

    Names may contain dots, so at each level the longest name that fits is taken. Below the last name that fits, every dot
    separates.
    """
    node, rest = data, key
    path: YamlPath = ()
    while rest:
        names = names_at(path, node)
        fitting = [name for name in names if f"{rest.casefold()}.".startswith(f"{name.casefold()}.")]
        if not fitting:
            return (*path, *rest.split("."))
        name = max(fitting, key=lambda name: (len(name), rest.startswith(name)))
        node = node[names[name]]
        path = (*path, names[name])
        rest = rest[len(name) + 1 :]
    return path


def read_value(text: str) -> Any:
    """Return the value that a text has in YAML. Raises `DiagnosticError` where it has none, or says more than one."""
    document, found = parse(f"{_VALUE}: {text}", _VALUE)
    if document is None or found:
        raise DiagnosticError(found)
    if list(document.data) != [_VALUE]:
        message = "this goes on behind the value"
        raise DiagnosticError([Diagnostic("yaml/syntax", message, label="write one value, or a mapping in braces")])
    return document.data[_VALUE]


def with_value(node: Any, path: YamlPath, value: Any) -> Any:
    """Return plain data with another value at a path, without its key for None; mappings missing on the way are added."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(node, list):
        return [with_value(item, rest, value) if i == first else item for i, item in enumerate(node)]
    own = node if isinstance(node, dict) else {}
    if value is None and not rest:
        return {k: v for k, v in own.items() if k != first}
    return {**own, first: with_value(own.get(first), rest, value)}
