"""Stored rules become RE2's: with the same meaning, or switched off with the reason."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from wms.failures.defaults import DEFAULT_RULES
from wms.failures.models import FailureRule, RuleBook
from wms.failures.rules import default_rules

_FIRST = import_module("wms.failures.migrations._first_rules").NEW
_TO_RE2 = import_module("wms.failures.migrations._to_re2")
_MIGRATION = import_module("wms.failures.migrations.0002_rules_for_re2")
_MORE = "may find more than before"


def test_the_first_rules_become_what_new_installations_begin_with() -> None:
    assert set(_FIRST.values()) <= {rule.pattern for rule in DEFAULT_RULES}
    assert len(_FIRST) == len(set(_FIRST.values()))


@pytest.mark.parametrize(
    ("former", "pattern"),
    [
        ("[0-9]++ kittens", "[0-9]+ kittens"),
        ("code=(?P<it>[0-9]++)", "code=(?P<it>[0-9]+)"),
        (r"(?<![\w.-])run[0-9]++(?![\w-])", r"(?:^|[^\w.-])(?P<it>run[0-9]+)(?:[^\w-]|$)"),
        ("(?>a|b)c", "(?:a|b)c"),
        (r"x[+*]++y\++", r"x[+*]+y\++"),
        (r"a\\++b[]+]++", r"a\\+b[]+]+"),
        (r"job \d{2,}+ of \d++\Z", r"job \d{2,} of \d+\z"),
        (r"foo [0-9]++\b.*+", r"foo [0-9]+\b.*"),
    ],
)
def test_repeats_that_could_give_nothing_back_become_plain(former: str, pattern: str) -> None:
    assert _TO_RE2.rewritten(former) == (pattern, "")


@pytest.mark.parametrize(
    ("former", "pattern", "fault"),
    [
        ("[0-9]++0", "[0-9]+0", _MORE),
        ("(?>a|ab)c", "(?:a|ab)c", _MORE),
        ("(?:a|ab)*+c", "(?:a|ab)*c", _MORE),
        ("(?>a?)ab", "(?:a?)ab", _MORE),
        (".*+b", ".*b", _MORE),
        ("a(?=b)", "a(?=b)", "invalid perl operator: (?="),
        ("(?P<it>a)(?<!b)", "(?P<it>a)(?<!b)", "invalid perl operator: (?<!"),
    ],
)
def test_others_have_a_reason_why_they_are_not_used(former: str, pattern: str, fault: str) -> None:
    found = _TO_RE2.rewritten(former)

    assert found.pattern == pattern
    assert fault in found.fault


@pytest.mark.django_db
def test_no_rule_is_lost_and_failures_are_grouped_anew() -> None:
    old = {new: former for former, new in _FIRST.items()}
    RuleBook.objects.create(pk=1, version=4)
    rules = default_rules()
    for rule in rules:
        rule.pattern = old.get(rule.pattern, rule.pattern)
    FailureRule.objects.bulk_create(rules)
    FailureRule.objects.create(name="Mine", pattern="[0-9]++ kittens", position=1)
    FailureRule.objects.create(name="Odd", pattern="a(?=b)", position=2)

    _MIGRATION.to_re2(apps, None)

    stored = {rule.name: rule for rule in FailureRule.objects.all()}
    assert {rule.name: rule.pattern for rule in default_rules()}.items() <= {
        name: rule.pattern for name, rule in stored.items()
    }.items()
    assert (stored["Mine"].pattern, stored["Mine"].is_enabled) == ("[0-9]+ kittens", True)
    assert (stored["Odd"].pattern, stored["Odd"].is_enabled) == ("a(?=b)", False)
    assert "(?=" in stored["Odd"].fault
    assert RuleBook.objects.get().version == 5

    _MIGRATION.to_python(apps, None)

    former = {rule.name: rule.pattern for rule in FailureRule.objects.all()}
    assert former["Number"] == old[stored["Number"].pattern]
