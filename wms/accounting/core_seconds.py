"""Core-seconds (useful, failed, lost, idle, validation), and their addition to the accounts.

Attempts and pilots that ended are added once each, to the account of their day, site, group and
user, and to one for each label. `wms.accounting.accounts` sums them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import date

from django.db import connection

from wms.accounting.sql import add_uses_of


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """Core-seconds, divided into useful, failed, lost, idle and validation.

    Useful: attempts whose job is done. Failed: payloads that came to a bad end of their own or by
    their watchdog. Lost: attempts that were killed, pre-empted, or whose pilots were gone. Idle and
    validation are pilots': no job used them, or the checks of the node did.
    """

    useful_s: float = 0.0
    failed_s: float = 0.0
    lost_s: float = 0.0
    idle_s: float = 0.0
    validation_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Sum of all core-seconds."""
        return self.of_attempts_s + self.idle_s + self.validation_s

    @property
    def of_attempts_s(self) -> float:
        """Core-seconds that attempts held, whatever became of them."""
        return self.useful_s + self.failed_s + self.lost_s

    @property
    def wasted_s(self) -> float:
        """Sum of all core-seconds but the useful ones."""
        return self.total_s - self.useful_s

    @property
    def efficiency(self) -> float | None:
        """Useful part, from 0 to 1; None without any core-seconds."""
        return self.useful_s / self.total_s if self.total_s > 0 else None


@dataclass(frozen=True, slots=True)
class Use:
    """Use by one attempt, or by one pilot without its attempts, on its last day.

    `cpu_s` and `wall_s` are times of the payload, which cores do not multiply.
    """

    day: date
    site_name: str
    owner_name: str
    spent: CoreSeconds
    group_name: str = ""
    labels: tuple[str, ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    attempts: int = 0
    failed_attempts: int = 0
    lost_attempts: int = 0
    pilots: int = 0


_SPENT = tuple(each.name for each in fields(CoreSeconds))
_OF_ATTEMPTS = ("useful_s", "failed_s", "lost_s")
_TIMES = ("cpu_s", "wall_s")
_ATTEMPTS = ("attempts", "failed_attempts", "lost_attempts")
_KEYS = {"day": "date", "site_name": "text", "group_name": "text", "owner_name": "text"}


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of accounts: its key with the types, and what it sums up."""

    name: str
    keys: dict[str, str]
    seconds: tuple[str, ...]
    counts: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The statement that adds rows."""
        return add_uses_of(self.name, self.keys, self.seconds, self.counts)

    def amounts_of(self, use: Use) -> list[float]:
        """What a use adds to each sum."""
        spent = {name: getattr(use.spent, name) for name in _SPENT}
        return [
            spent[name] if name in spent else getattr(use, name)
            for name in (*self.seconds, *self.counts)
        ]


DAILY = _Table("accounting_dailyuse", _KEYS, (*_SPENT, *_TIMES), (*_ATTEMPTS, "pilots"))
BY_LABEL = _Table(
    "accounting_labeluse",
    {"day": "date", "label": "text", **{name: _KEYS[name] for name in list(_KEYS)[1:]}},
    (*_OF_ATTEMPTS, *_TIMES),
    _ATTEMPTS,
)


def add_uses(uses: Iterable[Use]) -> None:
    """Add to the accounts, in the caller's transaction, which marks what it adds as added."""
    every = list(uses)
    _add(DAILY, every, lambda use: [_place(use)])
    _add(
        BY_LABEL,
        every,
        lambda use: [(use.day, label, *_place(use)[1:]) for label in use.labels],
    )


def _place(use: Use) -> tuple[date | str, ...]:
    return (use.day, use.site_name, use.group_name, use.owner_name)


def _add(
    table: _Table, uses: list[Use], places: Callable[[Use], list[tuple[date | str, ...]]]
) -> None:
    sums: dict[tuple[date | str, ...], list[float]] = {}
    for use in uses:
        amounts = table.amounts_of(use)
        for place in places(use):
            line = sums.setdefault(place, [0.0] * len(amounts))
            for number, amount in enumerate(amounts):
                line[number] += amount
    if not sums:
        return
    keys = [list(column) for column in zip(*sums, strict=True)]
    columns = [list(column) for column in zip(*sums.values(), strict=True)]
    counts = [[int(count) for count in column] for column in columns[len(table.seconds) :]]
    with connection.cursor() as cursor:
        cursor.execute(table.statement, [*keys, *columns[: len(table.seconds)], *counts])
