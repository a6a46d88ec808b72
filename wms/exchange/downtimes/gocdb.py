"""Reader of downtimes from GOCDB's XML, the answer to its method `get_downtime`.

A downtime is told once for each service that it concerns, or once with all of them nested in it;
those of one site are one entry.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from wms.core.errors import Finding, InvalidInput
from wms.exchange.downtimes.entries import (
    MAX_ENTRIES,
    MAX_FINDINGS,
    MAX_PLACES,
    Entry,
    short_reason,
)

#: Other severities leave the site working.
_OUTAGE = "OUTAGE"
#: GOCDB's own spelling, and that of tools that correct it.
_WRITTEN = ("FORMATED", "FORMATTED")
_FORMATS = ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")


def read_gocdb(text: str, *, now: datetime, is_complete: bool = False) -> list[Entry]:
    """Entries that are not over, by their start.

    Raises InvalidInput with its faults (the first `MAX_FINDINGS`), and when the document shall be
    all that GOCDB has (`is_complete`) but is one page of several.
    """
    root = _root(text)
    if is_complete and _is_page_of_several(root):
        message = "is one page of several, so it cannot be all that the source has"
        raise InvalidInput.of(message, file="XML", field="is_complete")
    found: dict[tuple[str, tuple[str, ...]], Entry] = {}
    findings: list[Finding] = []
    for number, element in enumerate(root.iter("DOWNTIME"), start=1):
        entry = _entry(element, number, findings)
        if len(findings) >= MAX_FINDINGS:
            raise InvalidInput(findings[:MAX_FINDINGS])
        if entry is None or entry.end <= now:
            continue
        key = (entry.uid, entry.places)
        known = found.get(key)
        found[key] = entry if known is None else _merged(known, entry)
    if len(found) > MAX_ENTRIES:
        findings.append(Finding(f"has more than {MAX_ENTRIES} downtimes", file="XML"))
    if findings:
        raise InvalidInput(findings)
    return sorted(found.values(), key=lambda each: (each.start, each.uid, each.places))


def _root(text: str) -> Element:
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as error:
        message = "has a document type, entities or references, which are not read"
        raise InvalidInput.of(message, file="XML") from error
    except (ParseError, ValueError) as error:
        line = error.position[0] if isinstance(error, ParseError) else None
        raise InvalidInput.of(f"is no XML: {error}", file="XML", line=line) from error
    return root


def _is_page_of_several(root: Element) -> bool:
    """Numbered pages are told by attributes, those of a cursor by links."""
    links = {link.get("rel") for link in root.iterfind("meta/link")}
    is_numbered = bool(root.get("next")) or root.get("page", "1") != "1"
    return is_numbered or not links.isdisjoint({"next", "prev"})


def _merged(one: Entry, other: Entry) -> Entry:
    """One downtime of a site from two of its services: an outage of either counts."""
    kept = other if one.skipped and not other.skipped else one
    return replace(kept, start=min(one.start, other.start), end=max(one.end, other.end))


def _entry(element: Element, number: int, findings: list[Finding]) -> Entry | None:
    uid = _text(element, "PRIMARY_KEY") or str(element.get("PRIMARY_KEY") or "")
    named = f"downtime {uid[:80] or f'number {number}'}"
    if not 0 < len(uid) <= 255:
        message = f"{named}: needs a PRIMARY_KEY of 1 to 255 characters"
        findings.append(Finding(message, file="XML", field="PRIMARY_KEY"))
    times = [_time(element, name) for name in ("START_DATE", "END_DATE")]
    for name, moment in zip(("START_DATE", "END_DATE"), times, strict=True):
        if moment is None:
            message = f"{named}: {name} is missing, or no time in seconds since 1970"
            findings.append(Finding(message, file="XML", field=name))
    places = _places(element)
    if len(places) > MAX_PLACES:
        message = f"{named}: names more than {MAX_PLACES} places"
        findings.append(Finding(message, file="XML", field="HOSTED_BY"))
    start, end = times
    if start is None or end is None:
        return None
    severity = _text(element, "SEVERITY").upper()
    skipped = "" if severity == _OUTAGE else f"its severity is {severity[:32] or 'not told'}"
    return Entry(
        uid=uid,
        start=start,
        end=end,
        reason=short_reason(
            _text(element, "DESCRIPTION") or "no description",
            f"({_classified(element)}GOCDB {uid})",
        ),
        places=places,
        skipped=skipped,
    )


def _classified(element: Element) -> str:
    classification = element.get("CLASSIFICATION") or _text(element, "CLASSIFICATION")
    return f"{classification.lower()[:32]}, " if classification else ""


def _places(element: Element) -> tuple[str, ...]:
    """The site, or those of the services nested in it; the hosts where no site is told."""
    if site := _text(element, "SITENAME"):
        return (site,)
    for name in ("HOSTED_BY", "HOSTNAME"):
        told = {(each.text or "").strip() for each in element.iter(name)} - {""}
        if told:
            return tuple(sorted(told))
    return ()


def _time(element: Element, name: str) -> datetime | None:
    """A time in seconds since 1970, or as it is written out in UTC."""
    try:
        if seconds := _text(element, name):
            return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    written = next(filter(None, (_text(element, f"{each}_{name}") for each in _WRITTEN)), "")
    for form in _FORMATS:
        try:
            return datetime.strptime(written, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
