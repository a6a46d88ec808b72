"""Normalisation rules and their rule book as they are stored: read, locked, begun with defaults.

Also the rules in the form in which they are applied, and the normalised text of a failure by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models.functions import Now

from wms.failures.defaults import DEFAULT_RULES
from wms.failures.failure_reports import FailureReport
from wms.failures.models import FailureRule, RuleBook
from wms.failures.normalising import Rule, normalise


def rule_book() -> RuleBook:
    """The row about the rules as a whole; unsaved, as long as nothing has been grouped."""
    return RuleBook.objects.filter(pk=1).first() or RuleBook(pk=1, version=1)


def locked_rule_book() -> RuleBook:
    """The rule book, locked against changes of the rules. The first call stores the defaults."""
    book, is_new = RuleBook.objects.select_for_update().get_or_create(
        pk=1, defaults={"version": 1, "finished_at": Now()}
    )
    if is_new:
        FailureRule.objects.bulk_create(default_rules())
        book.refresh_from_db()
    return book


def default_rules() -> list[FailureRule]:
    """The rules that an installation begins with, unsaved."""
    return [
        FailureRule(
            position=10 * place,
            name=rule.name,
            pattern=rule.pattern,
            placeholder=rule.placeholder,
            keeps=rule.keeps,
            note=rule.note,
        )
        for place, rule in enumerate(DEFAULT_RULES, start=1)
    ]


def stored_rules() -> list[FailureRule]:
    """All rules in their order."""
    return list(FailureRule.objects.all())


def as_rules(rows: Sequence[FailureRule]) -> list[Rule]:
    """Stored rules as they are applied: those that are switched on."""
    return [Rule(row.pattern, row.placeholder, row.keeps) for row in rows if row.is_enabled]


def text_of(report: FailureReport, rules: Sequence[Rule]) -> str:
    """The text of the cause of a failure."""
    return normalise(report.message, rules, owner=report.owner, site=report.site, host=report.host)
