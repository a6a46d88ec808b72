from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.ads.classads import AdError, parse_expression
from matching.negotiation.rematch import Action, Decision, Figures, decide

FIGURES = Figures(
    matched_s=8000,
    queued_s=7500,
    nodes_total=20,
    nodes_running=0,
    nodes_queued=5,
    nodes_done=3,
    nodes_failed_here=2,
    pilots_failed_here=4,
    rematches=1,
)


def judge(expression: str, *, past: int = 0, cap: int = 5, **ads: dict) -> Decision:
    return decide(
        expression,
        FIGURES,
        own=ads.get("own", {}),
        target=ads.get("target", {}),
        past_rematches=past,
        max_rematches=cap,
    )


@pytest.mark.parametrize(
    ("expression", "action"),
    [
        ("QueuedSeconds > 7200 && NodesRunning == 0", Action.REMATCH),
        ("queuedseconds > 7200 && nodesrunning > 0", Action.STAY),
        ("MatchedSeconds == 8000 && NodesTotal == 20 && NodesQueued == 5", Action.REMATCH),
        ("NodesDone == 3 && NodesFailedHere == 2 && PilotsFailedHere == 4", Action.REMATCH),
        ("Rematches == 1", Action.REMATCH),
        ("false", Action.STAY),
    ],
)
def test_the_figures_are_known_by_their_names(expression: str, action: Action) -> None:
    assert judge(expression) == Decision(action)


def test_both_ads_can_be_used_and_the_figures_win_over_the_own_one() -> None:
    own = {"Patience": "60 * 60", "NodesDone": "77"}
    target = {"Name": "uw", "Slow": True}

    assert judge("QueuedSeconds > MY.Patience", own=own).action is Action.REMATCH
    assert judge("NodesDone == 77", own=own).action is Action.STAY
    of_both = 'TARGET.Slow && Name == "uw"'
    assert judge(of_both, target=target).action is Action.REMATCH


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("Unknown > 3", "undefined"),
        ('"a" > 3', "error"),
        ("1", "1, not a truth value"),
        ("QueuedSeconds >", "not a ClassAd expression"),
        ('eval("true")', "eval cannot be used"),
    ],
)
def test_what_is_not_exactly_true_or_false_takes_nothing_away_and_is_told(
    expression: str, fault: str
) -> None:
    decision = judge(expression)

    assert decision.action is Action.UNCLEAR
    assert fault in decision.fault


@pytest.mark.parametrize(
    ("past", "cap", "action"),
    [(0, 0, Action.HOLD), (4, 5, Action.REMATCH), (5, 5, Action.HOLD), (6, 5, Action.HOLD)],
)
def test_at_the_cap_a_dag_is_held_instead(past: int, cap: int, action: Action) -> None:
    assert judge("true", past=past, cap=cap).action is action
    assert judge("false", past=past, cap=cap).action is Action.STAY


@given(st.text(alphabet='Nodes0123456789 <>=&|!()"', max_size=40))
def test_any_text_is_judged(expression: str) -> None:
    decision = judge(expression)

    try:
        parse_expression(expression)
    except AdError:
        assert decision.action is Action.UNCLEAR
