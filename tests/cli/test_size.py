"""`planner size`: formats, grids, what stands above a table, and every mistake as one line."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import pytest
from cli_run import run

KV = ("size", "kv", "--model", "llama-3-8b")
DECODE = ("size", "decode", "--params", "7B", "--gpu", "h100-sxm")
HUNDRED = ",".join(map(str, range(1, 102)))


def test_a_grid_is_a_table_with_what_is_the_same_above() -> None:
    done = run(*KV, "--context", "2048,8192", "--batch", "1,32")
    above, body, levers = done.out.split("\n\n")

    assert (done.code, done.err) == (0, "")
    assert above.splitlines()[0].split() == ["model", "meta-llama/Meta-Llama-3-8B"]
    assert body.splitlines()[0].startswith("context tokens  batch  bytes per token")
    assert [line.split()[:2] for line in body.splitlines()[1:]] == [
        ["2048", "1"], ["2048", "32"], ["8192", "1"], ["8192", "32"],
    ]  # fmt: skip
    assert body.splitlines()[4].split()[2:6] == ["131,072", "1.074", "34.36", "32"]
    assert "214 %" in body.splitlines()[4]
    assert levers.startswith("rows 1-3: scarce: capacity; lever: ")


def test_one_row_is_listed_with_all_it_knows() -> None:
    done = run(*KV, "--context", "8k")

    assert "context tokens          8000\n" in done.out
    assert "kv over weights share   7 %\n" in done.out
    assert done.out.splitlines()[-1].startswith("scarce: capacity; lever: ")


def test_json_and_csv_hold_the_same_rows() -> None:
    grid = ("--weights", "bf16,int8", "--batch", "1,8")
    answer = json.loads(run(*DECODE, *grid, "--format", "json").out)
    lines = list(csv.DictReader(io.StringIO(run(*DECODE, *grid, "--format", "csv").out)))

    assert answer["schema_version"] == 1
    assert [(r["batch"], r["weights"]) for r in answer["rows"]] == [(1, "bf16"), (1, "int8"), (8, "bf16"), (8, "int8")]
    assert list(lines[0]) == list(answer["rows"][0])
    assert [float(line["step_ms"]) for line in lines] == [r["step_ms"] for r in answer["rows"]]
    assert (answer["rows"][0]["model"], lines[0]["model"]) == (None, "")


def test_units_name_the_keys() -> None:
    hbm = ("size", "hbm", "--params", "7B", "--memory", "8", "--format", "json")
    decimal, binary = (json.loads(run(*hbm, "--units", u).out)["rows"][0] for u in ("GB", "gib"))

    assert decimal["memory_gb"] == 8
    assert decimal["weights_gb"] == 14
    assert binary["memory_gib"] == 8
    assert binary["weights_gib"] == pytest.approx(14e9 / 2**30)


def test_stated_figures_need_no_catalog() -> None:
    done = run("size", "decode", "--params", "70B", "--bandwidth", "3.35TB/s", "--weights", "int8", "--format", "json")

    assert json.loads(done.out)["rows"][0]["weights_ceiling_tok_s"] == pytest.approx(3.35e12 / 70e9)


def test_stated_figures_change_a_catalog_entry() -> None:
    done = run("size", "hbm", "--model", "llama-3-8b", "--gpu", "h100-sxm", "--memory", "40GB", "--format", "json")
    row = json.loads(done.out)["rows"][0]

    assert (row["memory_gb"], row["engine_usable_gb"]) == (40, 40)


def test_native_is_the_format_of_the_model() -> None:
    done = run("size", "kv", "--model", "openai/gpt-oss-120b,llama-3-8b", "--format", "json")

    assert [r["weights"] for r in json.loads(done.out)["rows"]] == ["mxfp4", "bf16"]


def test_a_mixture_of_experts_reads_more_with_every_sequence() -> None:
    decode = ("size", "decode", "--model", "mistralai/Mixtral-8x7B-Instruct-v0.1", "--gpu", "h100-sxm")
    rows = json.loads(run(*decode, "--batch", "1,8,512", "--format", "json").out)["rows"]
    read = [r["weights_gb"] for r in rows]

    assert read[0] == pytest.approx(2 * 12.9, rel=0.01)
    assert read[0] < read[1] < read[2] <= 2 * rows[0]["parameters"] / 1e9


def test_windows_end_the_growth_of_a_cache() -> None:
    sizes = [
        r["kv_gb"]
        for r in json.loads(
            run("size", "kv", "--model", "google/gemma-3-27b-it", "--context", "1k,2k,3k", "--format", "json").out
        )["rows"]
    ]

    assert sizes[1] - sizes[0] > sizes[2] - sizes[1]


def test_latent_attention_is_copied_on_every_gpu() -> None:
    rows = json.loads(run("size", "kv", "--model", "deepseek-ai/DeepSeek-V3", "--tp", "1,8", "--format", "json").out)

    assert rows["rows"][0]["kv_gb_per_gpu"] == rows["rows"][1]["kv_gb_per_gpu"]


def test_many_levers_are_cut_short() -> None:
    batches = ("--batch", "1,2,4", "--weights", "bf16,int8,int4,q8_0,q6_k,q5_k,q4_k")

    assert run(*DECODE, *batches).out.splitlines()[-1] == "and 1 more, in --format json"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*KV, "--context", "8,,16"), "--context: an item of the list is empty"),
        ((*KV, "--context", ""), "--context: an item of the list is empty"),
        ((*KV, "--context", "lots"), "--context: `lots` is not a count"),
        ((*KV, "--context", "inf"), "--context: `inf` is not a count"),
        ((*KV, "--context", "nan"), "--context: `nan` is not a count"),
        ((*KV, "--context", "1e400"), "--context: `1e400` is not a finite number"),
        ((*KV, "--context", "-5"), "--context: `-5` is negative"),
        ((*KV, "--context", "0"), "--context: `0` is not a whole number from 1"),
        ((*KV, "--context", "1.5"), "--context: `1.5` is not a whole number from 1"),
        ((*KV, "--context", "1e13"), "--context: `1e13` is more than 1e+12"),
        ((*KV, "--batch", "1,000"), "--batch: a comma starts the next value: write `1000` instead of `1,000`"),
        ((*KV, "--context", "2k,8,096"), "--context: a comma starts the next value: write `8096` instead of `8,096`"),
        ((*KV, "--context", "8,192"), "`8,192` is 8 and 192: write `8192` for one value, `192,8` for two"),
        ((*KV, "--context", "4096,32,768"), "`32,768` is 32 and 768: write `32768` for one value, `768,32` for two"),
        ((*KV, "--context", "262,144"), "`262,144` is 262 and 144: write `262144` for one value, `144,262` for two"),
        ((*KV, "--context", "8k", "--reserve", "16, 384"), "--reserve: a comma starts the next value, so `16,384` is"),
        ((*KV, "--context", "0x10"), "--context: `0x10` is not a count"),
        ((*KV, "--layers", "1e9"), "--layers: `1e9` is more than 10,000"),
        ((*KV, "--tp", "1M"), "--tp: `1M` is more than 4,096"),
        ((*KV, "--kv-heads", "64", "--heads", "3"), "3 query heads cannot share 64 KV heads: --kv-heads must divide --heads"),
        ((*KV, "--kv-heads", "5"), "32 query heads cannot share 5 KV heads"),
        (("size", "intensity", "--gpu", "l4", "--heads", "7", "--kv-heads", "8"), "7 query heads cannot share 8 KV heads"),
        ((*KV, "--reserve", "8192,100", "--context", "4096"), "--reserve: 100 tokens do not hold the 4,096 of --context"),
        ((*KV, "--params", "0"), "--params: `0` is not a whole number from 1"),
        ((*KV, "--params", "1e30"), "--params: `1e30` is more than 1e+18"),
        ((*KV, "--context", HUNDRED, "--batch", HUNDRED), "the grid has 10,201 rows; 10,000 are allowed"),
        (("size", "kv", "--layers", HUNDRED, "--heads", HUNDRED, "--head-dim", "64"), "the grid has 10,201 rows"),
        (("size", "kv"), "no shape of the KV cache: give --model, or --layers"),
        (("size", "kv", "--model", "deepseek-ai/DeepSeek-V3", "--kv-heads", "8"), "do not go with deepseek-ai/DeepSeek-V3"),
        (("size", "decode", "--gpu", "h100-sxm"), "no parameter count: give --model or --params"),
        (("size", "decode", "--params", "7B"), "no memory bandwidth: give --gpu or --bandwidth"),
        ((*DECODE, "--bandwidth", "3.35TB"), "--bandwidth: `3.35TB` is not a bandwidth; write it as `3.35 TB/s`"),
        ((*DECODE, "--bandwidth", "0TB/s"), "--bandwidth: `0TB/s` must be above zero"),
        (("size", "decode", "--model", "mistralai/Mixtral-8x7B-Instruct-v0.1", "--params", "7B"), "a mixture of experts has two parameter counts"),
        (("size", "intensity"), "no compute peak: give --gpu or --tflops"),
        (("size", "intensity", "--tflops", "0"), "--tflops: `0` is not a number above zero"),
        (("size", "hbm", "--params", "7B"), "no memory size: give --gpu or --memory"),
        (("size", "hbm", "--params", "7B", "--memory", "8Gb"), "`Gb` is gigabit"),
        (("size", "hbm", "--params", "7B", "--memory", "0"), "--memory: `0` must be above zero"),
        (("size", "hbm", "--params", "7B", "--memory", "8GB", "--workspace", "110%"), "--workspace: `110%` is more than the whole"),
        ((*DECODE, "--bandwidth", "0"), "--bandwidth: `0` must be above zero"),
        ((*DECODE, "--bandwidth", "-1TB/s"), "--bandwidth: `-1TB/s` must be a finite bandwidth above zero"),
        (("size", "training", "--nvme-bandwidth", "0"), "--nvme-bandwidth: `0` must be above zero"),
        (("size", "hbm", "--params", "7B", "--memory", "8GB", "--workspace", "0.1"), "`0.1` may be a share or a size; write 10% or 0.1 GB"),
        (("size", "hbm", "--params", "7B", "--memory", "8GB", "--workspace", "1", "--units", "GiB"), "write 100% or 1 GiB"),
        (("size", "hbm", "--params", "7B", "--gpu", "l4", "--batch", "8"), "no shape of the KV cache"),
        (("size", "hbm", "--params", "7B", "--gpu", "l4", "--head-dim", "128"), "--head-dim alone is no shape of the KV cache"),
        (("size", "offload", "--params", "7B", "--gpu", "l4", "--cpu-kv", "50%"), "no shape of the KV cache"),
        (("size", "training", "--params", "7B"), "no shape of the layers: give --model, or --layers and --hidden"),
        (("size", "training", "--zero", "4"), "--zero: `4` is none of its values; known: 0, 1, 2, 3"),
        (("size", "training", "--mfu", "0"), "--mfu: `0` is not above zero"),
        (("size", "training", "--checkpoint", "layers"), "--checkpoint: `layers` is none of its values; did you mean `layer`?"),
        (("size", "training", "--params", "7B", "--layers", "32", "--hidden", "4096", "--attention", "full"), "give --heads"),
        (("size", "offload", "--model", "llama-3-8b", "--gpu", "l4", "--cpu-layers", "33"), "33 is more than the 32 layers"),
        (("size", "offload", "--params", "7B", "--gpu", "l4", "--cpu-layers", "3"), "--cpu-layers needs the number of layers"),
        (("size", "offload", "--model", "llama-3-8b", "--gpu", "l4", "--cpu-layers", "3", "--cpu-weights", "3%"), "give one of them"),
        (("size", "offload", "--model", "llama-3-8b", "--cpu-weights", "30"), "did you mean `30 %`?"),
        ((*KV, "--format", "xml"), "'xml' is not one of 'table', 'json', 'csv'"),
        ((*KV, "--units", "MB"), "no such option"),
        (("size", "roofline"), "no such command 'roofline'"),
    ],
    ids=lambda value: " ".join(value[1:])[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)

    assert (done.code, done.out) == (64, "")
    assert done.err.startswith("planner: ")
    assert done.err.count("\n") == 1
    assert words in done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--weights", "fp9"), "planner: --weights: no format `fp9`; did you mean `fp8`?"),
        (("--kv", "\x1b[31m"), "planner: --kv: no format `�[31m`; known: "),
    ],
)
def test_unknown_formats_are_wrong_usage(flags: tuple[str, str], words: str) -> None:
    done = run("size", "kv", "--model", "llama-3-8b", *flags)

    assert (done.code, done.out) == (64, "")
    assert words in done.err


def test_weights_are_named_as_measurements_name_them() -> None:
    sizes = [run("size", "hbm", "--params", "7B", "--gpu", "l4", "--weights", word).out for word in ("w4a16", "int4")]
    assert sizes[0] == sizes[1] != ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kv", "--model", "meta-llama-3-8c"), "no model `meta-llama-3-8c` in the catalog; did you mean meta-llama/Meta-Llama-3-8B"),
        (("kv", "--model", "llama-3-8b,\x1b[2Jgone"), "no model `�[2Jgone` in the catalog"),
        (("decode", "--params", "7B", "--gpu", "h100"), "gpu `h100` could mean H100-NVL-94GB"),
        (("decode", "--params", "7B", "--gpu", "TPU-v5e"), "is not modelled"),
        (("hbm", "--params", "7B", "--gpu", "l4", "--engine", "vlm"), "no engine `vlm` in the catalog; did you mean vllm"),
        (("kv", "--model", "llama-3-8b", "--catalog", "nowhere"), "nowhere is no catalog"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_unknown_names_are_wrong_input(arguments: tuple[str, ...], words: str) -> None:
    done = run("size", *arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[catalog/")
    assert done.err.count("\n") == 1
    assert words in done.err


def test_the_environment_has_twins_of_flags() -> None:
    done = run(*KV, "--format", "json", env={"PLANNER_BATCH": "1,2"})

    assert len(json.loads(done.out)["rows"]) == 2


def test_alone_it_prints_its_help() -> None:
    done = run("size")

    assert done.code == 64
    assert done.err.startswith("Usage: planner size [OPTIONS] COMMAND")


def test_huge_inputs_stay_finite() -> None:
    huge = str(10**12)
    shape = ("--params", "1T", "--layers", "10000", "--hidden", "1M", "--heads", "10000")
    arguments = (*shape, "--context", huge, "--batch", huge)
    done = run("size", "training", *arguments, "--attention", "full", "--memory", "1GB", "--format", "json")

    assert done.code == 0
    assert json.loads(done.out)["rows"][0]["fits"] is False


@pytest.mark.parametrize("arguments", [(), ("--batch", "8", "--model", "mixtral-8x7b", "--cpu-kv", "50%")])
def test_a_share_to_move_is_enough_as_printed(arguments: tuple[str, ...]) -> None:
    offload = ("size", "offload", "--gpu", "rtx-4090", "--weights", "int4", *(arguments or ("--params", "70B")))
    lever = run(*offload).out.splitlines()[-1]
    share = lever.partition("move ")[2].partition(" of")[0].replace(" ", "")
    moved = run(*offload, "--cpu-weights", share, "--format", "json")

    assert share.endswith("%")
    assert json.loads(moved.out)["rows"][0]["fits"] is True
    assert "lever: move" not in run(*offload, "--cpu-weights", share).out.replace("lever: move less", "")


def test_shares_are_shown_as_given() -> None:
    shares = "37.9%,38.2857%,0.05%,1"
    done = run("size", "offload", "--params", "70B", "--weights", "int4", "--gpu", "rtx-4090", "--cpu-weights", shares)
    lines = done.out.split("\n\n")[1].splitlines()[1:]

    assert [line.split(" %")[0].strip() for line in lines] == ["37.9", "38.2857", "0.05", "100"]
    hbm = run("size", "hbm", "--params", "7B", "--memory", "24GB", "--workspace", "12.5%").out

    assert re.search(r"workspace share +12\.5 %\n", hbm)


def test_a_bare_workspace_above_one_is_a_size() -> None:
    done = run("size", "hbm", "--params", "7B", "--memory", "24GB", "--workspace", "0,2,2GB,10%", "--format", "json")

    assert [r["workspace_gb"] for r in json.loads(done.out)["rows"]] == [0, 2, 2, 2.4]


def test_a_grid_of_small_and_three_digit_values_is_two_values() -> None:
    done = run(*KV, "--batch", "1,295", "--format", "json")

    assert [r["batch"] for r in json.loads(done.out)["rows"]] == [1, 295]


def test_the_engine_holds_the_stated_weights_too() -> None:
    concurrency = ("size", "concurrency", "--model", "llama-3-8b", "--gpu", "h100-sxm", "--format", "json")
    stored = json.loads(run(*concurrency).out)["rows"][0]["engine_sequences"]
    stated = [
        r["engine_sequences"] for r in json.loads(run(*concurrency, "--weights-memory", "16.06,40,100").out)["rows"]
    ]

    assert stated[0] == stored
    assert stored > stated[1] > stated[2] == 0


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "llama-3-8b"])
def test_a_balanced_batch_reaches_the_ridge(model: str) -> None:
    intensity = ("size", "intensity", "--model", model, "--gpu", "h100-sxm", "--format", "json", "--batch")
    (row,) = json.loads(run(*intensity, "1").out)["rows"]
    batch = row["balanced_batch"]
    below, above = json.loads(run(*intensity, f"{int(batch)},{int(batch) + 1}").out)["rows"]
    (step,) = json.loads(run("size", "decode", "--model", model, "--gpu", "h100-sxm", "--format", "json").out)["rows"]

    assert below["decode_flop_per_byte"] <= row["ridge_flop_per_byte"] <= above["decode_flop_per_byte"]
    assert f"(towards {batch:,.0f})" in row["lever"]
    assert f"(towards {batch:,.0f}, the ridge)" in step["lever"]


def test_no_larger_batch_is_advised_beyond_the_ridge() -> None:
    done = run("size", "decode", "--model", "llama-3-8b", "--gpu", "h100-sxm", "--batch", "300", "--context", "300")

    assert done.out.splitlines()[-1].startswith("scarce: bandwidth; lever: the cache keeps the step from the ridge")


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from planner.cli import main;"
        "main(['size', 'hbm', '--model', 'llama-3-8b', '--gpu', 'h100-sxm']);"
        "sys.exit(sorted({'numpy', 'scipy', 'pyomo', 'rich'} & set(sys.modules)) != [])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("flag", "text", "values"),
    [
        ("--context", "192,8", [192, 8]),
        ("--context", "128,256,512", [128, 256, 512]),
        ("--context", "64,512", [64, 512]),
        ("--context", "512,1024", [512, 1024]),
        ("--batch", "8,192", [8, 192]),
        ("--batch", "512,256", [512, 256]),
    ],
)
def test_lists_that_are_no_marked_thousands_stay_lists(flag: str, text: str, values: list[int]) -> None:
    rows = json.loads(run(*KV, "--context", "1k", flag, text, "--format", "json").out)["rows"]
    assert [row[f"{flag[2:]}_tokens" if flag == "--context" else "batch"] for row in rows] == values
