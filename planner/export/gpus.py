"""What platforms call the GPUs of the catalog. Only names that are certain stand here; others are left out of files."""

from __future__ import annotations

VENDORS = {"MI": "amd", "Gaudi": "habana", "Arc": "intel"}
"""Vendor by the start of a GPU's name; all others are NVIDIA's."""

RESOURCES = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "habana": "habana.ai/gaudi",
    "intel": "gpu.intel.com/xe",
}
"""Resource that the device plugin of each vendor offers to Kubernetes."""

PRODUCTS = {
    "A10": "NVIDIA-A10",
    "A10G": "NVIDIA-A10G",
    "A100-PCIe-40GB": "NVIDIA-A100-PCIE-40GB",
    "A100-PCIe-80GB": "NVIDIA-A100-80GB-PCIe",
    "A100-SXM-40GB": "NVIDIA-A100-SXM4-40GB",
    "A100-SXM-80GB": "NVIDIA-A100-SXM4-80GB",
    "A30": "NVIDIA-A30",
    "A40": "NVIDIA-A40",
    "B200-SXM-180GB": "NVIDIA-B200",
    "H100-NVL-94GB": "NVIDIA-H100-NVL",
    "H100-PCIe-80GB": "NVIDIA-H100-PCIe",
    "H100-SXM-80GB": "NVIDIA-H100-80GB-HBM3",
    "H200-SXM-141GB": "NVIDIA-H200",
    "L4": "NVIDIA-L4",
    "L40": "NVIDIA-L40",
    "L40S": "NVIDIA-L40S",
    "RTX-3090": "NVIDIA-GeForce-RTX-3090",
    "RTX-4090": "NVIDIA-GeForce-RTX-4090",
    "RTX-5090": "NVIDIA-GeForce-RTX-5090",
    "RTX-6000-Ada": "NVIDIA-RTX-6000-Ada-Generation",
    "RTX-A6000": "NVIDIA-RTX-A6000",
    "T4": "Tesla-T4",
    "V100-SXM2-16GB": "Tesla-V100-SXM2-16GB",
    "V100-SXM2-32GB": "Tesla-V100-SXM2-32GB",
}
"""Label `nvidia.com/gpu.product` of NVIDIA's GPU feature discovery: the driver's product name with dashes for spaces."""

ACCELERATORS = {
    "A10": "A10",
    "A10G": "A10G",
    "A100-SXM-40GB": "A100",
    "A100-SXM-80GB": "A100-80GB",
    "B200-SXM-180GB": "B200",
    "H100-SXM-80GB": "H100",
    "H200-SXM-141GB": "H200",
    "L4": "L4",
    "L40S": "L40S",
    "T4": "T4",
    "V100-SXM2-16GB": "V100",
    "V100-SXM2-32GB": "V100-32GB",
}
"""Names of accelerators that SkyPilot 0.14 uses on the large clouds."""


def vendor(gpu: str) -> str:
    """Return the vendor of a GPU."""
    return next((name for start, name in VENDORS.items() if gpu.startswith(start)), "nvidia")
