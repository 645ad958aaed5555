"""Offers: prices as published, what is sold, dates, countries, ratios."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from planner.catalog import TERMS, Catalog, CatalogOffer, UnknownName
from planner.catalog.offer import exact_day


def one(catalog: Catalog, provider: str, instance: str, region: str) -> CatalogOffer:
    (offer,) = (o for o in catalog.all_offers(provider) if o.instance == instance and o.region == region)
    return offer


def test_rows_by_provider(shipped: Catalog) -> None:
    rows = Counter({p: len(shipped.all_offers(p)) for p in shipped.providers()})

    assert rows == {
        "aws": 260, "azure": 668, "gcp": 365, "hyperstack": 20, "lambda": 306, "nebius": 21, "oci": 19, "runpod": 4,
        "verda": 17,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "instance", "region", "prices", "country", "day"),
    [
        ("aws", "p5.48xlarge", "us-east-1", {"on-demand": 55.04, "spot": 19.2531}, "US", "2025-12..2026-08"),
        ("aws", "g5.xlarge", "us-east-1", {"on-demand": 1.006}, "US", "2026-07-20"),
        (
            "gcp", "a3-highgpu-8g", "us-central1",
            {"on-demand": 88.49, "spot": 50.6095, "1y": 61.3837, "3y": 38.8644}, "US", "2026-07-30",
        ),
        ("verda", "1A100.22V", "FIN-01", {"on-demand": 1.29, "spot": 0.4515}, "FI", "2025-2026"),
        ("oci", "BM.GPU.H200.8", "all-commercial", {"on-demand": 80.0}, "", "2026"),
    ],
)  # fmt: skip
def test_prices_as_published(
    shipped: Catalog, provider: str, instance: str, region: str, prices: dict[str, float], country: str, day: str
) -> None:
    offer = one(shipped, provider, instance, region)

    assert offer.prices_usd_per_node_h == prices
    assert (offer.country, offer.price_date) == (country, day)
    assert offer.stale_unknown == (exact_day(day) is None)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_small_a3_machines_are_sold_as_spot_only(shipped: Catalog, gpus: int) -> None:
    offer = one(shipped, "gcp", f"a3-highgpu-{gpus}g", "us-central1")

    assert offer.spot_only
    assert offer.terms == ("spot",)
    assert set(offer.unsold_usd_per_node_h) == {"on-demand", "1y", "3y"}
    assert offer.doubts


def test_offers_are_modelled_sold_and_sorted(shipped: Catalog) -> None:
    names = set(shipped.gpu_names())
    for provider in shipped.providers():
        offers = shipped.offers(provider)
        keys = [(o.instance, o.gpu, o.gpus_per_node, o.region) for o in offers]
        assert keys == sorted(keys)
        for offer in offers:
            assert offer.gpu in names
            assert offer.terms
            assert set(offer.terms) <= set(TERMS)
            assert min(offer.prices_usd_per_node_h.values()) > 0


def test_accelerators_left_out_have_prices_but_no_offers(shipped: Catalog) -> None:
    left_out = {n.name for n in shipped.not_modelled()}
    priced = {o.gpu for o in shipped.all_offers("aws")}

    assert {"Trainium1", "Inferentia2", "RTX-PRO-4500-Server"} <= priced & left_out
    assert not {o.gpu for o in shipped.offers("aws")} & left_out


def test_no_serverless_price_is_an_offer(shipped: Catalog) -> None:
    instances = {o.instance for p in shipped.providers() for o in shipped.all_offers(p)}

    assert not [i for i in instances if "serverless" in i]


def test_thin_spot_prices_are_doubted(shipped: Catalog) -> None:
    for instance in ("p5en.48xlarge", "p6-b200.48xlarge"):
        assert any("thin market" in d for d in one(shipped, "aws", instance, "us-east-1").doubts)


def test_derived_prices_say_so(shipped: Catalog) -> None:
    assert one(shipped, "aws", "g6.48xlarge", "eu-central-1").basis == "derived"
    assert one(shipped, "aws", "g6.48xlarge", "us-east-1").basis == "listed"


def test_newest_price_date(shipped: Catalog) -> None:
    days = [o.price_day for p in shipped.providers() for o in shipped.offers(p) if o.price_day]

    assert shipped.newest_price_date() == max(days) == date(2026, 7, 30)


@pytest.mark.parametrize("text", ["2026", "2026-05", "2025-12..2026-08", "2025-2026", "2026-13-01", "2026-7-1", ""])
def test_only_a_full_date_is_a_day(text: str) -> None:
    assert exact_day(text) is None


@pytest.mark.parametrize(
    ("provider", "instance", "term", "upfront", "ratio", "generic"),
    [
        ("gcp", "a3-highgpu-8g", "1y", None, 0.6937, False),
        ("gcp", "a3-megagpu-8g", "3y", "all", 0.4356, False),
        ("aws", "p5.48xlarge", "spot", None, 0.3364, False),
        ("aws", "p5.48xlarge", "1y", None, 0.68, True),
        ("aws", "p5.48xlarge", "3y", "all", 0.4, True),
        ("aws", "p5.4xlarge", "3y", "partial", 0.45, True),
    ],
)
def test_the_most_specific_ratio_is_taken(
    shipped: Catalog, provider: str, instance: str, term: str, upfront: str | None, ratio: float, generic: bool
) -> None:
    found = shipped.commitment_ratio(provider, instance, term, upfront)

    assert found is not None
    assert (found.ratio, found.generic) == (ratio, generic)


def test_without_a_ratio_there_is_none(shipped: Catalog) -> None:
    assert shipped.commitment_ratio("lambda", "gpu_1x_a10", "1y") is None
    assert shipped.commitment_ratio("aws", "p5.4xlarge", "spot") is None


def test_unknown_provider(shipped: Catalog) -> None:
    with pytest.raises(UnknownName) as caught:
        shipped.offers("asw")

    assert caught.value.suggestions == ("aws",)
