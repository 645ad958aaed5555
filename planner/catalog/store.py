"""The catalog: a folder of YAML files, read one by one as they are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from planner.catalog.calibration import SHIPPED, Known, OwnCalibration, not_finite, what_is_missing
from planner.catalog.canonical import same_model, tidy
from planner.catalog.changes import CatalogChanges
from planner.catalog.commitment import CommitmentFile, Ratio, best_ratio
from planner.catalog.engine import EngineFile, EngineProfile, profile, version_key
from planner.catalog.gpu import GpuEntry
from planner.catalog.index import CatalogIndex, NotModelled
from planner.catalog.labels import AliasFile, Label, LabelFile, folded
from planner.catalog.loading import (
    SUFFIX,
    FileValues,
    R,
    changed_data,
    file_names,
    misnamed,
    read_bytes,
    read_document,
    read_record,
    shown_path,
)
from planner.catalog.model import ModelEntry
from planner.catalog.names import UnknownName, resolve
from planner.catalog.offer import CatalogOffer, OfferFile, expand
from planner.catalog.quality import NATIVE, WIDE_FORMATS, QualityEvidence, QualityFile, combine, evidence_for
from planner.catalog.regions import RegionFile
from planner.diagnostics import Diagnostic, DiagnosticError
from planner.physics.types import Architecture
from planner.source import FilePath

INDEX_FILE = "catalog.yaml"
FOLDERS = ("", "calibration", "engines", "gpus", "offers", "quality")
"""Folders whose files are read, beside the folders of `models/`."""
OFFERS = "offers/"
UNCHANGED = CatalogChanges()
OTHER_OFFER_FILES = frozenset({"regions", "commitments"})

F = TypeVar("F", bound=FilePath)


def find_catalog(start: F) -> F | None:
    """Return the nearest `catalog/` in `start` or a folder above it that holds a `catalog.yaml`, or None."""
    absolute = start.absolute()
    for folder in (absolute, *absolute.parents):
        if (folder / "catalog" / INDEX_FILE).is_file():
            return folder / "catalog"
    return None


def shipped_catalog() -> Path:
    """Return the catalog inside the installed package, or the one beside the package in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "_catalog"
    return inside if inside.is_dir() else package.parent / "catalog"


class Catalog:
    """A folder of YAML files. Any of them may raise `DiagnosticError` when first read; names raise `UnknownName`."""

    def __init__(
        self,
        root: FilePath,
        index: CatalogIndex,
        added: Mapping[str, ModelEntry] | None = None,
        changes: CatalogChanges = UNCHANGED,
    ) -> None:
        """Use `Catalog.open`."""
        self.root = root
        self.index = index
        self.added = dict(sorted((added or {}).items()))
        self.changes = changes
        self._records: dict[FilePath, BaseModel] = {}
        self._model_labels: dict[str, Label | UnknownName] = {}
        self._offers: dict[str, tuple[CatalogOffer, ...]] = {}

    @classmethod
    def open(cls, path: FilePath | None = None) -> Catalog:
        """Open the catalog at `path`, or the one shipped with the package. Raises `DiagnosticError`."""
        root = path if path is not None else shipped_catalog()
        if not (root / INDEX_FILE).is_file():
            message = f"{shown_path(root)} is no catalog: it holds no {INDEX_FILE}"
            raise DiagnosticError([Diagnostic("catalog/not-found", message)])
        return cls(root, read_record(root / INDEX_FILE, CatalogIndex))

    def including(self, models: Mapping[str, ModelEntry]) -> Catalog:
        """Return a catalog that also knows these models, under exactly these names."""
        if not models:
            return self
        larger = Catalog(self.root, self.index, {**self.added, **models}, self.changes)
        larger._records, larger._offers = self._records, self._offers
        return larger

    def changed(self, changes: CatalogChanges) -> Catalog:
        """Return this catalog, of which nothing was changed before, with other values in it. Files are not written."""
        other = Catalog(self.root, self.index, self.added, changes)
        changed = {self.files()[name] for name in changes.files}
        other._records = {path: record for path, record in self._records.items() if path not in changed}
        if not any(name.startswith(OFFERS) for name in changes.files):
            other._offers = self._offers
        other._files_digest = self._files_digest
        return other

    def check_changes(self) -> None:
        """Read every file that is changed. Raises `DiagnosticError` for one that is no longer what it must be."""
        for file in self.changes.files:
            folder, _, name = file.removesuffix(SUFFIX).partition("/")
            if folder == "gpus":
                self.gpu(name)
            elif folder == "models":
                self.model(name)
            elif folder == "engines":
                self.engine(name)
            elif folder == "quality":
                _ = self.weight_quality, self.kv_quality
            elif folder == "calibration":
                self.calibration()
            elif name in OTHER_OFFER_FILES:
                _ = self.commitments, self.regions("")
            else:
                self.all_offers(name)

    def gpu_names(self) -> tuple[str, ...]:
        """Return the names of all GPUs, sorted."""
        return tuple(self._gpu_files)

    def gpu(self, name: str) -> GpuEntry:
        """Return a GPU by its name or a short one, ignoring case. Raises `UnknownName`."""
        try:
            legal = resolve("gpu", name, self._gpu_files, self._gpu_aliases)
        except UnknownName as unknown:
            raise self._explained(unknown) from None
        return self._named(self._gpu_files[legal], GpuEntry, legal)

    def not_modelled(self) -> tuple[NotModelled, ...]:
        """Return the accelerators that are left out, with reasons, sorted by name."""
        return tuple(sorted(self.index.not_modelled, key=lambda n: n.name))

    def model_names(self) -> tuple[str, ...]:
        """Return the names of all models, sorted."""
        return tuple(self._model_files)

    def model(self, name: str) -> ModelEntry:
        """Return a model by its name or a short one, ignoring case. Raises `UnknownName`."""
        if name in self.added:
            return self.added[name]
        legal = resolve("model", name, self._model_files, self._model_aliases)
        return self._named(self._model_files[legal], ModelEntry, legal)

    def gpu_label(self, label: str) -> Label:
        """Return what a GPU label of a measurement means. A label without an entry is tried as a name.

        Raises:
            UnknownName: the label means nothing known.
        """
        known = self.labels.gpus.get(label)
        return known or Label(gpu=self.gpu(label).name)

    def model_label(self, label: str) -> Label:
        """Return what a model label of a measurement means: by the table of labels, a name, or a build of a model.

        Quantised builds and fine-tunes are taken as the model that their name contains, which is then `assumed`.

        Raises:
            UnknownName: the label means nothing known.
        """
        if label not in self._model_labels:
            self._model_labels[label] = self.labels.models.get(label) or self._read_model_label(label)
        known = self._model_labels[label]
        if isinstance(known, UnknownName):
            raise known
        return known

    def _read_model_label(self, label: str) -> Label | UnknownName:
        try:
            return Label(model=resolve("model", label, self._model_files, self._model_aliases))
        except UnknownName as unknown:
            built_from = same_model(label, self._model_files)
            if built_from is None:
                return unknown
        name = self.model(built_from).base or built_from
        return Label(model=name, assumed=f"same shape, by its name `{tidy(label)}`")

    def architecture(self, name: str) -> Architecture:
        """Return the shape of a model for the physics, with what its published builds in other formats store.

        Raises:
            UnknownName: there is no such model.
        """
        entry = self.model(name)
        shape = entry.architecture()
        built = [self.model(build).architecture().stored for _, build in sorted(entry.builds.items())]
        return replace(shape, stored=shape.stored + tuple(row for rows in built for row in rows)) if built else shape

    def providers(self) -> tuple[str, ...]:
        """Return the providers with priced offers, sorted."""
        return tuple(self._offer_files)

    def offers(self, provider: str) -> tuple[CatalogOffer, ...]:
        """Return a provider's sold offers of modelled GPUs, by instance, GPU and region. Raises `UnknownName`."""
        modelled = set(self._gpu_files)
        return tuple(o for o in self.all_offers(provider) if o.gpu in modelled and o.prices_usd_per_node_h)

    def all_offers(self, provider: str) -> tuple[CatalogOffer, ...]:
        """Return every row of a provider, also unsold ones and GPUs that are not modelled. Raises `UnknownName`."""
        legal = resolve("provider", provider, self._offer_files, {})
        if legal not in self._offers:
            self._offers[legal] = expand(self.offer_file(legal), self.regions(legal))
        return self._offers[legal]

    def offer_file(self, provider: str) -> OfferFile:
        """Return the price file of a provider, by its exact name."""
        return self._named(self._offer_files[provider], OfferFile, provider, "provider")

    def regions(self, provider: str) -> Mapping[str, str]:
        """Return the ISO country of each region of a provider, empty where none is fixed."""
        return self._read_if_there("offers/regions.yaml", RegionFile, RegionFile({})).root.get(provider, {})

    def commitment_ratio(self, provider: str, instance: str, term: str, upfront: str | None = None) -> Ratio | None:
        """Return the price of `term` over on-demand for an instance type, its own family's first, or None.

        `term` is spot, 1y or 3y; `upfront` is none, partial or all, and None counts as none.
        """
        ratios = (r for r in self.commitments.ratios if r.provider == provider)
        return best_ratio(ratios, instance, term, upfront)

    def quality(
        self, model: Architecture, weights: str | None, kv: str | None, evidence: str = "any"
    ) -> QualityEvidence | None:
        """Return what a weight format and a KV format keep of the native quality of `model`.

        None for a format means the native one. `evidence` is the weakest level allowed: model, family or any. Returns
        None when a format has no evidence at that level.
        """
        parts = [self._kept(self.weight_quality, weights, model, evidence), NATIVE]
        if kv is not None and kv not in WIDE_FORMATS:
            parts[1] = evidence_for(self.kv_quality, kv, model, evidence)
        found = [p for p in parts if p is not None]
        return combine(found) if len(found) == len(parts) else None

    def engine_names(self) -> tuple[str, ...]:
        """Return the names of all engines, sorted."""
        return tuple(self._engine_files)

    def engine(self, name: str, version: str | None = None) -> EngineProfile:
        """Return an engine's profile at a version, the newest known one for None. Raises `UnknownName`."""
        legal = resolve("engine", name, self._engine_files, {})
        file = self.engine_file(legal)
        wanted = file.newest if version is None else version
        if not version_key(wanted):
            raise UnknownName("engine version", f"{legal} {wanted}", (file.newest,))
        try:
            return profile(file, wanted)
        except ValueError as error:
            message = f"{shown_path(self._engine_files[legal])}: {error}"
            raise DiagnosticError([Diagnostic("catalog/invalid-value", message)]) from None

    def engine_file(self, name: str) -> EngineFile:
        """Return the file of an engine, by its exact name."""
        return self._named(self._engine_files[name], EngineFile, name)

    def calibration_names(self) -> tuple[str, ...]:
        """Return the names of all calibrations, sorted."""
        return tuple(self._calibration_files)

    def calibration(self) -> Mapping[str, Any]:
        """Return the calibration, with the user's own ones put over it in the order of their names."""
        return self._calibration

    def shipped_calibration(self) -> Mapping[str, Any]:
        """Return the data of `calibration/default.yaml` alone. Raises `UnknownName` when it is missing."""
        return self._shipped_calibration

    def own_calibration(self, name: str) -> OwnCalibration:
        """Return an own calibration by its exact name. Raises `DiagnosticError`, also for names that match no prediction."""
        path = self.root / "calibration" / f"{name}.yaml"
        found = self._named(path, OwnCalibration, name)
        strange = list(found.strange_names(self._known_to(found)))
        if strange:
            spans = read_document(path)
            raise DiagnosticError(
                Diagnostic("catalog/calibration", message, spans.span(place, key=place[0] == "gpus"))
                for place, message in strange
            )
        return found

    def digest(self) -> str:
        """Return `sha256:...` over the paths and bytes of all YAML files, sorted by path, as first asked for, and all changes."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        if self.changes == UNCHANGED:
            return self._files_digest
        total = hashlib.sha256(f"{self._files_digest}\n{self.changes.text}".encode())
        return f"sha256:{total.hexdigest()}"

    @cached_property
    def _files_digest(self) -> str:
        total = hashlib.sha256()
        for name, path in self.files().items():
            content = read_bytes(path)
            total.update(f"{name}\0{len(content)}\0".encode())
            total.update(content)
        return f"sha256:{total.hexdigest()}"

    def file_digests(self) -> dict[str, str]:
        """Return `sha256:...` of the bytes of each file of the catalog by its path inside it, sorted."""
        return {name: f"sha256:{hashlib.sha256(read_bytes(path)).hexdigest()}" for name, path in self.files().items()}

    def files(self) -> dict[str, FilePath]:
        """Return all files of the catalog by their path inside it, sorted."""
        found = {
            f"{folder}/{n}".lstrip("/"): p for folder in FOLDERS for n, p in file_names(self.root / folder).items()
        }
        found |= {f"models/{n}": p for n, p in file_names(self.root / "models", depth=2).items()}
        return dict(sorted(found.items()))

    def misnamed(self) -> list[Diagnostic]:
        """Return an error for each file that is YAML and that nothing reads, for its ending."""
        found = (misnamed(self.root / folder) for folder in FOLDERS)
        return [*(d for part in found for d in part), *misnamed(self.root / "models", depth=2)]

    def newest_price_date(self) -> date:
        """Return the newest exact day of any price of a modelled GPU, as recorded in `catalog.yaml`."""
        return self.index.newest_price_date

    @cached_property
    def _shipped_calibration(self) -> Mapping[str, Any]:
        path = self._calibration_files[resolve("calibration", SHIPPED, self._calibration_files, {})]
        document = read_document(path)
        data: Mapping[str, Any] = changed_data(document.data, self._values_of(path))
        odd = [Diagnostic("catalog/calibration", message, document.span(place)) for place, message in not_finite(data)]
        if odd:
            raise DiagnosticError(odd)
        problem = what_is_missing(data)
        if problem:
            raise DiagnosticError([Diagnostic("catalog/calibration", f"{shown_path(path)}: {problem}")])
        return data

    def _known_to(self, own: OwnCalibration) -> Known:
        engines, generations = (self._shipped_calibration[table].keys() for table in ("engines", "generations"))
        named = sorted({row.gpu for row in own.coverage} & self._gpu_files.keys())
        classes = {gpu: self.gpu(gpu).device().architecture_class for gpu in named}
        return Known(self._gpu_files.keys(), classes, {*engines, *generations}, generations)

    @cached_property
    def _calibration(self) -> Mapping[str, Any]:
        data = self.shipped_calibration()
        for name in sorted({*self.calibration_names()} - {SHIPPED}):
            data = self.own_calibration(name).over(data)
        return data

    @cached_property
    def aliases(self) -> AliasFile:
        """Short names."""
        return self._read_if_there("aliases.yaml", AliasFile, AliasFile())

    @cached_property
    def labels(self) -> LabelFile:
        """Labels of published measurements."""
        return self._read_if_there("labels.yaml", LabelFile, LabelFile())

    @cached_property
    def commitments(self) -> CommitmentFile:
        """Price ratios of terms."""
        return self._read_if_there("offers/commitments.yaml", CommitmentFile, CommitmentFile(ratios=()))

    @cached_property
    def weight_quality(self) -> QualityFile:
        """Published scores by weight format."""
        return self._read_if_there("quality/weights.yaml", QualityFile, QualityFile(formats={}))

    @cached_property
    def kv_quality(self) -> QualityFile:
        """Published scores by KV cache format."""
        return self._read_if_there("quality/kv.yaml", QualityFile, QualityFile(formats={}))

    @cached_property
    def _gpu_files(self) -> dict[str, FilePath]:
        return self._listed("gpus")

    @cached_property
    def _model_files(self) -> dict[str, FilePath]:
        return self._listed("models", depth=2)

    @cached_property
    def _engine_files(self) -> dict[str, FilePath]:
        return self._listed("engines")

    @cached_property
    def _calibration_files(self) -> dict[str, FilePath]:
        return self._listed("calibration")

    @cached_property
    def _offer_files(self) -> dict[str, FilePath]:
        files = self._listed("offers")
        return {name: path for name, path in files.items() if name not in OTHER_OFFER_FILES}

    @cached_property
    def _gpu_aliases(self) -> dict[str, tuple[str, ...]]:
        return folded(self.aliases.gpus)

    @cached_property
    def _model_aliases(self) -> dict[str, tuple[str, ...]]:
        return folded(self.aliases.models)

    def _read(self, path: FilePath, record: type[R]) -> R:
        known = self._records.get(path)
        if isinstance(known, record):
            return known
        fresh = read_record(path, record, self._values_of(path))
        self._records[path] = fresh
        return fresh

    def _values_of(self, path: FilePath) -> FileValues:
        """Return the values of a file that are otherwise."""
        return self._changed_files.get(path, ()) if self.changes.files else ()

    @cached_property
    def _changed_files(self) -> dict[FilePath, FileValues]:
        files = self.files()
        return {files[name]: values for name, values in self.changes.files.items()}

    def _read_if_there(self, name: str, record: type[R], empty: R) -> R:
        path = self.root / name
        if path.is_file():
            return self._read(path, record)
        self._listed(str(Path(name).parent))
        return empty

    def _listed(self, folder: str, depth: int = 1) -> dict[str, FilePath]:
        """Return the files of a folder. Raises `DiagnosticError` when one is YAML by an ending that is not read."""
        strange = misnamed(self.root / folder, depth)
        if strange:
            raise DiagnosticError(strange)
        return file_names(self.root / folder, depth)

    def _named(self, path: FilePath, record: type[R], name: str, key: str = "name") -> R:
        entry = self._read(path, record)
        if getattr(entry, key) != name:
            message = f"{shown_path(path)} must have `{key}: {name}`, as its path says"
            raise DiagnosticError([Diagnostic("catalog/misplaced", message)])
        return entry

    def _explained(self, unknown: UnknownName) -> UnknownName:
        reasons = {n.name.casefold(): n.reason for n in self.index.not_modelled}
        reason = reasons.get(unknown.name.strip().casefold(), "")
        return UnknownName(unknown.kind, unknown.name, reason=reason) if reason else unknown

    @staticmethod
    def _kept(file: QualityFile, weights: str | None, model: Architecture, evidence: str) -> QualityEvidence | None:
        native = file.canonical(model.original_format or model.native_format)
        if weights is None or weights in WIDE_FORMATS or file.canonical(weights) == native:
            return NATIVE
        return evidence_for(file, weights, model, evidence)
