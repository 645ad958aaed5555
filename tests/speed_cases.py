"""Models, devices and the five worked cases of the speed model, stated here so that no catalog edit moves a test.

The step times come from a second, independent implementation of the same form; measured figures are published ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from planner.physics.constants import SpeedConstants
from planner.physics.types import Architecture, Device, Layout

GIB = 2**30
CALIBRATION = Path(__file__).parent / "data" / "calibration" / "study.yaml"
"""Constants of the study that the worked cases are from, so that no new fit moves them."""

LLAMA_8B = Architecture(
    name="llama-3.1-8b", family="llama3", n_layers=32, d_model=4096, n_heads=32, n_kv_heads=8, head_dim=128,
    d_ff=14336, vocab=128256, tie_embeddings=False, gated_mlp=True, attention="GQA", n_attention_layers=32,
    kv_elements_per_token=65536, n_params_total=8030261248, n_params_active=8030261248, native_format="bf16",
    max_position=131072,
)  # fmt: skip
LLAMA_70B = Architecture(
    name="llama-3.1-70b", family="llama3", n_layers=80, d_model=8192, n_heads=64, n_kv_heads=8, head_dim=128,
    d_ff=28672, vocab=128256, tie_embeddings=False, gated_mlp=True, attention="GQA", n_attention_layers=80,
    kv_elements_per_token=163840, n_params_total=70553706496, n_params_active=70553706496, native_format="bf16",
    max_position=131072,
)  # fmt: skip
MIXTRAL_8X7B = Architecture(
    name="mixtral-8x7b", family="mixtral", n_layers=32, d_model=4096, n_heads=32, n_kv_heads=8, head_dim=128,
    d_ff=14336, vocab=32000, tie_embeddings=False, gated_mlp=True, attention="GQA", n_attention_layers=32,
    kv_elements_per_token=65536, n_params_total=46702792704, n_params_active=12879925248, native_format="bf16",
    max_position=32768, n_experts=8, experts_per_token=2, moe_d_ff=14336, n_moe_layers=32,
)  # fmt: skip
GPT_OSS_120B = Architecture(
    name="gpt-oss-120b", family="gpt-oss", n_layers=36, d_model=2880, n_heads=64, n_kv_heads=8, head_dim=64,
    d_ff=2880, vocab=201088, tie_embeddings=False, gated_mlp=True, attention="GQA alternating sliding",
    n_attention_layers=36, kv_elements_per_token=36864, n_params_total=116829156672, n_params_active=5130000000,
    native_format="mxfp4", max_position=131072, n_local_layers=18, sliding_window=128, n_experts=128,
    experts_per_token=4, moe_d_ff=2880, n_moe_layers=36,
)  # fmt: skip
DEEPSEEK_R1 = Architecture(
    name="deepseek-r1", family="deepseek", n_layers=61, d_model=7168, n_heads=128, n_kv_heads=128, head_dim=192,
    d_ff=18432, vocab=129280, tie_embeddings=False, gated_mlp=True, attention="MLA", n_attention_layers=61,
    kv_elements_per_token=35136, n_params_total=671026419200, n_params_active=37550000000, native_format="fp8",
    max_position=163840, kv_lora_rank=512, q_lora_rank=1536, qk_rope_head_dim=64, qk_nope_head_dim=128,
    v_head_dim=128, n_experts=256, experts_per_token=8, moe_d_ff=2048, shared_d_ff=2048, first_k_dense=3,
    n_moe_layers=58,
)  # fmt: skip

H100 = Device(
    name="H100-SXM-80GB", vendor="NVIDIA", architecture_class="Hopper", usable_bytes=79.1 * GIB,
    bandwidth_bytes_per_s=3.35e12, flops={"bf16": 989.4e12, "fp8": 1978.9e12, "int8": 1978.9e12}, link_class="nvlink",
    link_bytes_per_s=450e9, scale_up_gpus=8, pcie_bytes_per_s=64e9,
)  # fmt: skip
H200 = Device(
    name="H200-SXM-141GB", vendor="NVIDIA", architecture_class="Hopper", usable_bytes=139.8 * GIB,
    bandwidth_bytes_per_s=4.8e12, flops={"bf16": 989.4e12, "fp8": 1978.9e12, "int8": 1978.9e12}, link_class="nvlink",
    link_bytes_per_s=450e9, scale_up_gpus=8, pcie_bytes_per_s=64e9,
)  # fmt: skip
B200 = Device(
    name="B200-SXM-180GB", vendor="NVIDIA", architecture_class="BlackwellDC", usable_bytes=178.35 * GIB,
    bandwidth_bytes_per_s=7.7e12, flops={"bf16": 2250e12, "fp8": 4500e12, "fp4": 9000e12, "int8": 4500e12},
    link_class="nvlink", link_bytes_per_s=900e9, scale_up_gpus=8, pcie_bytes_per_s=64e9,
)  # fmt: skip
GB200 = Device(
    name="GB200", vendor="NVIDIA", architecture_class="BlackwellDC", usable_bytes=184.3 * GIB,
    bandwidth_bytes_per_s=8e12, flops={"bf16": 2500e12, "fp8": 5000e12, "fp4": 10000e12, "int8": 5000e12},
    link_class="nvlink", link_bytes_per_s=900e9, scale_up_gpus=72, pcie_bytes_per_s=64e9,
)  # fmt: skip
MI355X = Device(
    name="MI355X", vendor="AMD", architecture_class="CDNA4", usable_bytes=287.98 * GIB, bandwidth_bytes_per_s=8e12,
    flops={"bf16": 2516.6e12, "fp8": 5033.2e12, "fp4": 10066.3e12, "int8": 5033.2e12}, link_class="xgmi",
    link_bytes_per_s=537.6e9, scale_up_gpus=8, pcie_bytes_per_s=64e9,
)  # fmt: skip
A100 = Device(
    name="A100-SXM-80GB", vendor="NVIDIA", architecture_class="AmpereDC", usable_bytes=79.15 * GIB,
    bandwidth_bytes_per_s=2.039e12, flops={"bf16": 312e12, "int8": 624e12}, link_class="nvlink",
    link_bytes_per_s=300e9, scale_up_gpus=8, pcie_bytes_per_s=32e9,
)  # fmt: skip
L40S = Device(
    name="L40S", vendor="NVIDIA", architecture_class="Ada", usable_bytes=44.4 * GIB, bandwidth_bytes_per_s=0.864e12,
    flops={"bf16": 362.05e12, "fp8": 733e12, "int8": 733e12}, link_class="pcie", link_bytes_per_s=32e9,
    scale_up_gpus=1, pcie_bytes_per_s=32e9,
)  # fmt: skip
UNKNOWN_GPU = Device(
    name="X1", vendor="Nobody", architecture_class="", usable_bytes=100 * GIB, bandwidth_bytes_per_s=4e12,
    flops={"bf16": 800e12}, link_class="pcie", link_bytes_per_s=64e9, scale_up_gpus=1, pcie_bytes_per_s=64e9,
)  # fmt: skip

MODELS = (LLAMA_8B, LLAMA_70B, MIXTRAL_8X7B, GPT_OSS_120B, DEEPSEEK_R1)
DEVICES = (H100, H200, B200, GB200, MI355X, A100, L40S, UNKNOWN_GPU)


@dataclass(frozen=True)
class Worked:
    """One worked case: inputs, and what the reference implementation gives, in milliseconds and tokens/s."""

    arch: Architecture
    device: Device
    layout: Layout
    weights: str
    kv: str
    engine_class: str
    prompt_tokens: float
    output_tokens: float
    concurrency: float | None
    reserving: bool
    max_sequences: float
    cap: float
    batch: float
    parts_ms: tuple[float, float, float, float, float, float, float, float]
    step_ms: float
    prompt_ms: float
    tokens_per_s: float


WORKED = {
    "8b-h100": Worked(
        LLAMA_8B, H100, Layout(), "fp8", "fp8", "trt_pt", 1000, 1000, None, True, 4096, 517, 517.4,
        (1.261, 5.295, 0.841, 0.0, 23.345, 0.0, 0.460, 3.119), 34.321, 11.36, 12856,
    ),
    "70b-2xh200": Worked(
        LLAMA_70B, H200, Layout(tensor=2), "fp8", "fp8", "trt_cpp", 1000, 1000, None, True, 2048, 628, 627.9,
        (7.190, 33.553, 1.052, 0.0, 28.353, 8.171, 2.152, 2.783), 83.253, 65.56, 5037,
    ),
    "gpt-oss-4xh100": Worked(
        GPT_OSS_120B, H100, Layout(tensor=4), "mxfp4", "bf16", "vllm_new", 921.6, 921.6, 32, False, 1e9, 3881, 31.9,
        (0.171, 0.010, 0.103, 3.625, 0.248, 0.749, 2.003, 0.634), 7.542, 7.84, 4084,
    ),
    "r1-4xb200": Worked(
        DEEPSEEK_R1, B200, Layout(attention_data=4, expert=4), "nvfp4", "bf16", "trt_pt", 1024, 1024, None, True, 4096,
        1723, 1723.4, (7.249, 1.443, 0.589, 17.902, 14.356, 9.330, 1.564, 9.830), 62.264, 13.41, 19714,
    ),
    "gpt-oss-8xmi355x": Worked(
        GPT_OSS_120B, MI355X, Layout(tensor=8), "mxfp4", "bf16", "atom", 7372.8, 921.6, 16, False, 1e9, 7201, 15.8,
        (0.033, 0.002, 0.020, 0.402, 0.130, 1.108, 1.594, 0.503), 3.791, 49.78, 3397,
    ),
}  # fmt: skip


@cache
def constants() -> SpeedConstants:
    """Return the constants of the shipped calibration."""
    return SpeedConstants.from_mapping(calibration())


@cache
def calibration() -> dict[str, object]:
    """Return the shipped calibration as plain data."""
    data = yaml.safe_load(CALIBRATION.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data
