"""Query of the efficiency page and endpoint: grouping, days and names; its answer, also as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from portal.lists.exports import csv_cell
from wms.accounting.accounts import Period, UseBy, UseLine, UseOf, use_lines
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User

DEFAULT_DAYS = 7
#: Ten years: the accounts are kept for ever.
MAX_DAYS = 3660
_NAMES = ("site", "user", "group", "label")
_KNOWN = frozenset({"by", "days", "since", "until", "compare", *_NAMES})
_LONGEST_NAME = 150
_OF_TIME = (UseBy.DAY, UseBy.MONTH)
#: Columns of the CSV file behind the name of a line.
_SPENT = ("useful_s", "failed_s", "lost_s", "idle_s", "validation_s", "total_s", "efficiency")
_OF_LINE = (
    "cpu_s", "wall_s", "cpu_efficiency", "attempts", "failed_attempts", "lost_attempts", "pilots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """Lines of the accounts, and by name those of the days before if they were asked for."""

    period: Period
    lines: list[UseLine]
    before: dict[str, UseLine] | None = None


@dataclass(frozen=True, slots=True)
class EfficiencyQuery:
    """Grouping and names, with the days `since` to `until`, or the last `days`, today included."""

    by: UseBy = UseBy.SITE
    days: int = DEFAULT_DAYS
    since: date | None = None
    until: date | None = None
    of: UseOf = field(default_factory=UseOf)
    is_compared: bool = False

    def period(self, today: date) -> Period:
        """Days that are asked for."""
        until = self.until or today
        return Period(self.since or until - timedelta(days=self.days - 1), until)

    def answer(self, user: User, *, today: date) -> Answer:
        """Answer with what the user may see."""
        period = self.period(today)
        lines = use_lines(user, self.by, period, self.of)
        if not self.is_compared:
            return Answer(period, lines)
        before = use_lines(user, self.by, period.before, self.of)
        return Answer(period, lines, {line.name: line for line in before})


def read_question(given: Mapping[str, str], *, today: date) -> EfficiencyQuery:
    """Query that the parameters of an address ask. Raises InvalidInput with every fault."""
    faults = [
        Finding(f"unknown; known are {', '.join(sorted(_KNOWN))}", field=name)
        for name in sorted(set(given) - _KNOWN)
    ]
    by = given.get("by", UseBy.SITE)
    if by not in list(UseBy):
        faults.append(Finding(f"must be one of {', '.join(UseBy)}", field="by"))
    compare = given.get("compare", "")
    if compare not in ("", "before"):
        faults.append(Finding("must be empty or before", field="compare"))
    elif compare and by in _OF_TIME:
        faults.append(
            Finding("days and months are not compared with those before", field="compare")
        )
    names = {name: given.get(name, "").strip() for name in _NAMES}
    faults += [
        Finding(f"cannot be the name of a {name}", field=name)
        for name, value in names.items()
        if not value.isprintable() or len(value) > _LONGEST_NAME
    ]
    days = _days(given, faults)
    since, until = _date(given, "since", faults), _date(given, "until", faults)
    if not faults:
        _check_period(given, since, until or today, faults)
    if faults:
        raise InvalidInput(faults)
    return EfficiencyQuery(UseBy(by), days, since, until, UseOf(**names), bool(compare))


def _days(given: Mapping[str, str], faults: list[Finding]) -> int:
    days = given.get("days", "") or str(DEFAULT_DAYS)
    is_number = days.isascii() and days.isdigit() and len(days) <= 4
    if is_number and 1 <= int(days) <= MAX_DAYS:
        return int(days)
    faults.append(Finding(f"must be a number from 1 to {MAX_DAYS}", field="days"))
    return DEFAULT_DAYS


def _date(given: Mapping[str, str], name: str, faults: list[Finding]) -> date | None:
    text = given.get(name, "")
    if not text:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or not 2000 <= found.year <= 9000:
        faults.append(Finding("must be a day such as 2026-11-27", field=name))
    return found


def _check_period(
    given: Mapping[str, str], since: date | None, until: date, faults: list[Finding]
) -> None:
    if since is None:
        return
    if given.get("days"):
        faults.append(Finding("cannot be told together with since", field="days"))
    if since > until:
        faults.append(Finding(f"must not be after the last day, {until}", field="since"))
    elif (until - since).days >= MAX_DAYS:
        faults.append(Finding(f"must be less than {MAX_DAYS} days before {until}", field="since"))


def as_csv(question: EfficiencyQuery, answer: Answer) -> str:
    """The answer as a CSV file: seconds, counts, and the same of the days before if compared."""
    file = io.StringIO()
    writer = csv.writer(file)
    columns = [*_SPENT, *_OF_LINE]
    compared = [f"{name}_before" for name in columns] if answer.before is not None else []
    writer.writerow([question.by.value, "since", "until", *columns, *compared])
    for line in answer.lines:
        values = _values(line)
        if answer.before is not None:
            values += _values(answer.before.get(line.name, UseLine(line.name)))
        days = (answer.period.since, answer.period.until)
        writer.writerow([csv_cell(each) for each in (line.name, *days, *values)])
    return file.getvalue()


def _values(line: UseLine) -> list[object]:
    return [
        *(getattr(line.spent, name) for name in _SPENT),
        *(getattr(line, name) for name in _OF_LINE),
    ]
