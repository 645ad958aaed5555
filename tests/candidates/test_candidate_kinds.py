"""Models that differ only by name and traffic share their shapes; tables are the same with any number of workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planned import spec_of

from planner.candidates.kinds import kinds_of
from planner.candidates.knowledge import Knowledge
from planner.candidates.models import resolve_models
from planner.candidates.pairs import ShapeArrays
from planner.candidates.shapes import enumerate_shapes
from planner.candidates.table import LEAST_MODELS_SHARED_OUT, build_table
from planner.candidates.types import CandidateTable
from planner.catalog import Catalog
from planner.spec import FleetSpec

OPTIONS = ("", ", max_model_len: 8k", ", min_quality: 90 %", ", engine: {max_num_seqs: 16}")
CHOICES = (", max_shapes: 1", ", deny: {gpus: [L4]}", ", reliability: {spare_replicas: 1}", ", uniform_format: false")


def spec(options: tuple[str, ...], catalog: Catalog, offers: str = "L40S, L4") -> FleetSpec:
    models = "".join(f"  m{n:02d}: {{use: llama-3.1-8b-instruct{each}}}\n" for n, each in enumerate(options))
    workloads = "".join(
        f"  w{n:02d}:\n    model: m{n:02d}\n    traffic: {{rate: {n + 1} req/s, input_tokens: 500, output_tokens: 100}}\n"
        "    slo: {tpot_p95: 80 ms}\n"
        for n in range(len(options))
    )
    supply = f"supply:\n  offers:\n    - {{provider: aws, gpus: [{offers}], regions: [us-east-1]}}\n"
    return spec_of(f"version: 1\nfleet: kinds\nmodels:\n{models}workloads:\n{workloads}{supply}", catalog)


def test_what_decides_about_shapes_tells_kinds_apart(catalog: Catalog) -> None:
    models = resolve_models(spec(OPTIONS, catalog), catalog)
    kinds = kinds_of(models, Knowledge.of(catalog, 0.8))
    assert len({id(kind) for kind in kinds.values()}) == len(OPTIONS)


def test_choices_among_shapes_make_no_kind_of_their_own(catalog: Catalog) -> None:
    models = resolve_models(spec(("", *CHOICES), catalog), catalog)
    kinds = kinds_of(models, Knowledge.of(catalog, 0.8))
    assert len({id(kind) for kind in kinds.values()}) == 1


def test_a_kind_gives_each_model_its_own_shapes(catalog: Catalog) -> None:
    knowledge = Knowledge.of(catalog, 0.8)
    models = resolve_models(spec(("", ""), catalog), catalog)
    kinds = kinds_of(models, knowledge)
    device = catalog.gpu("L40S").device()
    for name, model in models.items():
        for sizes in ([1, 4], [8]):
            shapes, lost = kinds[name].enumerate(name, device, sizes)
            assert (shapes, lost) == enumerate_shapes(model, device, sizes, knowledge)
            folded, direct = kinds[name].arrays(model, shapes), ShapeArrays.of(model, shapes, knowledge.constants)
            assert folded.shapes == direct.shapes
            assert all(np.all(getattr(folded.step, key) == value) for key, value in vars(direct.step).items())


def test_the_table_is_the_same_with_any_number_of_workers(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = spec(("", *CHOICES) * 2, catalog)
    assert len(fleet.models) >= LEAST_MODELS_SHARED_OUT

    def built(workers: str) -> CandidateTable:
        monkeypatch.setenv("PLANNER_WORKERS", workers)
        return build_table(fleet, catalog, Knowledge.of(catalog, 0.8))

    alone, shared = built("1"), built("2")
    assert alone.candidates
    assert replace(alone, workloads={}) == replace(shared, workloads={})
    shapes = {id(c.shape.device) for c in shared.candidates}
    assert len(shapes) == 2, "candidates of all models share what the catalog says about a GPU"
