"""Every setting that a spec ends up with, and where each comes from: a line of the spec, a flag or a default."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.candidates.models import resolve_models
from planner.catalog import Catalog
from planner.pipeline import Options
from planner.report import figures
from planner.source import YamlPath
from planner.spec import FleetSpec, LoadedSpec
from planner.spec.readers import Quantity
from planner.spec.section import Section
from planner.units import DIMENSIONS, Price

DEFAULT = "default"
_FREE = ""
_COMMENT_COLUMN = 52
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./@+-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_SKIPPED = ("defaults",)
_BARE_UNITS = {"share": "%", "ratio": "%", "change": "%"}
_LAID_OUT = (Section, dict)


def render_config(loaded: LoadedSpec, catalog: Catalog, options: Options) -> str:
    """Return the effective spec as YAML that means the same, each value with its source behind it.

    `loaded` must hold a spec that is right. What `defaults` gives is shown under each model; choices that are left to
    the planner are comments.
    """
    if loaded.spec is None:
        raise ValueError("a spec with errors has no settings")
    walker = _Walker(loaded, {**_resolved(loaded.spec, catalog), **_flags(options)})
    lines = list(walker.section(loaded.spec, ()))
    lines.append(_line("# catalog", figures.visible(str(catalog.root)), catalog.digest()[:14]))
    return "\n".join(lines) + "\n"


def _flags(options: Options) -> dict[YamlPath, tuple[str, str]]:
    """Return what flags override, with the flag."""
    found: dict[YamlPath, tuple[str, str]] = {}
    if options.as_of is not None:
        found["planning", "as_of"] = (options.as_of.isoformat(), "--as-of")
    if options.gap is not None:
        found["planning", "gap"] = (_percent(options.gap), "--gap")
    if options.periods is not None:
        found["planning", "periods"] = (str(options.periods), "--periods")
    if options.stay_within is not None:
        found["planning", "stay_within"] = (_percent(options.stay_within), "--stay-within")
    return found


def _resolved(spec: FleetSpec, catalog: Catalog) -> dict[YamlPath, tuple[str, str]]:
    """Return the defaults that depend on the catalog."""
    newest = catalog.newest_price_date().isoformat()
    found: dict[YamlPath, tuple[str, str]] = {("planning", "as_of"): (newest, f"{DEFAULT}: newest price date")}
    for name, model in resolve_models(spec, catalog).items():
        path: YamlPath = ("models", name)
        found[*path, "weights"] = (_flow(model.weights), f"{DEFAULT}: native format and narrower ones")
        found[*path, "kv_cache"] = (_flow(model.kv_cache), DEFAULT)
        found[*path, "max_model_len"] = (str(model.max_model_len), DEFAULT)
        for degree in ("tensor", "pipeline", "expert", "attention_data"):
            found[*path, "parallelism", degree] = (_FREE, f"{DEFAULT}: all that are legal")
        found[*path, "engine", "max_num_seqs"] = (_FREE, f"{DEFAULT}: the planner chooses")
        for key, value in _shown_fields(model.reliability):
            found[*path, "reliability", key] = (_scalar(value, model.reliability, key), "from reliability")
    return found


class _Walker:
    """Walks the sections of a spec; what is not given and has no effect is left out."""

    def __init__(self, loaded: LoadedSpec, known: Mapping[YamlPath, tuple[str, str]]) -> None:
        self._loaded = loaded
        self._known = known

    def section(self, section: Section, path: YamlPath) -> Iterator[str]:
        """Yield the lines of a section."""
        for key, value in _shown_fields(section):
            here = (*path, key)
            if key not in _SKIPPED and not (key == "timezone" and not self._is_given(here)):
                yield from self._value(section, key, value, here)

    def _value(self, section: Section, key: str, value: Any, path: YamlPath) -> Iterator[str]:
        margin = "  " * (len(path) - 1)
        if isinstance(value, _LAID_OUT) and not self._is_short(path):
            below = list(self._below(value, path))
            is_free = all(line.lstrip().startswith("#") for line in below)
            yield from [f"{margin}{'# ' if is_free else ''}{_key(key)}:", *below] if below else []
        elif isinstance(value, tuple) and value and isinstance(value[0], Section):
            yield f"{margin}{_key(key)}:"
            for index, item in enumerate(value):
                first, *rest = self.section(item, (*path, index))
                yield from (f"{margin}  - {first.strip()}", *rest)
        elif (found := self._scalar(section, key, value, path)) is not None:
            yield _line(f"{margin}{'' if found[0] != _FREE else '# '}{_key(key)}", *found)

    def _below(self, value: Section | dict[str, Any], path: YamlPath) -> Iterator[str]:
        if isinstance(value, Section):
            yield from self.section(value, path)
            return
        for key, item in value.items():
            if isinstance(item, Section):
                yield f"{'  ' * len(path)}{_key(key)}:"
                yield from self.section(item, (*path, key))
            else:
                text = _plain(item) if isinstance(item, str) else self._text(path, key) or _plain(item)
                yield _line(f"{'  ' * len(path)}{_key(key)}", text, self._place((*path, key)))

    def _scalar(self, section: Section, key: str, value: Any, path: YamlPath) -> tuple[str, str] | None:
        if path in self._known and (not self._is_given(path) or self._known[path][1].startswith("--")):
            return self._known[path]
        if self._is_given(path):
            written = None if isinstance(value, str) else self._text(path[:-1], key)
            return written or _scalar(value, section, key), self._place(path)
        return None if value is None or value == () else (_scalar(value, section, key), DEFAULT)

    def _is_short(self, path: YamlPath) -> bool:
        """Tell whether a section is written as one scalar, such as `rate: 12 req/s`."""
        return self._text(path[:-1], str(path[-1])) is not None

    def _origin(self, path: YamlPath) -> YamlPath:
        document = self._loaded.document
        if document is not None and path[0] == "models" and len(path) > 2 and not document.has(path):
            return ("defaults", *path[2:])
        return path

    def _is_given(self, path: YamlPath) -> bool:
        document = self._loaded.document
        return document is not None and document.has(self._origin(path))

    def _text(self, parent: YamlPath, key: str) -> str | None:
        document = self._loaded.document
        return document.text_at(self._origin((*parent, key))) if document is not None else None

    def _place(self, path: YamlPath) -> str:
        span = self._loaded.span(path)
        return f"{figures.visible(span.path)}:{span.line}"


def _shown_fields(section: Section) -> Iterator[tuple[str, Any]]:
    for name, field in type(section).model_fields.items():
        yield field.alias or name, getattr(section, name)


def _scalar(value: Any, section: Section, key: str) -> str:
    """Write a value with the unit that its field takes."""
    field = next(f for n, f in type(section).model_fields.items() if (f.alias or n) == key)
    dimension = next((m.dimension for m in field.metadata if isinstance(m, Quantity)), "count")
    if isinstance(value, float) and dimension in _BARE_UNITS:
        return _percent(value)
    units = DIMENSIONS[dimension].units
    unit = next((u for u, size in units.items() if size == 1.0), "")
    return f"{_plain(value)} {unit}".strip() if isinstance(value, float) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return (
            value if _BARE.fullmatch(value) and value.lower() not in _WORDS else json.dumps(value, ensure_ascii=False)
        )
    if isinstance(value, tuple):
        return _flow(value)
    if isinstance(value, Price):
        per_gpu = value.usd_per_gpu_h is not None
        return f"{value.usd_per_gpu_h} USD/gpu/h" if per_gpu else f"{value.usd_per_node_h} USD/node/h"
    return (
        value.isoformat()
        if isinstance(value, datetime.date)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _flow(values: tuple[Any, ...]) -> str:
    return f"[{', '.join(_plain(v) for v in values)}]"


def _percent(value: float) -> str:
    return f"{100.0 * value:.10g} %"


def _key(key: str) -> str:
    return _plain(figures.visible(key))


def _line(key: str, value: str, source: str) -> str:
    return f"{f'{key}: {figures.visible(value)}'.rstrip():<{_COMMENT_COLUMN}}  # {source}"
