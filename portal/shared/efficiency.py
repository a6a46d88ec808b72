"""Query of the efficiency page and endpoint: days, site and grouping; and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from wms.accounting.core_seconds import UseBy, UseLine, use_lines
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User

DEFAULT_DAYS = 7
MAX_DAYS = 366
_KNOWN = frozenset({"by", "days", "site"})


@dataclass(frozen=True, slots=True)
class EfficiencyQuery:
    """The accounts of the last `days` days, today included, of one site or of all."""

    by: UseBy = UseBy.SITE
    days: int = DEFAULT_DAYS
    site: str = ""

    def answer(self, user: User, *, today: date) -> list[UseLine]:
        """Lines of the answer that the user may see."""
        since = today - timedelta(days=self.days - 1)
        return use_lines(user, self.by, since=since, until=today, site_name=self.site)


def read_question(given: Mapping[str, str]) -> EfficiencyQuery:
    """Query that the parameters of an address ask. Raises InvalidInput with every fault."""
    faults = [
        Finding(f"unknown; known are {', '.join(sorted(_KNOWN))}", field=name)
        for name in sorted(set(given) - _KNOWN)
    ]
    by, days = given.get("by", UseBy.SITE), given.get("days", str(DEFAULT_DAYS))
    if by not in list(UseBy):
        faults.append(Finding(f"must be one of {', '.join(UseBy)}", field="by"))
    is_number = days.isascii() and days.isdigit() and len(days) <= 4
    if not is_number or not 1 <= int(days) <= MAX_DAYS:
        faults.append(Finding(f"must be a number from 1 to {MAX_DAYS}", field="days"))
    site = given.get("site", "")
    if "\0" in site:
        faults.append(Finding("cannot be the name of a site", field="site"))
    if faults:
        raise InvalidInput(faults)
    return EfficiencyQuery(UseBy(by), int(days), site)
