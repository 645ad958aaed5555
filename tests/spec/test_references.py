"""Names of a spec against the catalog."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_specs import MINIMAL, codes, loaded

from planner.candidates.references import check_references, open_catalog
from planner.catalog import Catalog
from planner.diagnostics import DiagnosticError
from planner.spec import LoadedSpec, load_spec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The repository's catalog."""
    return Catalog.open(ROOT / "catalog")


def test_prod_names_exist(prod_text: str, catalog: Catalog) -> None:
    """The production example names what the catalog has and sells."""
    assert check_references(load_spec(prod_text, "specs/prod.yaml"), catalog) == ()


def test_names_are_checked_although_the_spec_is_wrong(catalog: Catalog) -> None:
    """A wrong unit does not hide a misspelt GPU."""
    result = loaded(("2 req/s", "2"), ("L40S", "L40SS"))

    assert result.spec is None
    assert [d.code for d in check_references(result, catalog)] == ["catalog/unknown-gpu"]


def test_ambiguous_name_lists_what_it_could_mean(catalog: Catalog) -> None:
    """`h100` says which three it could mean."""
    (found,) = check_references(loaded(("L40S", "h100")), catalog)

    assert found.code == "catalog/ambiguous-gpu"
    for name in ("H100-SXM-80GB", "H100-PCIe-80GB", "H100-NVL-94GB"):
        assert f"`{name}`" in found.label


def test_names_ignore_case(catalog: Catalog) -> None:
    """Catalog names resolve in any case, for models and GPUs alike."""
    result = loaded(("llama-3.3-70b", "META-llama/llama-3.3-70B-instruct"), ("L40S", "l40s"))

    assert check_references(result, catalog) == ()


def test_misspelt_default_is_told_once(catalog: Catalog) -> None:
    """A model name under `defaults` is inherited by all models and written once."""
    result = loaded(
        ("models:\n  chat: {use: llama-3.3-70b}", "defaults: {use: llama-3.3-70c}\nmodels:\n  chat: {}\n  code: {}")
    )

    (found,) = check_references(result, catalog)
    assert found.span is not None
    assert (found.code, found.span.line, found.span.column) == ("catalog/unknown-model", 3, 17)


def test_owned_hardware_needs_no_offer(catalog: Catalog) -> None:
    """Owned nodes are checked for their GPU only."""
    owned = "[{provider: owned, gpus: [GPU], gpus_per_node: 8, nodes: 1, price: 1 USD/gpu/h}]"

    right = loaded(("[{provider: aws, gpus: [L40S]}]", owned.replace("GPU]", "MI300X]")))
    wrong = loaded(("[{provider: aws, gpus: [L40S]}]", owned.replace("GPU]", "MI300]")))

    assert check_references(right, catalog) == ()
    assert [d.code for d in check_references(wrong, catalog)] == ["catalog/unknown-gpu"]


def test_region_globs_are_not_names(catalog: Catalog) -> None:
    """Selectors may use patterns; exact names must exist."""
    result = loaded(("{use:", "{allow: {regions: [eu-*, us-east-1]}, deny: {regions: [mars-1]}, use:"))

    assert [d.code for d in check_references(result, catalog)] == ["catalog/unknown-region"]


def test_broken_spec_has_no_references(catalog: Catalog) -> None:
    """Text that is no YAML names nothing."""
    assert check_references(load_spec("a: [", "f"), catalog) == ()


def copy_catalog(folder: Path) -> Path:
    """A catalog with nothing but its index."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "catalog" / "catalog.yaml", folder / "catalog.yaml")
    return folder


def spec_in(folder: Path, head: str = "") -> LoadedSpec:
    """The minimal spec as a file in a folder."""
    (folder / "specs").mkdir(exist_ok=True)
    return load_spec(head + MINIMAL, str(folder / "specs" / "f.yaml"))


def test_catalog_precedence(tmp_path: Path) -> None:
    """A flag wins over the spec's own path, which wins over the nearest folder upward."""
    near = copy_catalog(tmp_path / "catalog")
    named = copy_catalog(tmp_path / "own")
    flag = copy_catalog(tmp_path / "flag")
    head = "catalog: {path: ../own}\n"

    assert open_catalog(spec_in(tmp_path)).root == near
    assert open_catalog(spec_in(tmp_path, head)).root.resolve() == named
    assert open_catalog(spec_in(tmp_path, head), flag).root == flag


def test_digest_pins_the_catalog(tmp_path: Path) -> None:
    """With the right digest the catalog opens, with another it is refused at the digest's place."""
    digest = Catalog.open(copy_catalog(tmp_path / "catalog")).digest()

    assert open_catalog(spec_in(tmp_path, f'catalog: {{digest: "{digest}"}}\n')).digest() == digest
    with pytest.raises(DiagnosticError) as caught:
        open_catalog(spec_in(tmp_path, f'catalog: {{digest: "sha256:{"0" * 64}"}}\n'))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.code, found.span.line, found.span.column) == ("catalog/digest", 1, 19)


def test_helper_spec_is_clean() -> None:
    """The spec that these tests bend is right."""
    assert codes(loaded()) == []
