"""Reading sites from YAML: places of faults, and bounds on what strangers may send."""

from __future__ import annotations

import gc

import pytest
import yaml

from wms.core.errors import InvalidInput
from wms.exchange.yaml_reader import MAX_BYTES, MAX_ROWS, read_document

HEAD = "format: pilotage-sites\nversion: 1\n"


def test_a_site_is_followed_by_what_is_listed_below_it() -> None:
    entries = read_document(
        f"{HEAD}sites:\n"
        "- name: UW\n"
        "  max_matches: 5\n"
        "  queues:\n"
        "  - {name: short, element: host}\n"
        "  running_limits:\n"
        "  - job_type: User\n"
        "    maximum: 3\n"
    )

    assert [(each.kind.word, each.title, each.line) for each in entries] == [
        ("site", "UW", 4),
        ("queue", "UW/short", 7),
        ("running limit", "UW/User, any", 9),
    ]
    assert entries[0].values == {"name": "UW", "max_matches": 5}
    assert entries[0].lines == {"name": 4, "max_matches": 5}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "is empty"),
        ("format: [", 2, "expected"),
        ("- a", 1, "must be a mapping"),
        ("format: other\nversion: 1\nsites: []", 1, "needs `format: pilotage-sites`"),
        ("format: pilotage-sites\nversion: 2\nsites: []", 2, "needs `version: 1`"),
        (HEAD, 1, "needs a list of sites"),
        (f"{HEAD}sites: {{}}", 3, "must be a list"),
        (f"{HEAD}sites: []\nusers: []", 4, "users means nothing here"),
        (f"{HEAD}sites:\n- max_matches: 1", 4, "needs a name"),
        (f"{HEAD}sites:\n- name: UW\n- name: UW", 5, "listed twice"),
        (f"{HEAD}sites:\n- name: UW\n  colour: red", 5, "a site has no colour"),
        (f"{HEAD}sites:\n- name: UW\n  state: banned", 5, "a site has no state"),
        (f"{HEAD}sites:\n- name: UW\n  rank: 1.0", 5, "rank must be a text: put it in quotes"),
        (f"{HEAD}sites:\n- name: UW\n  rank: 2026-01-01", 5, "read as a date"),
        (f"{HEAD}sites:\n- name: no", 4, '"no" is not read alike'),
        (f"{HEAD}sites:\n- name: 5", 4, "name must be a text"),
        (f"{HEAD}sites:\n- name: UW\n  is_enabled: 1", 5, "must be true or false"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: true", 5, "must be a whole number"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 1\n  max_matches: 2", 6, "stands twice"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: ", 5, "needs a value"),
        (f'{HEAD}sites:\n- name: UW\n  rank: "a\\0b"', 5, "zero byte"),
        (f"{HEAD}sites:\n- name: UW\n  queues:\n  - {{name: q, attenuation: .nan}}", 6, "no num"),
        (f"{HEAD}sites: &all []", 3, "anchors and aliases are not read"),
        (f"{HEAD}sites: *all", 3, "anchors and aliases are not read"),
        (f"{HEAD}sites: !!python/object:os.system []", 3, "tags are not read"),
        (f"{HEAD}sites: []\n---\nformat: x", 4, "second document"),
        (f"{HEAD}sites: {'[' * 30}", 3, "nested too deeply"),
        ("\x01", None, "is no YAML"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 010", 5, '"010" is not read alike'),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 24:00:00", 5, '"24:00:00" is not read'),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 1{':59' * 50_000}", 5, '59..." is not read'),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: {'9' * 500_000}", 5, '999..." is not read'),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: {2**63}", 5, "is too large"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 0x10", 5, '"0x10" is not read alike'),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 1e999", 5, "no number that could"),
        (f"{HEAD}sites:\n- name: UW\n  max_matches: 1_000", 5, '"1_000" is not read alike'),
        (f"{HEAD}sites:\n- name: UW\n  is_enabled: off", 5, '"off" is not read alike'),
        (
            f"{HEAD}sites:\n- name: UW\n  queues:\n  - {{name: q, settings: {{account: no}}}}",
            6,
            '"no" is not read alike',
        ),
    ],
)
def test_a_fault_is_told_with_its_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_document(text)

    found = [(each.line, words in each.message) for each in caught.value.findings]
    assert (line, True) in found, caught.value.findings


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_document(f"{HEAD}sites:\n- name: A\n  colour: red\n- name: B\n  is_enabled: maybe")

    assert [each.line for each in caught.value.findings] == [5, 7]


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    with pytest.raises(InvalidInput, match="anchors and aliases"):
        read_document("\n".join(lines))


@pytest.mark.parametrize(
    "text", ["x" * (MAX_BYTES + 1), f"{HEAD}sites: [{'1,' * 150_000}]", "[" * 100_000]
)
def test_what_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"large|much"):
        read_document(text)


def test_more_rows_than_an_import_can_carry_out_are_refused() -> None:
    sites = "".join(f"- name: S{number}\n" for number in range(MAX_ROWS + 1))

    with pytest.raises(InvalidInput, match="more than"):
        read_document(f"{HEAD}sites:\n{sites}")


@pytest.mark.slow
def test_nothing_of_a_document_is_kept_when_it_was_read() -> None:
    read_document(f"{HEAD}sites:\n- name: UW\n  max_matches: 5\n")
    gc.collect()

    assert [each for each in gc.get_objects() if issubclass(type(each), yaml.Node)] == []


def test_limits_whose_keys_look_alike_are_two() -> None:
    entries = read_document(
        f"{HEAD}sites:\n- name: UW\n  running_limits:\n"
        "  - {job_type: any, maximum: 1}\n"
        "  - {maximum: 2}\n"
        "  - {job_type: 'a, b', maximum: 3}\n"
        "  - {job_type: a, owner_group: 'b, any', maximum: 4}\n"
    )

    assert len(entries) == 5
