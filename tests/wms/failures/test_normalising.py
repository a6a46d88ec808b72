"""What differs from failure to failure of one cause is left out; words are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.failures.defaults import DEFAULT_RULES
from wms.failures.normalising import MAX_MESSAGE, Rule, SearchBudget, fingerprint, normalise

RULES = [Rule(rule.pattern, rule.placeholder, rule.keeps) for rule in DEFAULT_RULES]

_WORDS = st.lists(
    st.text(alphabet="bghijklmnopqrstuvwxyz", min_size=3, max_size=9), min_size=2, max_size=6
)
_NAMES = st.from_regex(r"\A[a-z]{3,10}[0-9]{0,3}\Z")
_NUMBERS = st.one_of(
    st.integers(-(10**9), 10**12).map(str),
    st.floats(0, 1e6, allow_nan=False).map(lambda value: f"{value:.2f}"),
)
_PATHS = st.lists(st.from_regex(r"\A[A-Za-z0-9_.-]{1,8}\Z"), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
_HOSTS = st.lists(st.from_regex(r"\A[a-z][a-z0-9-]{0,6}[a-z0-9]\Z"), min_size=3, max_size=5).map(
    ".".join
)
_UUIDS = st.uuids().map(str)
_TIMES = st.datetimes().map(lambda at: f"{at:%Y-%m-%d %H:%M:%S} UTC".rjust(23, "0"))
_HEX = st.integers(0, 2**64).map(hex)
_SAME = (_NUMBERS, _PATHS, _HOSTS, _UUIDS, _TIMES, _HEX)


def text_of(message: str, **names: str) -> str:
    return normalise(message, RULES, **names)


@given(st.text(max_size=2000), st.text(max_size=8))
def test_the_text_of_a_text_is_that_text(message: str, owner: str) -> None:
    text = text_of(message, owner=owner, host="node7")

    assert text_of(text, owner=owner, host="node7") == text
    assert len(text) <= MAX_MESSAGE


@given(st.lists(st.sampled_from(["job", " ", "<n>", "<", ">", "/a", "12", "a.txt", ", ", "and "])))
def test_texts_that_look_like_placeholders_are_stable_too(parts: list[str]) -> None:
    text = text_of("".join(parts))

    assert text_of(text) == text


@pytest.mark.slow
@pytest.mark.parametrize("values", _SAME)
@given(words=_WORDS, data=st.data())
def test_messages_that_differ_in_values_only_fall_together(
    values: st.SearchStrategy[str], words: list[str], data: st.DataObject
) -> None:
    one, other = data.draw(values), data.draw(values)
    place = data.draw(st.integers(0, len(words)))

    messages = [" ".join([*words[:place], value, *words[place:]]) for value in (one, other)]

    assert text_of(messages[0]) == text_of(messages[1])


@pytest.mark.slow
@given(words=_WORDS, one=_NAMES, other=_NAMES)
def test_messages_that_differ_in_the_owners_name_fall_together(
    words: list[str], one: str, other: str
) -> None:
    start, end = " ".join(words[:1]), " ".join(words[1:])

    texts = {text_of(f"of {name} a {end} by {start}", owner=name) for name in (one, other)}

    assert len(texts) == 1 or {one, other} & {*words, "of", "by"}


@given(_WORDS, _WORDS)
def test_messages_that_differ_in_words_do_not_fall_together(
    some: list[str], others: list[str]
) -> None:
    one, other = " ".join(some), " ".join(others)

    assert (text_of(f"{one} 17") == text_of(f"{other} 17")) is (one == other)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("no heartbeat for 30 s", "no heartbeat for <n> s"),
        ("the payload ended with exit code 1", "the payload ended with exit code 1"),
        ("exit code 137; retry 1 of 3", "exit code 137"),
        ("output files are missing: a.txt, b.root", "output files are missing: <file>"),
        ("the pilot sent no heartbeat for 90 s; all attempts are used up",
         "the pilot sent no heartbeat for <n> s"),
        ("node was full; it pauses for 60 s", "node was full"),
        ("cannot open /home/alice/a b.sh", "cannot open <path> <file>"),
        ("login on node7 as user 'bob' denied", "login on <host> as user '<user>' denied"),
        ("from 192.0.2.7:443 at 17:30:01", "from <host> at <time>"),
        ("input/output error", "input/output error"),
        ("it takes 2147 MB of 2147 MB", "it takes <n> MB of <n> MB"),
        ("cannot open /home/jürgen/a in Zürich", "cannot open <path> in Zürich"),
        ("alice, alice and bob", "<user> and bob"),
        ("job 12345678 of deadbeef and 1234567a", "job <n> of deadbeef and <hex>"),
        ("mail alice@example.org about https://example.org/x?y=1", "mail <user> about <url>"),
        ("segfault at 0x7ffe12ab in a1b2c3d4e5", "segfault at <hex> in <hex>"),
        ("", "no reason was given"),
        ("   ", "no reason was given"),
    ],
)  # fmt: skip
def test_each_of_the_first_rules_does_what_it_says(message: str, text: str) -> None:
    assert text_of(message, owner="alice", host="node7") == text


def test_a_rule_that_keeps_keeps_from_the_rules_that_follow_only() -> None:
    rules = [Rule("[0-9]+ kittens", keeps=True), Rule("[0-9]+", "n")]

    assert normalise("3 kittens, 4 puppies", rules) == "3 kittens, <n> puppies"
    assert normalise("3 kittens, 4 puppies", rules[::-1]) == "3 kittens, 4 puppies".replace(
        "3", "<n>"
    ).replace("4", "<n>")


def test_only_the_group_called_it_is_replaced() -> None:
    rules = [Rule("code=(?P<it>[0-9]+)", "n")]

    assert normalise("code=17", rules) == "code=<n>"


def test_a_rule_without_a_placeholder_drops_what_it_finds() -> None:
    assert normalise("it broke (again)", [Rule(r" \(again\)$")]) == "it broke"


def test_the_same_text_of_different_things_is_not_one_group() -> None:
    assert fingerprint("job", "no room") != fingerprint("pilot", "no room")


def test_a_long_message_is_cut_between_placeholders() -> None:
    text = text_of("x " * 250 + "7 a 8 b " * 60)

    assert len(text) <= MAX_MESSAGE
    assert text.count("<") == text.count(">")


def test_what_one_rule_may_search_is_counted_and_bounded() -> None:
    budget = SearchBudget(left_bytes=10)
    # It looks to the end of the text behind each `a`, and finds nothing there.
    rule = Rule("a(?:.*b)?", "n")

    pieces = rule.pieces_of("aaaa", {}, budget)

    # Four, three and two characters were searched; one more would not be too much, two are.
    assert [piece.text for piece in pieces] == ["", "<n>", "", "<n>", "", "<n>", "", "<n>", ""]
    assert budget.left_bytes == 0
    assert rule.pieces_of("aaaa", {}, budget)[0].text == "aaaa"


def test_a_message_that_takes_too_many_rounds_keeps_what_is_left_of_it() -> None:
    rules = [Rule("ab")] * 60

    assert normalise("a" * 50 + "b" * 50, rules) == normalise("", [])
    assert normalise("a(ab)" * 5, [Rule("x(?:.*y)?")] * 60) == "a(ab)" * 5
    # Each round takes one pair out of the middle, behind sixty rules that look at all of it.
    text = normalise("a" * 299 + "b" * 299, [*[Rule("x(?:.*y)?")] * 59, Rule("ab")])

    assert 0 < len(text) < 598
    assert set(text) == {"a", "b"}
