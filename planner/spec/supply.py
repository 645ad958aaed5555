"""Supply: which nodes can be bought or are owned, how many, and for how much money."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from planner.spec.fields import (
    Count,
    Country,
    Date,
    ElectricityPrice,
    Line,
    Lines,
    MoneyPerMonth,
    PositiveCount,
    Power,
    ShareBelowOne,
    Terms,
    some,
)
from planner.spec.limits import LimitsSpec
from planner.spec.readers import HardwarePrice, Number, OneOf
from planner.spec.refuse import mistake
from planner.spec.section import Section
from planner.spec.vocabulary import SPOT
from planner.units import Price

OWNED = "owned"
"""Provider name of hardware that is already there."""

_OWNED_NEEDS = ("gpus", "gpus_per_node", "nodes", "price")
_SITE_KEYS = {"host_power_w": "host_power", "pue": "pue", "electricity_usd_per_kwh": "electricity"}
_PUE = Number(1.0, 5.0, "from 1 to 5", "1.3")
_UPFRONT = ("none", "partial", "all")


class OfferSpec(Section):
    """Nodes of one provider to choose from, or owned nodes."""

    name: Line | None = None
    """Name in plans and messages; unique."""
    provider: Line
    """Provider of the catalog, or `owned` for hardware that is already there."""
    region: Line | None = None
    """Region of the provider; default: any that sells the hardware."""
    regions: Lines = ()
    """Several regions, in place of `region`."""
    country: Country | None = None
    """ISO country code of owned hardware."""
    gpus: Lines = ()
    """GPU names of the catalog."""
    instances: Lines = ()
    """Instance types of the provider; default: all with these GPUs."""
    terms: Annotated[Terms, AfterValidator(some("term"))] = ("on-demand",)
    """Terms of purchase: on-demand, spot, 1y, 3y. Spot nodes serve only workloads with `spot`."""
    gpus_per_node: PositiveCount | None = None
    """GPUs of one node; required for owned hardware."""
    nodes: Count | None = None
    """Most nodes available, 0 for none; for owned hardware, the nodes there are."""
    committed: Count | None = None
    """Nodes that are paid whether used or not; owned hardware: all of `nodes`."""
    until: Date | None = None
    """End of the commitment or of the hardware's life."""
    price: Annotated[Price, HardwarePrice()] | None = None
    """Own price, such as `1.10 USD/gpu/h` or `8.80 USD/node/h`; wins over the catalog."""
    discount: ShareBelowOne | None = None
    """Discount on the listed price."""
    host_power_w: Power | None = Field(None, alias="host_power")
    """Power of an owned node besides its GPUs, such as `1.8 kW`; default: not counted."""
    pue: Annotated[float, _PUE] | None = None
    """Power usage effectiveness of the site of owned hardware: power drawn over power of the nodes; default: 1."""
    electricity_usd_per_kwh: ElectricityPrice | None = Field(None, alias="electricity")
    """Price of the power that owned nodes draw at full load, such as `0.12 USD/kWh`; it comes on top of `price`."""
    upfront: Annotated[Literal["none", "partial", "all"], OneOf("upfront payment", _UPFRONT)] | None = None
    """How much of a commitment is paid in advance."""

    @property
    def is_owned(self) -> bool:
        """Tell whether the hardware is already there."""
        return self.provider == OWNED

    @property
    def all_regions(self) -> tuple[str, ...]:
        """Regions named by `region` or `regions`; empty means any."""
        return (self.region,) if self.region is not None else self.regions

    @property
    def price_usd_per_gpu_h(self) -> float | None:
        """Own price per GPU and hour, None when it is not given in this form."""
        return self.price.usd_per_gpu_h if self.price else None

    @property
    def price_usd_per_node_h(self) -> float | None:
        """Own price per node and hour, None when it is not given in this form."""
        return self.price.usd_per_node_h if self.price else None

    @model_validator(mode="after")
    def check_keys(self) -> Self:
        """Refuse keys that contradict each other and owned hardware that is not fully described."""
        given = self.model_fields_set
        for first, second, why in (
            ("region", "regions", "both name regions"),
            ("price", "discount", "both set the price"),
        ):
            if first in given and second in given:
                raise mistake("spec/conflicting-keys", f"`{first}` and `{second}` {why}", "keep one", at=second)
        if not self.gpus and not self.instances:
            raise mistake("spec/missing-key", "this offer names no hardware", "add `gpus` or `instances`")
        if self.committed and SPOT in self.terms:
            raise mistake(
                "spec/conflicting-keys",
                "spot nodes cannot be committed",
                "give them an entry of their own",
                at="committed",
            )
        if self.is_owned:
            self._check_owned()
        for name, key in _SITE_KEYS.items():
            if name in given and not self.is_owned:
                raise mistake(
                    "spec/conflicting-keys",
                    f"`{key}` is for owned hardware",
                    "the price of a cloud includes it",
                    at=key,
                )
        if self.committed is not None and self.nodes is not None and self.committed > self.nodes:
            raise mistake(
                "spec/out-of-range", f"{self.committed} committed nodes are more than the {self.nodes} there are",
                at="committed",
            )  # fmt: skip
        return self

    def _check_owned(self) -> None:
        missing = [key for key in _OWNED_NEEDS if key not in self.model_fields_set]
        if missing:
            needs = ", ".join(f"`{key}`" for key in missing)
            raise mistake("spec/missing-key", f"owned hardware needs {needs}", f"add {needs}")
        if len(self.gpus) > 1:
            raise mistake(
                "spec/conflicting-keys", "owned nodes of one offer have one kind of GPU", "split it", at="gpus"
            )


class SupplySpec(Section):
    """Where nodes may come from."""

    offers: Annotated[tuple[OfferSpec, ...], AfterValidator(some("offer"))]
    """Nodes to choose from."""
    limits: LimitsSpec = LimitsSpec()
    """Most hardware that the fleet may use."""
    budget_usd_per_month: MoneyPerMonth | None = Field(None, alias="budget")
    """Most money per month, such as `400000 USD/month`: a hard limit on the time-mean cost."""

    def offer_labels(self) -> tuple[str, ...]:
        """Return one unique label per offer: its name, else provider and region, numbered where they repeat."""
        labels: list[str] = []
        for offer in self.offers:
            base = offer.name or "-".join((offer.provider, *offer.all_regions[:1]))
            label, count = base, 1
            while label in labels or (offer.name is None and label in self._names()):
                count += 1
                label = f"{base}-{count}"
            labels.append(label)
        return tuple(labels)

    def _names(self) -> frozenset[str]:
        return frozenset(offer.name for offer in self.offers if offer.name is not None)
