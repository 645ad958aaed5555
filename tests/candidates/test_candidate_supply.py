"""Prices of nodes: listed, discounted, own, estimated or refused; and where pools may lie."""

from __future__ import annotations

from datetime import date

import pytest
from planned import SMALL, spec_of

from planner.candidates.knowledge import Knowledge
from planner.candidates.selection import admits, matches
from planner.candidates.supply import build_supply
from planner.candidates.table import build_table
from planner.candidates.types import CandidateTable, PricedOffer, Supply
from planner.catalog import Catalog, CatalogOffer
from planner.spec import Selector

HEAD = SMALL[: SMALL.index("supply:")]


def text(*offers: str, more: str = "", head: str = HEAD) -> str:
    return head + "supply:\n  offers:\n" + "".join(f"    - {{{offer}}}\n" for offer in offers) + more


def supply(catalog: Catalog, *offers: str, more: str = "") -> Supply:
    return build_supply(spec_of(text(*offers, more=more), catalog), catalog)


def only(found: Supply) -> PricedOffer:
    (offer,) = found.offers
    return offer


def listed(catalog: Catalog, provider: str, instance: str, region: str) -> CatalogOffer:
    return next(o for o in catalog.offers(provider) if (o.instance, o.region) == (instance, region))


L40S = "name: a, provider: aws, gpus: [L40S], instances: [g6e.12xlarge], region: us-east-1"
L4 = "name: g, provider: gcp, gpus: [L4], instances: [g2-standard-4], region: us-central1"
OWNED = "name: rack, provider: owned, gpus: [h100-sxm], gpus_per_node: 8, nodes: 2, country: DE, price: "


def test_listed_price(catalog: Catalog) -> None:
    offer, source = only(supply(catalog, L40S)), listed(catalog, "aws", "g6e.12xlarge", "us-east-1")
    assert offer.usd_per_node_h == source.prices_usd_per_node_h["on-demand"]
    assert (offer.price.basis, offer.price.date, offer.price.source) == (source.basis, source.price_date, source.source)
    assert offer.name == "a/us-east-1/g6e.12xlarge/on-demand"
    assert (offer.entry, offer.gpus_per_node, offer.country, offer.term) == ("a", 4, "US", "on-demand")


def test_each_term_is_an_offer(catalog: Catalog) -> None:
    found = supply(catalog, f"{L4}, terms: [on-demand, 1y, 3y]")
    prices = listed(catalog, "gcp", "g2-standard-4", "us-central1").prices_usd_per_node_h
    assert {o.term: o.usd_per_node_h for o in found.offers} == {t: prices[t] for t in ("on-demand", "1y", "3y")}


def test_discount_is_off_the_price_of_the_term(catalog: Catalog) -> None:
    found = only(supply(catalog, f"{L4}, terms: [1y], discount: 10 %"))
    prices = listed(catalog, "gcp", "g2-standard-4", "us-central1").prices_usd_per_node_h
    assert found.usd_per_node_h == pytest.approx(0.9 * prices["1y"])
    assert found.price.basis == "negotiated"


def test_discount_stands_for_a_term_that_has_no_price(catalog: Catalog) -> None:
    found = only(supply(catalog, f"{L40S}, terms: [3y], discount: 45 %"))
    on_demand = listed(catalog, "aws", "g6e.12xlarge", "us-east-1").prices_usd_per_node_h["on-demand"]
    assert found.usd_per_node_h == pytest.approx(0.55 * on_demand)
    assert found.price.source.startswith("45 % off the on-demand list")


@pytest.mark.parametrize(("price", "usd_per_node_h"), [("1.50 USD/gpu/h", 6.0), ("5.20 USD/node/h", 5.2)])
def test_an_own_price_wins(price: str, usd_per_node_h: float, catalog: Catalog) -> None:
    found = only(supply(catalog, f"{L40S}, terms: [3y], price: {price}"))
    assert found.usd_per_node_h == pytest.approx(usd_per_node_h)
    assert found.price.basis == "negotiated"


def test_without_a_price_an_offer_is_rejected_with_its_place(catalog: Catalog) -> None:
    found = supply(catalog, f"{L40S}, terms: [on-demand, 1y]")
    assert [o.term for o in found.offers] == ["on-demand"]
    (rejection,) = found.rejections
    assert (rejection.rule, rejection.shape, rejection.gpu) == ("no-price", "a", "L40S")
    assert "no 1y price is listed for g6e.12xlarge in us-east-1" in rejection.reason


@pytest.mark.parametrize("upfront", ["none", "all"])
def test_an_estimate_is_used_only_on_request(upfront: str, catalog: Catalog) -> None:
    estimated = "planning: {estimated_prices: true}\n"
    found = only(supply(catalog, f"{L40S}, terms: [1y], upfront: {upfront}", more=estimated))
    ratio = catalog.commitment_ratio("aws", "g6e.12xlarge", "1y", upfront)
    on_demand = listed(catalog, "aws", "g6e.12xlarge", "us-east-1").prices_usd_per_node_h["on-demand"]
    assert ratio is not None
    assert found.usd_per_node_h == pytest.approx(ratio.ratio * on_demand)
    assert found.price.basis == "ratio"
    assert f"{ratio.ratio:.2f} of on-demand" in found.price.source


def test_owned_nodes_are_paid_for(catalog: Catalog) -> None:
    found = supply(catalog, f"{OWNED}1.10 USD/gpu/h")
    offer = only(found)
    assert offer.usd_per_node_h == pytest.approx(8.8)
    assert (offer.gpu, offer.country, offer.term, offer.price.basis) == ("H100-SXM-80GB", "DE", "owned", "owned")
    assert [(s.entry, s.committed, s.available) for s in found.stock] == [("rack", 2, 2)]


@pytest.mark.parametrize(
    ("keys", "stock"),
    [
        ("", []),
        ("nodes: 6", [("a", 0, 6)]),
        ("committed: 4", [("a", 4, None)]),
        ("nodes: 6, committed: 4", [("a", 4, 6)]),
    ],
)
def test_stock(keys: str, stock: list[tuple[str, int, int | None]], catalog: Catalog) -> None:
    found = supply(catalog, f"{L40S}, {keys}" if keys else L40S)
    assert [(s.entry, s.committed, s.available) for s in found.stock] == stock


@pytest.mark.parametrize(("as_of", "offers"), [("2027-09-30", 1), ("2027-10-01", 0)])
def test_what_has_ended_is_no_offer(as_of: str, offers: int, catalog: Catalog) -> None:
    found = supply(catalog, f"{L40S}, until: 2027-09-30", more=f"planning: {{as_of: {as_of}}}\n")
    assert len(found.offers) == offers
    assert [r.rule for r in found.rejections] == ["supply-ended"] * (1 - offers)
    assert all("ended on 2027-09-30" in r.reason for r in found.rejections)


def test_without_as_of_the_newest_price_date_counts(catalog: Catalog) -> None:
    newest: date = catalog.newest_price_date()
    assert len(supply(catalog, f"{L40S}, until: {newest}").offers) == 1


def test_prices_are_listed_as_assumptions(catalog: Catalog) -> None:
    found = supply(catalog, L40S, L4)
    assert {a.key for a in found.assumptions} == {"prices.aws", "prices.gcp"}
    stale = listed(catalog, "aws", "g6e.12xlarge", "us-east-1").stale_unknown
    assert any("exact date unknown" in a.value for a in found.assumptions if a.key == "prices.aws") == stale


def test_names_are_unique_and_sorted(catalog: Catalog) -> None:
    names = [o.name for o in supply(catalog, "provider: aws, gpus: [L40S, L4]", "provider: gcp, gpus: [L4]").offers]
    assert names == sorted(set(names))
    assert len(names) > 10


OFFER = PricedOffer(
    "n", "e", "aws", "eu-central-1", "DE", "g6e.xlarge", "L40S", 1, "on-demand", 1.0, price=None, power_w=350.0, cell="L40S"  # type: ignore[arg-type]
)  # fmt: skip


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(), True),
        (Selector(gpus=("l40s",)), True),
        (Selector(gpus=("L4",)), False),
        (Selector(gpus=("no such GPU",)), False),
        (Selector(gpus=("L4", "L40S")), True),
        (Selector(providers=("aws",)), True),
        (Selector(provider="aws"), True),
        (Selector(provider="gcp"), False),
        (Selector(region="eu-*"), True),
        (Selector(region="us-*"), False),
        (Selector(country="DE"), True),
        (Selector(country="FR"), False),
        (Selector(providers=("gcp",)), False),
        (Selector(regions=("eu-*",)), True),
        (Selector(regions=("EU-central-?",)), True),
        (Selector(regions=("us-*", "eu-west-*")), False),
        (Selector(regions=("eu",)), False),
        (Selector(countries=("DE", "FR")), True),
        (Selector(countries=("FR",)), False),
        (Selector(terms=("on-demand",)), True),
        (Selector(terms=("1y",)), False),
        (Selector(providers=("aws",), countries=("FR",)), False),
    ],
)
def test_selectors(selector: Selector, expected: bool, catalog: Catalog) -> None:
    assert matches(selector, OFFER, catalog) == expected
    assert admits(selector, Selector(), OFFER, catalog) == expected
    assert admits(Selector(), selector, OFFER, catalog) == (selector.is_any or not expected)


def test_deny_wins_over_allow(catalog: Catalog) -> None:
    assert not admits(Selector(providers=("aws",)), Selector(countries=("DE",)), OFFER, catalog)


class TestCells:
    """Supply cells: offers of one GPU type that the same workloads may use."""

    def table(self, catalog: Catalog, workload: str = "", gpus: str = "L40S") -> CandidateTable:
        second = (
            "  batch:\n    model: chat\n    traffic: {rate: 1 req/s, input_tokens: 500, output_tokens: 100}\n"
            + workload
        )
        offer = f"name: a, provider: aws, gpus: [{gpus}], regions: [us-east-1, eu-central-1]"
        spec = spec_of(text(offer, head=HEAD + second), catalog)
        return build_table(spec, catalog, Knowledge.of(catalog, 0.8))

    def test_one_cell_by_gpu_type_when_everything_may_go_everywhere(self, catalog: Catalog) -> None:
        table = self.table(catalog, gpus="L40S, L4")
        assert {o.cell for o in table.supply.offers} == {"L40S", "L4"}
        assert all(c.cells == (c.shape.gpu,) for c in table.candidates)

    def test_a_selector_splits_a_gpu_type(self, catalog: Catalog) -> None:
        table = self.table(catalog, "    allow: {countries: [DE]}\n")
        where = {o.country: o.cell for o in table.supply.offers}
        assert sorted(where.values()) == ["L40S#1", "L40S#2"]
        for candidate in table.candidates:
            served = set(candidate.services)
            expected = {where["DE"]} if "batch" in served else set(where.values())
            assert set(candidate.cells) == expected

    def test_a_pool_of_several_workloads_lies_where_all_of_them_may(self, catalog: Catalog) -> None:
        table = self.table(catalog, "    allow: {countries: [DE]}\n")
        shared = [c for c in table.candidates if len(c.services) == 2]
        assert shared
        assert all(len(c.cells) == 1 for c in shared)

    def test_what_no_workload_may_use_is_rejected_for_the_model(self, catalog: Catalog) -> None:
        head = HEAD.replace("max_model_len: 8k}", "max_model_len: 8k, deny: {gpus: [L4]}}")
        spec = spec_of(text("name: a, provider: aws, gpus: [L40S, L4], region: us-east-1", head=head), catalog)
        table = build_table(spec, catalog, Knowledge.of(catalog, 0.8))
        assert {c.shape.gpu for c in table.candidates} == {"L40S"}
        assert [(r.rule, r.gpu) for r in table.rejections if r.rule == "selector"] == [("selector", "L4")]

    def test_nodes_of_one_replica_lie_at_one_site(self, catalog: Catalog) -> None:
        head = HEAD.replace("llama-3.1-8b-instruct", "deepseek-r1")
        offer = (
            "name: a, provider: aws, gpus: [H100-SXM-80GB], regions: [us-east-1, us-west-2], instances: [p5.48xlarge]"
        )
        table = build_table(spec_of(text(offer, head=head), catalog), catalog, Knowledge.of(catalog, 0.8))
        spanning = [c for c in table.candidates if c.shape.nodes_spanned > 1]
        assert spanning
        regions: dict[str, set[str]] = {}
        for offered in table.supply.offers:
            regions.setdefault(offered.cell, set()).add(offered.region)
        assert all(len(found) == 1 for found in regions.values())
        assert all(len(c.cells) == len(regions) == 2 for c in spanning)

    def test_every_rejection_is_counted(self, catalog: Catalog) -> None:
        table = self.table(catalog)
        assert sum(table.rejection_counts.values()) == len(table.rejections)
        assert all(r.reason for r in table.rejections)


class TestLimitsOnVcpus:
    """A quota of vCPUs can only hold what the catalog can count."""

    OFFER = "name: pod, provider: runpod, gpus: [H100-SXM-80GB]"
    RULE = "  limits: {{rules: [{{match: {{provider: {0}}}, vcpus: 100}}]}}\n"

    def test_offers_that_cannot_be_counted_are_ruled_out(self, catalog: Catalog) -> None:
        unknown = {o.instance for o in catalog.offers("runpod") if o.gpu == "H100-SXM-80GB" and o.vcpus is None}
        assert unknown
        found = supply(catalog, self.OFFER, more=self.RULE.format("runpod"))
        assert not unknown & {o.instance for o in found.offers}
        assert "unknown-vcpus" in {r.rule for r in found.rejections}

    def test_where_no_quota_applies_they_stay(self, catalog: Catalog) -> None:
        found = supply(catalog, self.OFFER, L40S, more=self.RULE.format("aws"))
        assert any(o.vcpus is None for o in found.offers)
        assert found.matched == (frozenset({"a/us-east-1/g6e.12xlarge/on-demand"}),)
