"""What went into two plans, side by side: every key of the specs and every entry of the catalogs that is otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from planner.candidates.supply import build_supply
from planner.catalog import Catalog
from planner.diagnostics import Span
from planner.pipeline import Prepared
from planner.plan.io import sha256
from planner.source import YamlPath
from planner.source.edit import with_value
from planner.spec import FleetSpec, LoadedSpec
from planner.spec.variants import with_data

WITHOUT_EFFECT = ("fleet", "policies", "requires_planner", "version", "catalog")
"""Keys at the top of a spec that change no fleet; policies are compared by themselves."""
SHARED_FOLDERS = ("engines/", "quality/", "calibration/", "offers/commitments")
"""Parts of the catalog that any fleet may depend on."""
NUMBERED = (("supply", "limits", "rules"), ("deployed",))
OFFERS = ("supply", "offers")
MOST_TEXT = 60
Names = tuple[str, ...]


@dataclass(frozen=True)
class SpecChange:
    """A key of a spec that has another value: `names` lead to it, offers by their labels and list items by their numbers.

    Values are plain data, None where there is none on a side; texts are as they are written.
    """

    names: Names
    old: Any
    new: Any
    old_text: str | None
    new_text: str | None
    span: Span | None

    @property
    def key(self) -> str:
        """The key as reports name it."""
        return ".".join(self.names)


@dataclass(frozen=True)
class OtherChange:
    """Something that is otherwise beside the spec: the price of an offer, a file of the catalog, the release, the day."""

    kind: Literal["spec", "catalog", "price", "planner", "date"]
    key: str
    old_text: str | None
    new_text: str | None


def spec_changes(old: LoadedSpec, new: LoadedSpec) -> tuple[SpecChange, ...]:
    """Return the changes from one spec to another that may change a fleet, in the order of the file.

    What is only written otherwise, such as `0.99` for `99 %`, is none.
    """
    found = _changes((), _tree(old), _tree(new))
    changes = (_change(names, a, b, old, new) for names, a, b in found)
    return tuple(sorted((c for c in changes if _means_more(old, c)), key=_position))


def changed_spec(old: LoadedSpec, changes: Iterable[SpecChange]) -> LoadedSpec:
    """Return what is read from the old spec with some changes made in it."""
    tree: Any = _tree(old)
    for change in changes:
        tree = with_value(tree, change.names, change.new)
    return with_data(old, _data(tree))


def catalog_changes(old: Prepared, new: Catalog) -> tuple[OtherChange, ...]:
    """Return what of the catalog that a spec uses is otherwise in another one: prices, GPUs, models, files of constants."""
    before = old.catalog
    own = tuple(_configs(before, new))
    return own if before.digest() == new.digest() else (*_prices(old, new), *_files(old.spec, before, new), *own)


def _configs(old: Catalog, new: Catalog) -> Iterator[OtherChange]:
    """Yield the models that both specs bring along as a config, and that are otherwise."""
    for name in sorted(old.added.keys() & new.added.keys()):
        was, now = (sha256(catalog.added[name].model_dump_json()) for catalog in (old, new))
        if was != now:
            yield OtherChange("catalog", f"config of {name}", was, now)


def _prices(old: Prepared, new: Catalog) -> Iterator[OtherChange]:
    """Yield the prices of the offers of a spec that are otherwise."""
    prices = [{o.name: o.usd_per_node_h for o in build_supply(old.spec, c).offers} for c in (old.catalog, new)]
    for name in sorted(prices[0].keys() | prices[1].keys()):
        was, now = prices[0].get(name), prices[1].get(name)
        if was != now:
            yield OtherChange("price", name, _usd(was), _usd(now))


def _usd(value: float | None) -> str | None:
    return None if value is None else f"${value:,.2f} per node hour"


def _files(spec: FleetSpec, old: Catalog, new: Catalog) -> Iterator[OtherChange]:
    """Yield the files that a spec uses and that are otherwise: GPUs, models, engines, quality and constants, not price lists."""
    digests = [catalog.file_digests() for catalog in (old, new)]
    used = {f"gpus/{o.gpu}.yaml" for c in (old, new) for o in build_supply(spec, c).offers}
    used |= {
        f"models/{c.model(m.use).name}.yaml" for c in (old, new) for m in spec.models.values() if m.use is not None
    }
    for name in sorted(digests[0].keys() | digests[1].keys()):
        was, now = digests[0].get(name), digests[1].get(name)
        if was != now and (name in used or name.startswith(SHARED_FOLDERS)):
            yield OtherChange("catalog", name, was, now)


def _tree(loaded: LoadedSpec) -> Any:
    """Return the data of a spec with lists of sections as mappings: offers by label, others by number."""
    data = {} if loaded.document is None else loaded.document.data
    tree: Any = {k: v for k, v in data.items() if not k.startswith("x-") and k not in WITHOUT_EFFECT}
    labels = loaded.spec.supply.offer_labels() if loaded.spec is not None else ()
    tree = _mapped(tree, OFFERS, labels)
    for names in NUMBERED:
        tree = _mapped(tree, names, ())
    return tree


def _mapped(tree: Any, names: Names, labels: Sequence[str]) -> Any:
    """Return a tree in which the list at some place is a mapping."""
    if not names:
        if not isinstance(tree, list):
            return tree
        keys = labels if len(labels) == len(tree) else [str(i) for i in range(len(tree))]
        return dict(zip(keys, tree, strict=True))
    if not isinstance(tree, dict) or names[0] not in tree:
        return tree
    return {**tree, names[0]: _mapped(tree[names[0]], names[1:], labels)}


def _data(tree: Any) -> Any:
    """Return a tree as the data of a spec, `version` included."""
    data = {"version": 1, "fleet": "variant", **tree}
    for names in (OFFERS, *NUMBERED):
        data = _listed(data, names)
    return data


def _listed(tree: Any, names: Names) -> Any:
    if not names:
        return list(tree.values()) if isinstance(tree, dict) else tree
    if not isinstance(tree, dict) or names[0] not in tree:
        return tree
    return {**tree, names[0]: _listed(tree[names[0]], names[1:])}


def _changes(names: Names, old: Any, new: Any) -> Iterator[tuple[Names, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            yield from _changes((*names, key), old.get(key), new.get(key))
    elif old != new:
        yield names, old, new


def _change(names: Names, old: Any, new: Any, before: LoadedSpec, after: LoadedSpec) -> SpecChange:
    on = after if new is not None else before
    span = on.span(_path(on, names), key=isinstance(new if new is not None else old, dict))
    return SpecChange(names, old, new, _text(before, names, old), _text(after, names, new), span)


def _path(loaded: LoadedSpec, names: Names) -> YamlPath:
    """Return where a document has what names lead to."""
    path: list[str | int] = []
    for name in names:
        at = tuple(names[: len(path)])
        if at == OFFERS:
            labels = loaded.spec.supply.offer_labels() if loaded.spec is not None else ()
            path.append(labels.index(name) if name in labels else 0)
        else:
            path.append(int(name) if at in NUMBERED else name)
    return tuple(path)


def _text(loaded: LoadedSpec, names: Names, value: Any) -> str | None:
    """Return a value as the document has it; sections and lists on one line."""
    if value is None or loaded.document is None:
        return None
    written = loaded.document.text_at(_path(loaded, names)) if not isinstance(value, dict | list) else None
    return _short(written if written is not None else _flow(value))


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_flow(v)}' for k, v in value.items())}}}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…"


def _means_more(old: LoadedSpec, change: SpecChange) -> bool:
    """Tell whether a change alone makes another spec of an old one; one that cannot be read alone may."""
    found = changed_spec(old, [change]).spec
    base = changed_spec(old, []).spec
    return found is None or base is None or found != base


def _position(change: SpecChange) -> tuple[int, int, str]:
    span = change.span
    return (0, 0, change.key) if span is None else (span.line, span.column, change.key)
