from __future__ import annotations

import pytest

from matching.adcost import check_cost
from matching.classads import AdError


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

    with pytest.raises(AdError, match="could become too large"):
        check_cost(bomb)


def test_many_uses_of_the_other_ad_are_refused() -> None:
    with pytest.raises(AdError, match="Requirements: its evaluation"):
        check_cost({"Requirements": "strcat(" + ",".join(["TARGET.Name"] * 600) + ') == ""'})


@pytest.mark.parametrize(
    "ad", [{"A": "A + 1"}, {"A": "b", "B": "MY.c", "C": "ifThenElse(x, a, 1)"}]
)
def test_attributes_that_refer_to_each_other_in_a_circle_are_refused(ad: dict[str, str]) -> None:
    with pytest.raises(AdError, match="in a circle: A -> "):
        check_cost(ad)


@pytest.mark.parametrize("text", ['eval("A")', 'EVAL ("A")', '1 + Eval\n("A")'])
def test_eval_is_refused(text: str) -> None:
    with pytest.raises(AdError, match="eval cannot be used"):
        check_cost({"Rank": text})


def test_a_long_chain_is_no_trouble() -> None:
    chain = {f"A{n}": f"A{n + 1}" for n in range(400)}

    check_cost(chain | {"A400": "1"})
