"""`planner export`: streams, files, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from cli_run import ROOT, TINY, WriteSpec, run
from export_plans import chat, of_pools, prod, saved

from planner.export import all_targets
from planner.plan.io import dump, load, with_digest

PLANS = ROOT / "tests" / "data" / "plans"
CONFIG = "RedHatAI--Meta-Llama-3.1-8B-Instruct-FP8-dynamic.json"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return saved(prod(), tmp_path)


@pytest.mark.parametrize("target", [name for name in all_targets() if name not in ("dynamo", "sglang")])
def test_the_answer_goes_to_standard_output_and_the_rest_to_standard_error(target: str, plan: Path) -> None:
    done = run("export", plan, "--to", target)
    quiet = run("export", plan, "--to", target, "--quiet")

    assert done.code == quiet.code == 0
    assert done.out == quiet.out != ""
    assert quiet.err == ""
    assert all(line.startswith("planner: ") for line in done.err.splitlines())


def test_a_plan_is_exported_the_same_from_standard_input(plan: Path) -> None:
    assert (
        run("export", "-", "--to", "kubernetes", stdin=plan.read_bytes()).out
        == run("export", plan, "--to", "kubernetes").out
    )


def test_one_file_or_a_file_for_every_pool_and_place(plan: Path, tmp_path: Path) -> None:
    one = run("export", plan, "--to", "kubernetes", "-o", tmp_path / "all.yaml")
    each = run("export", plan, "--to", "kubernetes", "--out-dir", tmp_path / "new" / "deploy")
    files = sorted((tmp_path / "new" / "deploy").iterdir())

    assert (one.code, each.code, one.out, each.out) == (0, 0, "", "")
    assert f"wrote {tmp_path / 'all.yaml'}" in one.err
    assert [f.name for f in files] == [f"{p.name}.yaml" for p in prod().pools]
    whole = list(yaml.safe_load_all((tmp_path / "all.yaml").read_text(encoding="utf-8")))
    assert whole == [o for f in files for o in yaml.safe_load_all(f.read_text(encoding="utf-8"))]


def test_files_that_a_platform_takes_one_by_one_are_told_of(plan: Path) -> None:
    assert "--out-dir DIR writes a file of each" in run("export", plan, "--to", "llm-d").err
    assert "--out-dir" not in run("export", plan, "--to", "llm-d", "--pool", "reason").err


@pytest.mark.parametrize("target", ["kubernetes", "vllm", "skypilot"])
def test_names_of_a_plan_stay_on_their_line_of_standard_error(target: str, tmp_path: Path) -> None:
    name = "a\x1b[2J\nplanner: wrote /etc/passwd\u202e\r"
    pools = (chat(name=name, model=name), chat(name=f"{name}2", engine="sglang", version=name))
    done = run("export", saved(of_pools(*pools), tmp_path), "--to", target, "--out-dir", tmp_path / "\x1b[1mdeploy")

    assert done.code == 0
    assert "a�[2J planner: wrote /etc/passwd��" in done.err
    assert all(line.startswith(("planner: ", f"wrote {tmp_path}")) for line in done.err.splitlines())
    assert not set("\x1b\r\u202e") & set(done.err)


def test_scripts_may_be_run(plan: Path, tmp_path: Path) -> None:
    """By all who may read them, and also where the file was there before."""
    kept = tmp_path / "kept.sh"
    kept.touch(mode=0o640)
    run("export", plan, "--to", "vllm", "-o", kept)
    run("export", plan, "--to", "vllm", "--out-dir", tmp_path / "deploy")
    run("export", plan, "--to", "kubernetes", "--out-dir", tmp_path / "deploy")
    (tmp_path / "like-others").touch()
    usual = (tmp_path / "like-others").stat().st_mode

    assert kept.stat().st_mode & 0o777 == 0o750
    assert {f.name: f.stat().st_mode for f in (tmp_path / "deploy").iterdir()} == {
        "serve.sh": usual | (usual & 0o444) >> 2,
        **{f"{p.name}.yaml": usual for p in prod().pools},
    }


def test_images_and_checkpoints_go_by_pool_by_model_or_for_all(plan: Path) -> None:
    done = run(
        *("export", plan, "--to", "kubernetes", "--image", "org/all:1", "--image", "reason=org/reason:2"),
        *("--checkpoint", "chat=org/chat-fp8", "--checkpoint", "chat-2=org/chat-2-fp8"),
    )
    pods = {
        o["metadata"]["name"]: o["spec"]["template"]["spec"]["containers"][0]
        for o in yaml.safe_load_all(done.out)
        if o["kind"] == "Deployment"
    }

    assert {name: pod["image"] for name, pod in pods.items()} == {
        **dict.fromkeys(("chat-1", "chat-2", "code-1", "code-2"), "org/all:1"),
        "reason": "org/reason:2",
    }
    assert [pods[name]["args"][0] for name in ("chat-1", "chat-2")] == ["org/chat-fp8", "org/chat-2-fp8"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "kubernets"), "there is no target `kubernets`"),
        (("--to", "kubernets"), "did you mean `kubernetes`?"),
        (("--to", "vllm", "--pool", "chat"), "the plan has no pool `chat`; it has chat-1, chat-2"),
        (("--to", "csv", "--pool", "chat-1"), "csv is about nodes"),
        (("--to", "vllm", "--checkpoint", "org/own"), "say whose weights `org/own` are, as `chat-1=ORG/REPOSITORY`"),
        (("--to", "vllm", "--checkpoint", "chat-1="), "say whose weights"),
        (("--to", "vllm", "--image", "a", "--image", "b"), "two images for all pools"),
        (
            ("--to", "vllm", "--image", "nope=i:1"),
            "no pool or model `nope`; it has chat-1, chat-2, code-1, code-2, reason",
        ),
        (("--to", "vllm", "--image", "=x"), "no pool or model ``; it has chat-1"),
        (("--to", "vllm", "--image", "chat= "), "` ` is no image"),
        (("--to", "vllm", "--image", 'x y"z'), "is no image; write [NAME=][HOST/]PATH"),
        (("--to", "vllm", "-o", "x.sh", "--out-dir", "x"), "give it or --out, not both"),
        (("--to", "vllm", "-o", "/no/such/folder/x.sh"), "there is no folder"),
        ((), "missing option '--to'"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str, plan: Path) -> None:
    done = run("export", plan, *arguments)

    assert (done.code, done.out) == (64, "")
    assert message in done.err


def test_a_folder_that_cannot_be_made_is_wrong_usage(plan: Path) -> None:
    done = run("export", plan, "--to", "vllm", "--out-dir", plan / "below-a-file")

    assert (done.code, done.out) == (64, "")
    assert "cannot write into" in done.err


def test_what_a_plan_lacks_is_said_with_its_place(tmp_path: Path) -> None:
    path = saved(of_pools(chat(weights="int4"), chat(name="odd", engine="llama.cpp")), tmp_path)
    weights = run("export", path, "--to", "kubernetes", "--pool", "chat-2")
    engine = run("export", path, "--to", "kubernetes", "--pool", "odd")

    assert (weights.code, weights.out, engine.code, engine.out) == (1, "", 1, "")
    assert "error[export/no-checkpoint]: pool `chat-2`: it serves int4 weights" in weights.err
    assert f"{path}:1:1" in weights.err
    assert "error[export/unsupported]: pool `odd`: it runs on llama.cpp" in engine.err


def test_a_model_that_the_spec_brings_needs_its_weights_named(spec_file: WriteSpec, tmp_path: Path) -> None:
    config = ROOT / "tests" / "data" / "configs" / CONFIG
    (tmp_path / "config.json").write_bytes(config.read_bytes())
    brought = "config: config.json, weights: [fp8], engine: {block_size: 32, prefix_caching: false}"
    spec = spec_file(TINY.replace("use: llama-3.1-8b", brought))
    path = tmp_path / "plan.json"
    assert run("solve", spec, "--out", path, "--quiet").code == 0
    refused = run("export", path, "--to", "vllm")
    named = run("export", path, "--to", "vllm", "--checkpoint", "chat=/models/own")

    assert "error[export/no-checkpoint]" in refused.err
    assert "    /models/own \\\n" in named.out
    assert "--block-size 32" in named.out
    assert "--no-enable-prefix-caching" in named.out


def test_a_plan_without_a_fleet_has_nothing_to_export() -> None:
    done = run("export", PLANS / "infeasible.json", "--to", "csv")

    assert (done.code, done.out) == (1, "")
    assert "error[plan/no-fleet]: this plan has no fleet to export" in done.err


def test_plans_of_older_releases_load_keep_their_bytes_and_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    old = prod().model_copy(update={"pools": tuple(p.model_copy(update={"serving": None}) for p in prod().pools)})
    path.write_text(dump(with_digest(old)), encoding="utf-8")
    done = run("export", path, "--to", "vllm")

    assert '"serving"' not in path.read_text(encoding="utf-8")
    assert dump(load(path)) == path.read_text(encoding="utf-8")
    assert done.code == 1
    assert done.err.count("error[plan/older]") == len(old.pools)
    assert run("export", path, "--to", "csv").code == 0


def test_the_help_names_every_target() -> None:
    help = " ".join(run("export", "--help").out.split())

    assert ", ".join([*all_targets()][:-1]) + f" or {[*all_targets()][-1]}" in help
