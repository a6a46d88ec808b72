from __future__ import annotations

import pytest

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError


def test_ordinary_ads_cost_little() -> None:
    check_cost(
        {
            "Requirements": "(CurMatches < MaxMatches) && (TARGET.WANT_USCMS_MATCHMAKER =?= TRUE)",
            "Rank": "-CurMatches/MaxMatches + Speed",
            "Speed": "2",
            "Name": '"Rank Rank Rank"',
        }
    )


def test_a_value_that_grows_with_each_step_is_refused() -> None:
    bomb = {"A0": '"' + "x" * 6000 + '"', "Requirements": 'A3 != ""'}
    for step in (1, 2, 3):
        bomb[f"A{step}"] = f"strcat({','.join([f'a{step - 1}'] * 30)})"

    with pytest.raises(AdError, match="too large"):
        check_cost(bomb)


def test_many_uses_of_the_other_ad_are_refused() -> None:
    with pytest.raises(AdError, match="Requirements: its evaluation"):
        check_cost({"Requirements": "strcat(" + ",".join(["TARGET.Name"] * 600) + ') == ""'})


@pytest.mark.parametrize(
    "ad", [{"A": "A + 1"}, {"A": "b", "B": "MY.c", "C": "ifThenElse(x, a, 1)"}]
)
def test_attributes_that_refer_to_each_other_in_a_circle_are_refused(ad: dict[str, str]) -> None:
    with pytest.raises(AdError, match="circle: A -> "):
        check_cost(ad)


@pytest.mark.parametrize(
    "text",
    [
        'self["A"]', 'my["A"]', 'TARGET["A"]', "'my'[\"A\"]", '{my}[0]["A"]', 'TARGET.self["A"]',
        'TARGET.my["A"]', 'other["A"]', 'LEFT["A"]', '.LEFT["A"]', 'ad["A"]', "toplevel",
        'evalInEachContext(self["A"], {self, self})', "symmetricMatch",
    ],
)  # fmt: skip
def test_whole_ads_by_way_of_which_an_attribute_reaches_itself_are_refused(text: str) -> None:
    with pytest.raises(AdError, match="as a value"):
        check_cost({"A": text})


@pytest.mark.parametrize("text", ["TARGET.Requirements", "requirements", "target.Rank + 1"])
def test_what_the_other_ad_thinks_of_this_one_cannot_be_used(text: str) -> None:
    with pytest.raises(AdError, match="other ad"):
        check_cost({"A": text})


def test_the_own_requirements_can_be_used() -> None:
    check_cost({"Requirements": "true", "A": "MY.Requirements", "B": "Requirements"})


@pytest.mark.parametrize("text", ['eval("A")', 'EVAL ("A")', '1 + Eval\n("A")'])
def test_eval_is_refused(text: str) -> None:
    with pytest.raises(AdError, match="eval "):
        check_cost({"Rank": text})


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_chain_has_a_hundred_links_at_most(is_reversed: bool) -> None:
    def chain(links: int) -> dict[str, str]:
        ad = {f"A{n}": f"A{n + 1}" for n in range(links)} | {f"A{links}": "1"}
        return dict(reversed(ad.items())) if is_reversed else ad

    check_cost(chain(100))
    for links in (101, 5000):
        with pytest.raises(AdError, match="100 attributes"):
            check_cost(chain(links))


def test_a_pattern_may_be_matched_eight_times_through_all_references() -> None:
    match = 'regexp("(x+x+)+[yz]", Name)'
    check_cost({"Requirements": " && ".join([match] * 8)})

    for ad in ({"Requirements": " && ".join([match] * 9)}, {"A": match, "B": "A + " * 8 + "A"}):
        with pytest.raises(AdError, match="too large"):
            check_cost(ad)


@pytest.mark.parametrize(
    "call",
    [
        'RegexpMember("x", Names)',
        'stringListRegexpMember("x", TARGET.Names)',
        'replaceAll("x", "y", Name)',
        'regexps("x", Name, "y", Options)',
        "'eval'(\"A\")",
        'eval/* */("A")',
    ],
)
def test_a_function_whose_cost_cannot_be_known_is_refused(call: str) -> None:
    with pytest.raises(AdError, match=r"Rank: \w+ cannot"):
        check_cost({"Rank": f"1 + {call}"})


def test_functions_that_compare_all_with_all_cost_a_product() -> None:
    words = '"' + "a," * 600 + '"'
    check_cost(
        {"Requirements": 'stringListsIntersect(TARGET.Groups, "cms,atlas") && CurMatches < 5'}
    )

    for expression in (f"stringListSubsetMatch({words}, Names)", "join(join(A, B), split(C))"):
        with pytest.raises(AdError, match="too large"):
            check_cost({"Requirements": expression})


@pytest.mark.parametrize(
    "nested",
    [
        '[a = "xxxx"; b = strcat(a,a,a,a); c = strcat(b,b,b,b)].c',
        "[a = [b = TARGET.Name]].a",
        "{[a = 1], [a = B[0]]}",
        "[a = random()].a",
        "[a = 'true'].a",
    ],
)
def test_a_nested_ad_that_refers_to_something_is_refused(nested: str) -> None:
    with pytest.raises(AdError, match="nested ad"):
        check_cost({"Rank": nested})


def test_lists_and_nested_ads_of_plain_values_are_taken() -> None:
    check_cost({"Slots": '[cores = 8; kinds = {"a", "b"}; on = true]', "Rank": "{1, 2}[Place]"})


def test_names_in_quotes_are_told_from_the_words_of_the_language() -> None:
    bomb = {
        "True": '"' + "x" * 6000 + '"',
        "Rank": f"size(strcat({','.join([chr(39) + 'True' + chr(39)] * 30)}))",
    }

    with pytest.raises(AdError, match=r"Rank: .*too large"):
        check_cost(bomb)


def test_names_are_found_however_they_are_written() -> None:
    bomb = {"A": '"' + "x" * 6000 + '"', "Rank": "size(strcat(" + ",".join([r"'\101'"] * 30) + "))"}

    with pytest.raises(AdError, match=r"Rank: .*too large"):
        check_cost(bomb)


def test_a_name_with_a_backslash_is_refused() -> None:
    with pytest.raises(AdError, match="cannot be used"):
        check_cost({"Rank": r"'a\'b' + 1"})


@pytest.mark.parametrize("name", ["Target", "MY", "self", "Other"])
def test_an_attribute_cannot_have_the_name_of_a_scope(name: str) -> None:
    with pytest.raises(AdError, match=f"{name} cannot be the name of an attribute"):
        check_cost({name: "[Foo = 10]", "Rank": "1"})


def test_only_the_arguments_of_a_product_are_squared() -> None:
    wish = "countMatches(Memory > 3000 && Cpus > 1, TARGET.Queues) > 0"
    others = " && ".join(f"TARGET.A{n} > {n}" for n in range(40))

    check_cost({"Requirements": f"{wish} && {others}"})
    with pytest.raises(AdError):
        check_cost({"Requirements": f"countMatches({others}, TARGET.Queues) > 0"})
    with pytest.raises(AdError):
        check_cost({"Requirements": 'countMatches(regexp("a+", Name), TARGET.Queues) > 0'})


def test_products_within_a_product_count_for_all_of_it() -> None:
    nested = 'countMatches(anyCompare(">", A, B), TARGET.Queues)'

    with pytest.raises(AdError):
        check_cost({"Requirements": f"{nested} > 0"})
