from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from matching.negotiation.near_misses import NearMiss, near_misses
from tests.matching.matchmaking import NOW, offer, request

SITES = [offer(n, f"s{n}", Memory=str(1024 * n), OpSys='"LINUX"') for n in range(1, 13)]


def misses(*args: object, **attributes: str) -> list[NearMiss]:
    return list(near_misses(request(**attributes), args or SITES, NOW))


def test_the_nearest_value_of_an_attribute_that_helps_comes_first() -> None:
    found = misses(Requirements="TARGET.Memory >= RequestMemory", RequestMemory="16384")

    assert found[0] == NearMiss("RequestMemory", "16384", "12288", before=0, after=1)
    assert found[1] == NearMiss("RequestMemory", "16384", "11264", before=0, after=2)


def test_a_number_in_the_requirements_is_changed_where_no_attribute_has_it() -> None:
    found = misses(Requirements='OpSys == "LINUX" && TARGET.Memory >= 13000')

    assert found[0].old == "TARGET.Memory >= 13000"
    assert found[0].new == "TARGET.Memory >= 12288"
    assert (found[0].before, found[0].after) == (0, 1)


def test_a_word_is_changed_to_one_that_sites_have() -> None:
    found = misses(Requirements='TARGET.OpSys == "WINDOWS"')

    assert found[0].new == 'TARGET.OpSys == "LINUX"'
    assert found[0].after == 12


def test_leaving_a_conjunct_out_is_told_last() -> None:
    found = misses(Requirements='Missing == 1 && OpSys == "LINUX"')

    assert found[-1] == NearMiss("Requirements", "Missing == 1", "", before=0, after=12)


def test_an_attribute_that_sites_ask_for_is_proposed() -> None:
    site = offer(1, "a", Requirements="CurMatches < MaxMatches && TARGET.WANT_GRID =?= true")

    assert misses(site) == [NearMiss("WANT_GRID", "", "true", before=0, after=1)]


def test_where_everything_fits_there_is_nothing_to_change() -> None:
    assert misses(Requirements="TARGET.Memory >= 1") == []


def test_where_two_things_are_wrong_no_single_change_helps() -> None:
    assert misses(Requirements="Missing == 1 && TARGET.Memory >= 99999") == []


def test_an_ad_that_does_not_parse_has_no_near_misses() -> None:
    assert misses(Requirements="(((") == []


def test_a_text_that_is_not_utf_8_is_left_as_it_is() -> None:
    found = misses(Requirements='TARGET.Memory == "a\\377b"')

    assert [(miss.new, miss.after) for miss in found] == [("", len(SITES))]


def test_the_word_that_looks_most_like_the_given_one_is_tried_first() -> None:
    names = ("T2-West", "T2-South", "T2-North", "T2-East")
    sites = [offer(n, name, Name=f'"{name}"') for n, name in enumerate(names, 1)]

    found = misses(*sites, Requirements='TARGET.Name == "T2-Nord"')

    assert found[0].new == 'TARGET.Name == "T2-North"'
    assert found[0].is_enough


def test_where_nodes_fit_nowhere_changes_are_told_after_which_both_sides_agree() -> None:
    sites = [offer(n, name, Name=f'"{name}"') for n, name in enumerate(("a-north", "b"), 1)]
    asked = request(Requirements='TARGET.Name == "a-nord"')
    nowhere = replace(asked, node_fit=SimpleNamespace(unfit=frozenset({1, 2})))

    found = near_misses(nowhere, sites, NOW)

    assert [(each.new, each.after, each.is_enough) for each in found] == [
        ('TARGET.Name == "a-north"', 1, False),
        ("", 2, False),
    ]
