"""Every small file of tests/data/bad_specs leads to the diagnostics listed here, at their place, and to nothing else."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from planner.candidates.references import OpenCatalogs
from planner.cli.check import check_file

FOLDER = Path(__file__).parents[1] / "data" / "bad_specs"
OPENER = OpenCatalogs()
OPENER = OpenCatalogs()

# file, code, line, column, start of the message
EXPECTED = (
    ("alias_bomb", "yaml/alias-expansion", 6, 22, "aliases expand to more than 500,000 values"),
    ("ambiguous_gpu", "catalog/ambiguous-gpu", 15, 60, "GPU `h100` could be one of 3"),
    ("api_cached_dearer", "spec/out-of-range", 13, 55, "cached tokens cost more than other prompt tokens"),
    ("api_for_nothing", "spec/out-of-range", 13, 46, "generated tokens have a price"),
    ("api_price_of_what", "spec/unknown-unit", 13, 31, "`USD/ktok` is not a unit of money per million tokens"),
    ("api_without_output", "spec/missing-key", 13, 5, "`compare_api` lacks `output`"),
    ("bad_date", "spec/bad-date", 16, 19, "`2026-02-30` is not a date"),
    ("bad_name", "spec/bad-text", 4, 3, "`ch?at` cannot be a name"),
    ("bad_name", "spec/unknown-model", 7, 12, "`chat` is not under `models`"),
    ("budget_without_unit", "spec/missing-unit", 16, 11, "`400000` has no unit; this field is money per month"),
    ("burstiness", "spec/unknown-key", 10, 7, "`burstiness` is not a key of `traffic`"),
    ("certain", "spec/out-of-range", 16, 24, "`100 %` is out of range"),
    ("colon_in_text", "yaml/syntax", 2, 12, "mapping values are not allowed in this context"),
    ("committed_beyond_nodes", "spec/out-of-range", 15, 88, "3 committed nodes are more than the 2 there are"),
    ("config_and_use", "spec/conflicting-keys", 4, 3, "`chat` has both `use` and `config`"),
    ("config_missing", "model/config", 4, 18, "cannot read `models/own/config.json`: No such file"),
    ("config_outside", "spec/bad-text", 4, 18, "`../own/config.json` is not a .json file below the folder"),
    ("control_character", "yaml/not-text", 2, 9, "character U+0007 does not belong into a text file"),
    ("custom_tag", "yaml/tag", 9, 13, "tag `!rate` is not allowed"),
    ("deployed_unknown_model", "spec/unknown-model", 17, 13, "`chad` is not under `models`"),
    ("deployed_unknown_offer", "spec/unknown-offer", 17, 64, "`awz` is no entry of `supply.offers`"),
    ("duplicate_key", "yaml/duplicate-key", 16, 1, "`fleet` is given twice in one mapping"),
    ("duplicate_key_nested", "yaml/duplicate-key", 12, 26, "`ttft_p95` is given twice in one mapping"),
    ("duplicate_offer", "spec/duplicate-name", 16, 14, "two offers are called `aws`"),
    ("empty", "yaml/empty", 1, 1, "this file is empty"),
    ("error_in_defaults", "spec/out-of-range", 3, 33, "`15` is no block size"),
    ("forbid_everything", "spec/empty", 16, 21, "`forbid` without a list forbids everything"),
    ("format_twice", "spec/duplicate-value", 4, 45, "`fp8` is listed twice"),
    ("half_a_node", "spec/out-of-range", 15, 74, "`1.5` is not a whole number"),
    ("hourly_length", "spec/hourly-length", 9, 15, "`hourly` has 3 values"),
    ("hourly_negative", "spec/out-of-range", 9, 85, "`-1` is out of range"),
    ("hourly_zero", "spec/out-of-range", 9, 15, "`hourly` is zero all day"),
    ("infinite", "spec/out-of-range", 11, 22, "`inf` is not a finite number"),
    ("key_is_a_list", "spec/unknown-key", 16, 3, "`?` is not a key of the spec"),
    ("key_is_a_list", "yaml/key", 16, 3, "a key is text, not a list or mapping"),
    ("length_forms_mixed", "spec/length-form", 10, 21, "{mean, p50} does not describe a length"),
    ("long_prefix", "spec/out-of-range", 12, 22, "a prefix of 3000 tokens is longer than the mean"),
    ("longer_than_model", "spec/out-of-range", 4, 45, "max_model_len 1,000,000 is longer than the"),
    ("lower_case_country", "spec/bad-text", 4, 50, "`de` is not a country code of two capital"),
    ("mean_above_peak", "spec/mean-above-peak", 9, 35, "the mean of 3 req/s is above the peak of 2"),
    (
        "mean_outside_quantiles",
        "spec/mean-outside-quantiles",
        10,
        71,
        "a mean of 20 tokens does not fit these quantiles",
    ),
    ("merge_of_text", "yaml/merge", 16, 7, "`<<` merges mappings only"),
    ("missing_key", "spec/missing-key", 8, 5, "`traffic` lacks `output_tokens`"),
    ("missing_section", "spec/missing-key", 1, 1, "the spec lacks `supply`"),
    ("missing_unit", "spec/missing-unit", 12, 21, "`2` has no unit; this field is a time"),
    ("misspelt_gpu", "catalog/unknown-gpu", 15, 60, "no GPU `L40SS` in the catalog"),
    ("misspelt_model", "catalog/unknown-model", 4, 15, "no model `meta-llama/Llama-3.3-70B-Instrct` in"),
    ("misspelt_unit", "spec/unknown-unit", 12, 23, "`sec` is not a unit of time"),
    ("model_without_use", "spec/missing-key", 4, 3, "`chat` lacks `use`"),
    ("negative_nodes", "spec/out-of-range", 15, 74, "`-1` is negative"),
    ("negative_rate", "spec/out-of-range", 9, 13, "`-2 req/s` is negative"),
    ("newer_planner", "spec/requires-planner", 2, 19, "this spec requires planner >=99; this is 0.1.0"),
    ("no_demand", "spec/no-demand", 8, 5, "this traffic does not say how many requests there"),
    ("no_models", "spec/empty", 4, 3, "no model is given"),
    ("no_offers", "spec/empty", 14, 11, "no offer is given"),
    ("no_rule", "spec/missing-key", 16, 12, "this policy has no rule"),
    ("no_such_catalog", "catalog/not-found", 2, 17, "`nowhere` is no catalog"),
    ("no_value", "spec/no-value", 12, 5, "`slo` has no value"),
    ("no_version", "spec/missing-key", 1, 1, "the spec lacks `version`"),
    ("no_workloads", "spec/empty", 6, 3, "no workload is given"),
    ("not_a_number", "spec/out-of-range", 11, 22, "`nan` is not a finite number"),
    ("not_modelled_gpu", "catalog/not-modelled", 15, 60, "GPU `TPU-v4` is not modelled: no figure for the"),
    ("not_sold_anywhere", "catalog/not-sold", 15, 60, "aws has no priced MI300X in the catalog"),
    ("not_sold_in_region", "catalog/not-sold", 15, 65, "aws has no priced B200-SXM-180GB in this region"),
    ("offer_without_hardware", "spec/missing-key", 15, 7, "this offer names no hardware"),
    ("only_comments", "yaml/empty", 1, 1, "this file is empty"),
    ("other_digest", "catalog/digest", 2, 19, "the catalog is not the one that this spec is"),
    ("owned_incomplete", "spec/missing-key", 15, 7, "owned hardware needs `gpus_per_node`, `nodes`,"),
    ("owned_mixed", "spec/conflicting-keys", 15, 31, "owned nodes of one offer have one kind of GPU"),
    ("p95_below_mean", "spec/p95-below-mean", 10, 39, "p95 of 900 tokens is below the mean of 1000"),
    ("p95_beyond_lognormal", "spec/no-such-lognormal", 10, 39, "p95 is 3.90 times the mean; a lognormal reaches"),
    ("policy_age_without_unit", "spec/missing-unit", 16, 28, "`30` has no unit; this field is a time"),
    ("policy_class", "spec/unknown-value", 16, 29, "`D` is no provenance class"),
    (
        "policy_cost_of_what",
        "spec/unknown-unit",
        16,
        46,
        "`USD` measures an amount of money; this field is money per million tokens",
    ),
    ("policy_format", "spec/unknown-value", 16, 32, "`int5` is no weight format"),
    ("policy_margin_without_sign", "spec/out-of-range", 16, 33, "`5` is more than the whole"),
    ("policy_misspelt_gpu", "catalog/unknown-gpu", 16, 30, "no GPU `L40SS` in the catalog"),
    ("policy_misspelt_region", "catalog/unknown-region", 16, 41, "no provider of this spec has a region `us-esat-1`"),
    ("policy_share_of_nothing", "spec/missing-key", 16, 24, "this share is of nothing"),
    ("policy_share_of_two", "spec/conflicting-keys", 16, 42, "`match` and `each` both say whose share"),
    ("policy_share_of_what", "spec/unknown-value", 16, 31, "`clouds` is no part of the cost"),
    ("policy_unknown_workload", "spec/unknown-workload", 16, 50, "`asistant` matches no workload of this spec"),
    ("policy_verdict", "spec/unknown-value", 16, 30, "`fail` is no verdict"),
    ("policy_workloads_of_fleet", "spec/conflicting-keys", 16, 38, "`max_gap` is about the whole fleet"),
    ("require_nothing", "spec/empty", 16, 22, "`require` without a list requires nothing"),
    ("stay_within_without_sign", "spec/out-of-range", 16, 25, "`2` is more than the whole"),
    ("percent_without_sign", "spec/out-of-range", 4, 43, "`99` is more than the whole"),
    ("prefix_and_cached", "spec/conflicting-keys", 13, 21, "`shared_prefix` and `cached_input` both say what"),
    ("price_and_discount", "spec/conflicting-keys", 15, 97, "`price` and `discount` both set the price"),
    ("power_of_a_cloud", "spec/conflicting-keys", 15, 72, "`pue` is for owned hardware"),
    ("price_of_what", "spec/unknown-unit", 15, 76, "`USD/h` does not say what is priced"),
    ("python_tag", "spec/wrong-type", 2, 8, "a list is not text"),
    ("python_tag", "yaml/tag", 2, 8, "tag `!!python/object/apply:os.system` is not"),
    ("quantiles_fall", "spec/quantiles-fall", 10, 48, "p95 of 1400 tokens is below the quantile before it"),
    ("quota_of_nothing", "spec/missing-key", 16, 20, "this rule limits nothing"),
    ("quota_of_two", "spec/conflicting-keys", 16, 62, "`gpus` and `nodes` are two limits"),
    ("rate_without_unit", "spec/missing-unit", 9, 13, "`2` has no unit; this field is a request rate"),
    ("recursive_alias", "yaml/alias-expansion", 2, 16, "`*loop` stands inside its own anchor"),
    ("region_twice", "spec/conflicting-keys", 15, 62, "`region` and `regions` both name regions"),
    ("region_and_regions_to_match", "spec/conflicting-keys", 4, 66, "`region` and `regions` say the same"),
    ("requires_nonsense", "spec/requires-planner", 2, 19, "`requires_planner` is not a list of releases"),
    ("rps", "spec/unknown-unit", 9, 15, "`rps` is not a unit of request rate"),
    ("several_documents", "yaml/multiple-documents", 16, 1, "this file holds several documents"),
    ("spot_committed", "spec/conflicting-keys", 16, 93, "spot nodes cannot be committed"),
    ("tab_indent", "yaml/syntax", 3, 1, "while scanning for the next token: found"),
    ("text_for_list", "spec/wrong-type", 15, 59, "`gpus` must be a list, not `L40S`"),
    ("text_for_mapping", "spec/wrong-type", 12, 10, "`slo` must be a mapping, not `2 s`"),
    ("thousands_separator", "spec/unknown-unit", 11, 24, "`,200` is no unit"),
    ("timezone_alone", "spec/conflicting-keys", 10, 17, "`timezone` says when `hourly` starts"),
    ("timezone_unknown", "spec/unknown-timezone", 10, 17, "`Europe/Bonn` is no time zone that is known here"),
    ("too_deep", "yaml/too-deep", 2, 58, "values are nested more than 50 deep"),
    ("top_level_list", "yaml/not-a-mapping", 1, 1, "this file holds a list; a spec is a mapping"),
    ("top_level_text", "yaml/not-a-mapping", 1, 1, "this file holds a single value; a spec is a mapping"),
    ("turned_text", "spec/bad-text", 2, 8, "`a?b` is not a name"),
    ("two_demands", "spec/conflicting-keys", 10, 25, "`rate` and `requests_per_day` both say how many"),
    ("two_rules", "spec/conflicting-keys", 16, 49, "`max_monthly_cost` and `forbid` are two rules"),
    ("unbuilt_priority", "spec/not-supported-yet", 8, 5, "`priority` is not supported yet"),
    ("unbuilt_trace", "spec/not-supported-yet", 9, 7, "traffic from a trace is not supported yet"),
    ("unclosed_bracket", "yaml/syntax", 4, 1, "while parsing a flow sequence: did not find"),
    ("unclosed_quote", "yaml/syntax", 3, 10, "while scanning a quoted scalar: found unexpected"),
    ("undefined_alias", "yaml/undefined-alias", 2, 9, "no anchor `&models` comes before `*models`"),
    ("unknown_engine", "spec/unknown-value", 4, 45, "`vlm` is no engine"),
    ("unknown_engine_key", "spec/unknown-key", 4, 39, "`max_num_seq` is not a key of `engine`"),
    ("unknown_format", "spec/unknown-value", 4, 40, "`fp9` is no weight format"),
    ("unknown_gpu_in_limits", "catalog/unknown-gpu", 16, 19, "no GPU `L40SS` in the catalog"),
    ("unknown_gpu_in_selector", "catalog/unknown-gpu", 4, 44, "no GPU `T5` in the catalog"),
    ("unknown_instance", "catalog/unknown-instance", 15, 65, "aws has no instance `g6e.49xlarge` with a priced"),
    ("unknown_key", "spec/unknown-key", 12, 11, "`ttft_p59` is not a key of `slo`"),
    ("unknown_provider", "catalog/unknown-provider", 15, 29, "no provider `awz` in the catalog"),
    ("unknown_provider_in_limits", "catalog/unknown-provider", 16, 39, "no provider `awz` in the catalog"),
    ("unknown_provider_in_policy", "catalog/unknown-provider", 16, 34, "no provider `gpc` in the catalog"),
    ("unknown_region", "catalog/unknown-region", 15, 42, "aws has no region `us-est-1` with a priced GPU in"),
    ("unknown_region_in_selector", "catalog/unknown-region", 4, 48, "no provider of this spec has a region `us-est-1`"),
    ("unknown_top_key", "spec/unknown-key", 16, 1, "`polices` is not a key of the spec"),
    ("unquoted_version", "spec/unquoted-number", 4, 48, "`0.2` is a number; this field is text"),
    ("version_2", "spec/version", 1, 10, "this release reads version 1 of the spec, not 2"),
    ("version_text", "spec/version", 1, 10, "`version` is a whole number"),
    ("waiver_without_end", "spec/missing-key", 16, 38, "`waive` lacks `until`"),
    ("waiver_without_reason", "spec/bad-text", 16, 43, "`` is not a name"),
    ("workload_without_model", "spec/unknown-model", 7, 12, "`chta` is not under `models`"),
    ("wrong_indent", "yaml/syntax", 4, 2, "while parsing a block mapping: did not find"),
    ("wrong_unit", "spec/unknown-unit", 12, 23, "`Gb` is gigabit; this field is a time"),
    ("yes_for_true", "spec/wrong-type", 4, 46, "`yes` is neither true nor false"),
    ("zero_rate", "spec/out-of-range", 9, 13, "`0 req/s` is out of range"),
)

BY_FILE: dict[str, list[tuple[str, int, int, str]]] = defaultdict(list)
for name, *finding in EXPECTED:
    BY_FILE[name].append(tuple(finding))


def test_every_file_is_listed() -> None:
    """A new bad spec needs its expected diagnostic, and no row names a missing file."""
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(BY_FILE)


@pytest.mark.parametrize("name", sorted(BY_FILE))
def test_bad_spec(name: str) -> None:
    """Code, place and message of each diagnostic."""
    file = check_file(str(FOLDER / f"{name}.yaml"), None, opener=OPENER)

    found = [(d.code, d.span.line, d.span.column, d.message) for d in file.diagnostics if d.span is not None]
    assert len(found) == len(file.diagnostics)
    for (code, line, column, start), actual in zip(BY_FILE[name], found, strict=True):
        assert (code, line, column) == actual[:3]
        assert actual[3].startswith(start)
        assert line <= max(1, len(file.lines))


@pytest.mark.parametrize("name", sorted(BY_FILE))
def test_every_error_says_what_to_do(name: str) -> None:
    """A diagnostic carries advice: under the caret or as a help line, at least a sentence that says it all."""
    for diagnostic in check_file(str(FOLDER / f"{name}.yaml"), None, opener=OPENER).diagnostics:
        assert diagnostic.label or diagnostic.help or diagnostic.code in SELF_EXPLAINING
        assert "Error" not in diagnostic.message
        assert "Spec" not in diagnostic.message


SELF_EXPLAINING = {"model/config", "spec/bad-text", "spec/out-of-range", "spec/mean-above-peak", "spec/quantiles-fall"}
