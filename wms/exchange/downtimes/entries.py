"""Entry of a document of downtimes, whatever its form, and the options of its import.

Also the bounds of what one import reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wms.core.errors import Finding, InvalidInput
from wms.sites.downtimes.services import MAX_LEAD_TIME

#: Largest document.
MAX_BYTES = 1024 * 1024
#: Most entries that a document may lead to, each occurrence of a repeated event counted.
MAX_ENTRIES = 1000
#: Most places that one entry may name.
MAX_PLACES = 100
#: Most faults that a refusal tells.
MAX_FINDINGS = 100
#: Repeated events are followed so far from now.
HORIZON = timedelta(days=366)
#: Longest reason that is taken over.
MAX_REASON = 1000
#: Each occurrence of a repeated event reads its text again.
_MAX_READ = 10 * MAX_REASON
_SOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Downtime that a document tells.

    `uid` and `recurrence` name it within its source; `places` are the source's names of what is
    down. `skipped` is the reason why it is none for us.
    """

    uid: str
    start: datetime
    end: datetime
    reason: str
    places: tuple[str, ...] = ()
    recurrence: str = ""
    sequence: int = 0
    is_cancelled: bool = False
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, given by its user.

    `source` names where the document is from; it makes a second import find what the first one
    entered. `sites` gives our names for the source's, `default_site` is for entries without any.
    Times without a zone, and whole days, are of `zone`. A document that `is_complete` cancels what
    the source has no more. `overwrites` also what people have changed since.
    """

    source: str
    sites: Mapping[str, str] = field(default_factory=dict)
    default_site: str = ""
    zone: str = "UTC"
    lead_time_s: int = 0
    is_complete: bool = False
    overwrites: bool = False

    def check(self) -> None:
        """Raise InvalidInput with every fault."""
        findings = []
        if not _SOURCE.fullmatch(self.source):
            message = "must be 1 to 64 letters, digits and . _ : - such as gocdb"
            findings.append(Finding(message, field="source"))
        most_s = int(MAX_LEAD_TIME.total_seconds())
        if not 0 <= self.lead_time_s <= most_s:
            findings.append(Finding(f"must be from 0 to {most_s} seconds", field="lead_time_s"))
        try:
            ZoneInfo(self.zone)
        except (OSError, ValueError, LookupError):
            findings.append(Finding(f"there is no time zone {self.zone[:64]!r}", field="zone"))
        if findings:
            raise InvalidInput(findings)


def site_names(lines: Sequence[str]) -> dict[str, str]:
    """Our names of sites by those of a source, from lines as `CERN-PROD = CERN`.

    Raises InvalidInput with the line.
    """
    names, findings = {}, []
    for number, line in enumerate(lines, start=1):
        theirs, equals, ours = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not (theirs and equals and ours):
            message = f"line {number}: write their name, =, and the name of our site"
            findings.append(Finding(message, field="sites"))
        names[theirs] = ours
    if findings:
        raise InvalidInput(findings)
    return names


def short_reason(*parts: str) -> str:
    """Reason of a downtime from what its source tells, in one line and not too long."""
    told = " ".join(" ".join(part[:_MAX_READ].split()) for part in parts if part.strip())
    return told if len(told) <= MAX_REASON else f"{told[: MAX_REASON - 4]} ..."
