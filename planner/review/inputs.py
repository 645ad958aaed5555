"""What went into two plans, side by side: every key of the specs and every entry of the catalogs that is otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from planner.candidates.supply import build_supply
from planner.candidates.types import PricedOffer
from planner.catalog import Catalog
from planner.diagnostics import Span
from planner.pipeline import Prepared
from planner.plan.io import sha256
from planner.plan.schema import Plan
from planner.review.aligned import aligned
from planner.source import YamlPath
from planner.source.edit import with_value
from planner.spec import FleetSpec, LoadedSpec
from planner.spec.variants import with_data

WITHOUT_EFFECT = ("fleet", "policies", "requires_planner", "version", "catalog")
"""Keys at the top of a spec that change no fleet; policies are compared by themselves."""
SHARED_FOLDERS = ("engines/", "quality/", "calibration/", "offers/commitments", "offers/regions")
"""Parts of the catalog that any fleet may depend on."""
OFFERS = ("supply", "offers")
LISTS = (OFFERS, ("supply", "limits", "rules"), ("deployed",))
"""Lists of sections, whose items are compared one by one."""
MOST_TEXT = 60
MOST_NUMBERS = 8
PRICE_RTOL = 1e-9
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
    """Something that is otherwise beside the spec: the price of an offer, a file of the catalog, the release, the day.

    Also of kind `spec`, with `names`, where only plans tell of it. `where` is the file of the catalog that a price is from.
    """

    kind: Literal["spec", "catalog", "price", "planner", "date"]
    key: str
    old_text: str | None
    new_text: str | None
    names: Names = ()
    where: str | None = None


@dataclass(frozen=True)
class SpecPair:
    """Two specs whose sections are compared; items of lists are paired by what they are, and named as on the old side."""

    old: LoadedSpec
    new: LoadedSpec

    @cached_property
    def changes(self) -> tuple[SpecChange, ...]:
        """The changes that may change a fleet, in the order of the file.

        What is only written otherwise, such as `0.99` for `99 %`, is none, and what makes no difference together with the
        others neither.
        """
        old, new = self._trees
        kept = [self._change(names, a, b) for names, a, b in _changes((), old, new)]
        whole = self.with_changes(kept).spec
        for change in list(kept):
            without = [c for c in kept if c is not change]
            if whole is not None and self.with_changes(without).spec == whole:
                kept = without
        return tuple(sorted(kept, key=_position))

    def with_changes(self, changes: Sequence[SpecChange]) -> LoadedSpec:
        """Return what is read from the old spec with some changes made in it."""
        tree: Any = self._trees[0]
        for change in changes:
            tree = with_value(tree, change.names, change.new)
        return with_data(self.old, _data(tree))

    @cached_property
    def _keys(self) -> dict[Names, tuple[tuple[str, ...], tuple[str, ...]]]:
        """The keys of the items of every list, on either side."""
        found: dict[Names, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for names in LISTS:
            lists = [_at(_plain(loaded), names) for loaded in (self.old, self.new)]
            labels = [_labels(loaded, names, items) for loaded, items in zip((self.old, self.new), lists, strict=True)]
            found[names] = aligned(lists[0], lists[1], labels[0], labels[1])
        return found

    @cached_property
    def _trees(self) -> tuple[Any, Any]:
        trees = []
        for side, loaded in enumerate((self.old, self.new)):
            tree: Any = _plain(loaded)
            for names, keys in self._keys.items():
                tree = _mapped(tree, names, keys[side])
            trees.append(tree)
        return trees[0], trees[1]

    def _change(self, names: Names, old: Any, new: Any) -> SpecChange:
        side = 1 if new is not None else 0
        on = (self.old, self.new)[side]
        span = on.span(self._path(side, names), key=isinstance(new if side else old, dict))
        return SpecChange(names, old, new, self._text(0, names, old), self._text(1, names, new), span)

    def _path(self, side: int, names: Names) -> YamlPath:
        """Return where the document of a side has what names lead to."""
        path: list[str | int] = []
        for name in names:
            keys = self._keys.get(tuple(names[: len(path)]))
            path.append(name if keys is None else keys[side].index(name))
        return tuple(path)

    def _text(self, side: int, names: Names, value: Any) -> str | None:
        """Return a value as the document has it; sections and lists on one line."""
        document = (self.old, self.new)[side].document
        if value is None or document is None:
            return None
        if names in LISTS and isinstance(value, dict):
            value = list(value.values())
        written = None if isinstance(value, dict | list) else document.text_at(self._path(side, names))
        return _short(written if written is not None else _flow(value))


def catalog_changes(old: Prepared, new: Catalog) -> tuple[OtherChange, ...]:
    """Return what of the catalog that a spec uses is otherwise in another one: prices, GPUs, models, files of constants."""
    before = old.catalog
    own = tuple(_configs(before, new))
    return own if before.digest() == new.digest() else (*_prices(old, new), *_files(old.spec, before, new), *own)


def unknown_catalog(plan: Plan, prepared: Prepared) -> tuple[OtherChange, ...]:
    """Return what differs between the catalog that a saved plan was made with, which is not at hand, and the one that is."""
    then, now = plan.digests.catalog, prepared.catalog.digest()
    if then == now:
        return ()
    prices = {o.name: o.usd_per_node_h for o in build_supply(prepared.spec, prepared.catalog).offers}
    bought = [(n.offer, n.usd_per_node_hour, prices.get(n.offer)) for n in plan.nodes]
    moved = [OtherChange("price", o, _usd(was), _usd(is_)) for o, was, is_ in bought if not _same(was, is_)]
    return (*moved, OtherChange("catalog", "catalog", then, now))


def reversed_change(change: OtherChange) -> OtherChange:
    """Return a change the other way round."""
    return replace(change, old_text=change.new_text, new_text=change.old_text)


def _same(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= PRICE_RTOL * max(one, other)


def _configs(old: Catalog, new: Catalog) -> Iterator[OtherChange]:
    """Yield the models that both specs bring along as a config, and that are otherwise."""
    for name in sorted(old.added.keys() & new.added.keys()):
        was, now = (sha256(catalog.added[name].model_dump_json()) for catalog in (old, new))
        if was != now:
            yield OtherChange("catalog", f"config of {name}", was, now)


def _prices(old: Prepared, new: Catalog) -> Iterator[OtherChange]:
    """Yield the prices of the offers of a spec that are otherwise."""
    offers = [{o.name: o for o in build_supply(old.spec, c).offers} for c in (old.catalog, new)]
    for name in sorted(offers[0].keys() | offers[1].keys()):
        was, now = (_price(side.get(name)) for side in offers)
        if was != now:
            provider = (offers[1].get(name) or offers[0][name]).provider
            yield OtherChange("price", name, _usd(was), _usd(now), where=f"offers/{provider}.yaml")


def _price(offer: PricedOffer | None) -> float | None:
    return None if offer is None else offer.usd_per_node_h


def _usd(value: float | None) -> str | None:
    return None if value is None else f"${value:,.2f} per node hour"


def _files(spec: FleetSpec, old: Catalog, new: Catalog) -> Iterator[OtherChange]:
    """Yield the files that a spec uses and that are otherwise: GPUs, models, price lists, engines, quality and constants."""
    digests = [catalog.file_digests() for catalog in (old, new)]
    offers = [o for c in (old, new) for o in build_supply(spec, c).offers]
    used = {f"gpus/{o.gpu}" for o in offers} | {f"offers/{o.provider}" for o in offers}
    used |= {f"models/{c.model(m.use).name}" for c in (old, new) for m in spec.models.values() if m.use is not None}
    for name in sorted(digests[0].keys() | digests[1].keys()):
        was, now = digests[0].get(name), digests[1].get(name)
        if was != now and (name in used or name.startswith(SHARED_FOLDERS)):
            yield OtherChange("catalog", f"{name}.yaml", was, now)


def _plain(loaded: LoadedSpec) -> dict[str, Any]:
    """Return the data of a spec without what changes no fleet."""
    data = {} if loaded.document is None else loaded.document.data
    return {k: v for k, v in data.items() if not k.startswith("x-") and k not in WITHOUT_EFFECT}


def _at(tree: Any, names: Names) -> list[Any]:
    """Return the list at a place, an empty one where there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, list) else []


def _labels(loaded: LoadedSpec, names: Names, items: Sequence[Any]) -> tuple[str, ...]:
    labels = loaded.spec.supply.offer_labels() if loaded.spec is not None and names == OFFERS else ()
    return labels if len(labels) == len(items) else tuple(str(number) for number in range(len(items)))


def _mapped(tree: Any, names: Names, keys: Sequence[str]) -> Any:
    """Return a tree in which the list at some place is a mapping."""
    if not names:
        return dict(zip(keys, tree, strict=True)) if isinstance(tree, list) else tree
    if not isinstance(tree, dict) or names[0] not in tree:
        return tree
    return {**tree, names[0]: _mapped(tree[names[0]], names[1:], keys)}


def _data(tree: Mapping[str, Any]) -> Any:
    """Return a tree as the data of a spec, `version` included."""
    data: Any = {"version": 1, "fleet": "variant", **tree}
    for names in LISTS:
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


def _flow(value: Any) -> str:
    numbers = [v for v in value if isinstance(v, int | float)] if isinstance(value, list) else []
    if len(numbers) > MOST_NUMBERS and len(numbers) == len(value):
        mean = sum(numbers) / len(numbers)
        return f"{len(numbers)} numbers from {min(numbers):g} to {max(numbers):g}, mean {mean:.4g}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_flow(v)}' for k, v in value.items())}}}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…"


def _position(change: SpecChange) -> tuple[int, int, str]:
    span = change.span
    return (0, 0, change.key) if span is None else (span.line, span.column, change.key)
