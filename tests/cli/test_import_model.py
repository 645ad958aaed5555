"""`planner catalog import-model` and models of a spec with a hostile config, a name in another case, unknown names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_run import ROOT, TINY, run

LLAMA = ROOT / "tests/data/configs/RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic.json"
IMPORT = ("catalog", "import-model")
VALUES = (
    "Infinity",
    "-Infinity",
    "NaN",
    "1e400",
    "9" * 400,
    "-1",
    "0",
    '"x"',
    "[[1]]",
    '{"a": 1}',
    "true",
    '"\\ud800"',
)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    root = tmp_path / "catalog"
    root.mkdir()
    shutil.copy(ROOT / "catalog/catalog.yaml", root)
    return root


def mutated(folder: Path, key: str, value: str) -> Path:
    text = json.dumps({**json.loads(LLAMA.read_text()), key: "?"}).replace('"?"', value)
    path = folder / "config.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:9])
def test_no_value_of_any_key_is_a_bug(tmp_path: Path, value: str) -> None:
    for key in json.loads(LLAMA.read_text()):
        done = run(*IMPORT, mutated(tmp_path, key, value), "--name", "a/b", "-o", "-")
        assert done.code in (0, 1), key
        assert done.code == 0 or f"`{key}`" in done.err or key == "model_type", (key, done.err)


@pytest.mark.parametrize("command", ["check", "solve"])
@pytest.mark.parametrize("value", ["Infinity", "1e400", "NaN"])
def test_numbers_of_a_spec_s_config_that_are_not_finite(tmp_path: Path, command: str, value: str) -> None:
    mutated(tmp_path, "hidden_size", value)
    spec = tmp_path / "fleet.yaml"
    spec.write_text(TINY.replace("use: llama-3.1-8b", "config: config.json"))
    done = run(command, spec)
    assert done.code == 1
    assert "model/unsupported" in done.out + done.err
    assert "`hidden_size` is no whole number" in done.out + done.err


def test_a_name_in_another_case_is_there_already(catalog: Path) -> None:
    def imported(name: str, *more: str) -> tuple[int, str]:
        done = run(*IMPORT, LLAMA, "--name", name, "--catalog", catalog, *more)
        return done.code, done.err

    assert imported("My/Own-8B")[0] == 0
    code, message = imported("my/own-8b")
    assert code == 64
    assert "My/Own-8B.yaml is there already; --force replaces it" in message
    assert imported("MY/own-8B", "--force")[0] == 0
    assert [str(p.relative_to(catalog)) for p in catalog.rglob("*8*.yaml")] == ["models/My/Own-8B.yaml"]
    assert run("catalog", "check", "--catalog", catalog).code == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("size", "kv", "--model", "nope"),
            "error[catalog/unknown-model]: no model `nope` in the catalog (list them: planner catalog list models)",
        ),
        (
            ("catalog", "list", "offers", "--gpu", "h100"),
            "error[catalog/ambiguous-gpu]: gpu `h100` could mean H100-NVL-94GB, H100-PCIe-80GB, H100-SXM-80GB"
            " (list them: planner catalog list gpus)",
        ),
        (
            ("size", "hbm", "--params", "7B", "--gpu", "l4", "--engine", "foo"),
            "error[catalog/unknown-engine]: no engine `foo` in the catalog; it has llama.cpp, sglang, tensorrt-llm, vllm",
        ),
        (("catalog", "show", "roadrunner"), "error[catalog/unknown-entry]: no entry `roadrunner` in the catalog"),
    ],
)
def test_unknown_names_have_the_code_of_their_kind(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out, done.err) == (1, "", f"{line}\n")
