"""Exported manifests are objects that their platforms take, and say what the plan says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import ceil
from shlex import split
from typing import Any

import jsonschema
import pytest
import yaml
from export_plans import DATA, HOSTILE, chat, exported, objects, of_pools, over_nodes, places, prod
from hypothesis import given
from hypothesis import strategies as st

from planner.export.names import LONGEST, dns_name, unique_names
from planner.export.targets.kubernetes import target_batch
from planner.plan.schema import NodePlan, Plan

SCHEMAS = json.loads((DATA / "manifests" / "schemas.json").read_text(encoding="utf-8"))
DNS = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
TARGETS = ("kubernetes", "kserve", "dynamo")


def hostile() -> Plan:
    """Return a plan whose names are all hostile; engines still load a repository."""
    pools = [chat(name=name, model=name) for name in (HOSTILE, HOSTILE.upper(), "x" * 300, "1", "Chat", "chat")]
    return of_pools(*pools).model_copy(update={"fleet": HOSTILE})


def several() -> Plan:
    """Return a plan of pools in two clouds and a rack, of several periods, and over nodes."""
    quiet = {"day": 4, "night": 1}
    return of_pools(
        chat(placement=places(("aws", "us-east-1", 1), ("gcp", "us-central1", 3)), replicas_by_period=quiet),
        chat(name="idle", placement=places(("owned", "rack-7", 4)), replicas_by_period={"day": 4, "night": 0}),
        over_nodes(replicas_by_period=quiet),
        chat(name="spot", spot=True, placement=places(("aws", "us-east-1", 4))),
        chat(name="azure", spot=True, placement=places(("azure", "eastus", 4))),
    )


def node(**changes: Any) -> NodePlan:
    """Return a node of the plan with changes."""
    return prod().nodes[0].model_copy(update=changes)


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    """Return what checks objects of a kind against the excerpt of its schema."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMAS["$defs"]})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("plan", [prod(), hostile(), several()], ids=["prod", "hostile", "several"])
def test_objects_meet_their_schemas(plan: Plan, target: str) -> None:
    if target == "kserve":
        plan = of_pools(*(p for p in plan.pools if p.pipeline_parallel == 1))
    found = objects(plan, target)

    assert found
    for each in found:
        assert [error.message for error in validator(each["kind"]).iter_errors(each)] == []
        assert "null" not in json.dumps(each)


@pytest.mark.parametrize("plan", [prod(), hostile(), several()], ids=["prod", "hostile", "several"])
def test_builtin_kinds_meet_the_whole_schemas_of_kubernetes(plan: Plan) -> None:
    whole = pytest.importorskip("kubernetes_validate")
    for each in objects(plan, "kubernetes"):
        if "x-k8s.io" not in each["apiVersion"]:
            whole.validate(each, "1.35", strict=True)


@pytest.mark.parametrize("target", TARGETS)
def test_names_are_legal_unique_and_kept_as_they_were(target: str) -> None:
    found = objects(hostile(), target)
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    kept = {each["metadata"]["annotations"]["llm-fleet-planner/pool"] for each in found}

    assert len(set(names)) == len(names)
    assert all(DNS.fullmatch(name) and len(name) <= LONGEST for _, name in names)
    assert kept == {p.name for p in hostile().pools}
    for each in found:
        assert all(LABEL.fullmatch(v) and len(v) <= 63 for v in each["metadata"]["labels"].values())


def test_names_are_the_same_every_time_and_plain_ones_are_kept() -> None:
    assert dns_name("chat-2") == "chat-2"
    assert dns_name("Chat 2") == "chat-2-bef5afc5"
    assert len({dns_name(f"{'x' * 60}{n}") for n in range(50)}) == 50
    assert unique_names(["a b", "a-b", "a-b"]) == unique_names(["a b", "a-b", "a-b"])
    assert len(set(unique_names(["a b", "a-b", "a-b"]))) == 3


def test_a_deployment_of_kubernetes() -> None:
    deployment, service, budget = objects(prod(), "kubernetes", pools=frozenset({"chat-2"}))
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (term,) = _terms(spec)

    assert deployment["spec"]["replicas"] == 4
    assert container["image"] == "vllm/vllm-openai:v0.33.0"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert {probe["httpGet"]["path"] for key, probe in container.items() if key.endswith("Probe")} == {"/health"}
    assert spec["volumes"][0]["emptyDir"]["medium"] == "Memory"
    assert term == {
        "topology.kubernetes.io/region": ["us-central1"],
        "node.kubernetes.io/instance-type": ["a3-highgpu-8g"],
    }
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"]):
        assert selector.items() <= labels.items()
    assert budget["spec"]["maxUnavailable"] == 1


def test_pools_without_spares_have_no_disruption_budget() -> None:
    assert [o["kind"] for o in objects(of_pools(chat(spare_replicas=0)), "kubernetes")] == ["Deployment", "Service"]


def test_pools_of_a_model_share_the_disruption_budget_of_a_place() -> None:
    """Spares cover the loss of any one pool: two budgets would let a drain take the spares of both at once."""
    plan = of_pools(
        chat(name="a", spare_replicas=2),
        chat(name="b", spare_replicas=1),
        chat(name="none", spare_replicas=0),
        chat(name="far", placement=places(("aws", "us-east-1", 4))),
        chat(name="other", model="other"),
        over_nodes(spare_replicas=1),
    )
    budgets = [o for o in objects(plan, "kubernetes") if o["kind"] == "PodDisruptionBudget"]
    found = {
        tuple(o["spec"]["selector"]["matchExpressions"][0]["values"]): o["spec"]["maxUnavailable"] for o in budgets
    }

    assert found == {("a", "b"): 1, ("far",): 1, ("other",): 1}
    assert budgets[0]["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "chat"}
    assert budgets[0]["metadata"]["annotations"]["llm-fleet-planner/pool"] == "a, b"


def test_autoscalers_go_from_the_least_to_the_most_replicas_of_any_period() -> None:
    found = [o for o in objects(several(), "kubernetes") if o["kind"] == "HorizontalPodAutoscaler"]
    bounds = {o["metadata"]["name"]: (o["spec"]["minReplicas"], o["spec"]["maxReplicas"]) for o in found}
    batch = {o["spec"]["metrics"][0]["pods"]["target"]["averageValue"] for o in found}

    assert bounds == {"chat-2-gcp-us-central1": (1, 3), "idle": (1, 4), "giant": (1, 4)}
    assert batch == {"18076m"}  # 22.9 sequences at once that a replica is planned for, by the factor of its band


def test_a_pool_that_decodes_nothing_has_no_autoscaler() -> None:
    plan = of_pools(chat(mean_batch=0.0, replicas_by_period={"day": 4, "night": 1}))

    assert "HorizontalPodAutoscaler" not in {o["kind"] for o in objects(plan, "kubernetes")}
    assert not any("custom metrics" in line for line in exported(plan, "kubernetes").notes)


@given(batch=st.floats(0.001, 1e6), factor=st.floats(1.0, 3.0), replicas=st.integers(1, 10_000))
def test_an_autoscaler_keeps_all_replicas_at_the_load_that_they_are_planned_for(
    batch: float, factor: float, replicas: int
) -> None:
    pool = chat(mean_batch=batch * factor, band=chat().band.model_copy(update={"factor": factor}))
    target = Fraction(int(target_batch(pool).removesuffix("m")), 1000)

    for running in (batch * factor, batch):  # as planned, and on servers as fast as predicted
        assert ceil(replicas * Fraction(running) / target) >= replicas


def test_replicas_over_nodes_are_groups_of_a_leader_and_workers() -> None:
    group, service = (o for o in objects(of_pools(over_nodes()), "kubernetes") if o["kind"] != "PodDisruptionBudget")
    template = group["spec"]["leaderWorkerTemplate"]
    leader, worker = (template[f"{role}Template"]["spec"]["containers"][0] for role in ("leader", "worker"))
    joined = ["--nnodes", "2", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"]

    assert (group["kind"], template["size"], group["spec"]["replicas"]) == ("LeaderWorkerSet", 2, 4)
    assert leader["args"][-6:] == joined
    assert worker["args"][-7:] == [*joined, "--headless"]
    assert leader["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "readinessProbe" not in worker
    assert service["spec"]["selector"].items() <= template["leaderTemplate"]["metadata"]["labels"].items()
    assert not service["spec"]["selector"].items() <= template["workerTemplate"]["metadata"]["labels"].items()


def test_no_service_has_the_name_of_a_group() -> None:
    """The operator makes a headless Service of that name; no pool takes the name that ours has instead."""
    names = ("giant", "giant-http", "giant-http-http", "x" * 60, HOSTILE)
    found = objects(of_pools(*(over_nodes(name=name) for name in names), chat(name="chat-http")), "kubernetes")
    services = [o["metadata"]["name"] for o in found if o["kind"] == "Service"]
    groups = {o["metadata"]["name"] for o in found if o["kind"] == "LeaderWorkerSet"}

    assert services[0] == "giant-http"
    assert not groups & set(services)
    assert len(set(services)) == len(services) == len(groups) + 1
    assert all(DNS.fullmatch(name) and len(name) <= 63 for name in services)


@pytest.mark.parametrize("name", ["x" * 300, "chat"])
def test_names_are_as_short_as_dynamo_admits(name: str) -> None:
    """45 characters: of the graph and a service, and of the leader of a replica over nodes."""
    for pool in (chat(name=name), over_nodes(name=name)):
        (graph,) = objects(of_pools(pool), "dynamo")
        for service, about in graph["spec"]["services"].items():
            leader = f"{service}-ldr" if "multinode" in about else ""
            assert len(graph["metadata"]["name"] + service + leader) <= 45


@pytest.mark.parametrize("target", ["kubernetes", "kserve", "dynamo", "llm-d"])
def test_no_service_sets_variables_of_an_engine(target: str) -> None:
    """One named `vllm` would set VLLM_PORT."""
    pods = [pod for o in objects(of_pools(chat()), target) for pod in _with(o, "tolerations")]

    assert pods
    assert [pod["enableServiceLinks"] for pod in pods] == [False] * len(pods)


@pytest.mark.parametrize("target", ["kserve", "llm-d"])
def test_replicas_over_nodes_are_refused_where_a_target_has_none(target: str) -> None:
    with pytest.raises(Exception, match="giant"):
        exported(of_pools(over_nodes()), target)


def test_places_choose_nodes_by_what_is_certain_about_them() -> None:
    nodes = [node(provider="aws", region="us-east-1", instance="p5.48xlarge", term="spot")]
    plan = several().model_copy(update={"nodes": tuple(nodes)})
    terms = {
        o["metadata"]["name"]: _terms(o["spec"]["template"]["spec"])
        for o in objects(plan, "kubernetes")
        if o["kind"] == "Deployment"
    }
    on_aws = {"topology.kubernetes.io/region": ["us-east-1"], "node.kubernetes.io/instance-type": ["p5.48xlarge"]}

    assert terms["idle"] == [{"nvidia.com/gpu.product": ["NVIDIA-H100-80GB-HBM3"]}]
    assert terms["spot"] == [
        {**on_aws, "eks.amazonaws.com/capacityType": ["SPOT"]},
        {**on_aws, "karpenter.sh/capacity-type": ["spot"]},
    ]
    assert terms["azure"][0]["kubernetes.azure.com/scalesetpriority"] == ["spot"]


def test_gpus_of_other_vendors_need_an_image() -> None:
    pool = chat(gpu="MI300X")
    with pytest.raises(Exception, match="no default image of vllm for MI300X"):
        exported(of_pools(pool), "kubernetes")
    deployment = objects(of_pools(pool), "kubernetes", images={"chat-2": "rocm/vllm:own"})[0]
    spec = deployment["spec"]["template"]["spec"]

    assert spec["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "2"}
    assert "affinity" not in spec


@pytest.mark.parametrize("target", ["kubernetes", "dynamo", "llm-d"])
def test_no_word_of_a_user_is_expanded_by_kubernetes(target: str) -> None:
    pool = chat(model="$(HF_TOKEN)", checkpoint="org/plain")
    text = exported(of_pools(pool), target).text
    arguments = [a for o in yaml.safe_load_all(text) for a in _lists_of(o, "args")]

    assert not [a for a in arguments if re.search(r"(?<!\$)(\$\$)*\$\(", a)]


def test_kserve_gets_its_flags_through_a_shell() -> None:
    (service,) = objects(of_pools(chat()), "kserve")
    (container,) = service["spec"]["template"]["containers"]
    (variable,) = container["env"]
    words = split(variable["value"])

    assert service["spec"]["model"] == {"uri": "hf://meta-llama/Llama-3.3-70B-Instruct", "name": "chat"}
    assert service["spec"]["replicas"] == 4
    assert variable["name"] == "VLLM_ADDITIONAL_ARGS"
    assert words[:4] == ["--tensor-parallel-size", "2", "--quantization", "fp8_per_tensor"]
    assert not {"--port", "--served-model-name"} & set(words)
    assert "image" not in container
    (own,) = objects(of_pools(chat()), "kserve", image="org/vllm:own")
    assert own["spec"]["template"]["containers"][0]["image"] == "org/vllm:own"


def test_llm_d_gets_what_its_chart_turns_into_flags_as_values() -> None:
    layout = {"tensor_parallel": 2, "attention_data_parallel": 4, "expert_parallel": 8}
    (values,) = objects(of_pools(chat({"gpus_in_node": 8}, **layout)), "llm-d")
    decode = values["decode"]

    assert decode["parallelism"] == {"tensor": 2, "data": 4}
    assert decode["replicas"] == 4
    assert decode["containers"][0]["modelCommand"] == "vllmServe"
    assert not {"--tensor-parallel-size", "--data-parallel-size", "--port"} & set(decode["containers"][0]["args"])
    assert "--enable-expert-parallel" in decode["containers"][0]["args"]
    assert values["modelArtifacts"]["uri"] == "hf://meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize(
    ("model", "by_kserve", "by_llm_d"),
    [
        ("chat", "chat", "chat"),
        ("meta-llama/Llama-3.1_8B", "meta-llama/Llama-3.1_8B", "meta-llama/Llama-3.1_8B"),
        ("Große Liebe", "gro-e-liebe-f9cea463", "Große Liebe"),
        ("$(A)", "a-02fe5121", "$$(A)"),
        ("-rf", "rf-686c39ac", "rf-686c39ac"),
    ],
)
def test_models_keep_their_names_where_a_platform_takes_them(model: str, by_kserve: str, by_llm_d: str) -> None:
    plan = of_pools(chat(model=model, checkpoint="org/own"))
    kserve, llm_d = exported(plan, "kserve"), exported(plan, "llm-d")

    assert yaml.safe_load(kserve.text)["spec"]["model"]["name"] == by_kserve
    assert yaml.safe_load(llm_d.text)["modelArtifacts"]["name"] == by_llm_d
    said = f"model `{model}` is served as `{by_kserve}`: the platform does not take its own name"
    assert (said in kserve.notes) == (by_kserve != model)
    assert (said in llm_d.notes) == (by_llm_d == by_kserve != model)


def test_llm_d_renders_no_template_of_a_user() -> None:
    place = places(("aws", "{{ .Values.secret }}", 4))
    nodes = (node(provider="aws", region="{{ .Values.secret }}", instance="{{x"),)
    plan = of_pools(chat(placement=place)).model_copy(update={"nodes": nodes})
    affinity = json.dumps(objects(plan, "llm-d")[0]["decode"]["extraConfig"])

    assert "{{ .Values" not in affinity
    assert '{{ \\"{{\\" }} .Values.secret }}' in affinity


@pytest.mark.parametrize("target", ["kserve", "llm-d"])
@pytest.mark.parametrize("weights", ["/models/own", "org/a: b", "org/{{ .Values }}", "s3://bucket/own"])
def test_targets_that_load_from_hugging_face_refuse_other_weights(target: str, weights: str) -> None:
    with pytest.raises(Exception, match="no repository of Hugging Face"):
        exported(of_pools(chat(checkpoint=weights)), target)


def test_dynamo_has_a_frontend_and_workers_with_the_flags_of_their_engine() -> None:
    (graph,) = objects(of_pools(over_nodes()), "dynamo")
    worker = graph["spec"]["services"]["Worker"]
    main = worker["extraPodSpec"]["mainContainer"]

    assert worker["multinode"] == {"nodeCount": 2}
    assert worker["resources"]["limits"] == {"gpu": "8"}
    assert main["command"] == ["python3", "-m", "dynamo.vllm"]
    assert main["args"][:4] == ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--served-model-name", "chat"]
    assert "--node-rank" not in main["args"]
    with pytest.raises(Exception, match="carry an engine of their own"):
        exported(of_pools(chat()), "dynamo", image=None)


def test_a_service_of_skypilot() -> None:
    day_and_night = chat(replicas_by_period={"day": 4, "night": 2}, spot=True)
    (task,) = objects(of_pools(day_and_night), "skypilot")

    assert task["resources"] == {
        "infra": "gcp/us-central1",
        "accelerators": {"H100": 2},
        "use_spot": True,
        "ports": 8000,
    }
    assert (task["service"]["replica_policy"]["min_replicas"], task["service"]["replica_policy"]["max_replicas"]) == (
        2,
        4,
    )
    assert task["setup"] == "pip install 'vllm==0.33.*'\n"


def test_skypilot_is_told_the_instance_that_a_replica_fills() -> None:
    (task,) = objects(of_pools(chat({"gpus_in_node": 8}, tensor_parallel=8)), "skypilot")

    assert task["resources"]["instance_type"] == "a3-highgpu-8g"
    assert "accelerators" not in task["resources"]
    assert task["service"]["replicas"] == 4


def test_skypilot_leaves_out_what_is_no_cloud() -> None:
    found = exported(prod(), "skypilot")

    assert [d.name for d in found.documents] == ["chat-2", "code-2", "reason"]
    assert sum(note.startswith("left out: ") for note in found.notes) == 2
    assert "The plan puts several replicas on each a3-highgpu-8g (8 GPUs)." in found.text
    with pytest.raises(Exception, match="cloud of SkyPilot"):
        exported(prod(), "skypilot", pools=frozenset({"chat-1"}))


@pytest.mark.parametrize("target", ["vllm", "kubernetes", "kserve", "llm-d", "dynamo", "skypilot"])
def test_every_file_starts_with_where_it_comes_from_and_what_is_left_to_decide(target: str) -> None:
    found = exported(prod(), target)
    for document in found.documents:
        name, text = found.file(document)
        start = [line for line in text.splitlines()[:4] if not line.startswith("#!")][:3]

        assert name.endswith((".yaml", ".sh"))
        assert start[0].startswith(f"# Fleet prod, exported for {target} by planner ")
        assert prod().digests.plan in start[1]
        assert start[2].startswith("# Not decided by the plan: ")


@pytest.mark.parametrize("target", ["vllm", "kubernetes", "kserve", "dynamo", "skypilot"])
def test_no_name_leaves_a_comment(target: str) -> None:
    pool = chat(name="a\nb: c", model="m\rn", checkpoint="org/own")
    plan = of_pools(pool).model_copy(update={"fleet": "f\ninjected: true\u2028x\u0085y"})
    header = exported(plan, target).header

    assert all(line.startswith("#") for line in header.splitlines())


def _terms(spec: Mapping[str, Any]) -> list[dict[str, list[str]]]:
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [{e["key"]: e["values"] for e in term["matchExpressions"]} for term in required["nodeSelectorTerms"]]


def _with(value: Any, key: str) -> list[dict[str, Any]]:
    """Return every mapping that has a key."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] * (isinstance(value, dict) and key in value) + [m for v in inner for m in _with(v, key)]


def _lists_of(value: Any, key: str) -> Sequence[str]:
    if isinstance(value, dict):
        return [a for k, v in value.items() for a in (v if k == key else _lists_of(v, key))]
    return [a for item in value for a in _lists_of(item, key)] if isinstance(value, list) else []
