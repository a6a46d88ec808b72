"""Advertisement of a site at run time, as with `condor_advertise`: checked, stored, invalidated.

Permitted and audited. One that is not newer than the last one, by its number, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from matching.ads.ad_formats import parse_ad
from matching.ads.classads import AdError, attribute_value, build_ad
from matching.descriptions import environments
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.errors import Conflict, Finding, InvalidInput, NotFound
from wms.core.models import Role
from wms.core.policy import require_role
from wms.sites.ads import check_merged, merge_ad, requirements_faults
from wms.sites.models import Advertisement, Site, SiteEvent
from wms.sites.policy import require_configuring
from wms.sites.selectors import find_site

DEFAULT_LIFETIME_S = 900
MAX_LIFETIME_S = 604_800
_MAX_INTEGER = 2**63 - 1
#: What only Pilotage can know, and why.
_REFUSED = {
    "curmatches": "Pilotage counts what is bound to the site",
    "matchunit": "an operator sets in the configuration what MaxMatches counts",
    "groupsize": "an operator sets in the configuration what MaxMatches counts",
}
#: Attributes that speak of the advertisement; they are not merged.
_ENVELOPE = frozenset({"name", "mytype", "targettype", "updatesequencenumber", "classadlifetime"})
_DAY_S = 86_400
_INTEGER = re.compile(r"[0-9]{1,19}\Z")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"\Z', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Advertised:
    """The stored advertisement; `is_new` unless it renewed one that was in force."""

    advertisement: Advertisement
    is_new: bool


@dataclass(frozen=True, slots=True)
class _Message:
    """An advertised ad: its site, and the attributes to be merged."""

    name: str
    sequence: int | None
    lifetime_s: int
    attributes: Mapping[str, str]

    @property
    def lines(self) -> str:
        return "\n".join(f"{name} = {text}" for name, text in self.attributes.items())


@transaction.atomic
def advertise(text: str, *, actor: Actor, now: datetime) -> Advertised:
    """Merge an ad, in any of the three formats, into the ad of the site that it names.

    It holds for its ClassAdLifetime, 900 s by default. Without UpdateSequenceNumber it has the one
    after the last. A number is at most the Unix time of the next day: a larger one would keep all
    later ads out.

    Raises NotPermitted; InvalidInput with every fault, by attribute or line; Conflict when the
    number is not larger than that of the last one, also of an invalidated one. Then nothing was
    changed.
    """
    require_role(actor, Role.SITE_ADMIN, "advertise ads of sites")
    message = _read(text)
    # Two at once for the same site come one after the other.
    site = Site.objects.filter(name=message.name).select_for_update(no_key=True).first()
    if site is None:
        raise InvalidInput.of(f"no site {message.name} is configured", field="Name")
    require_configuring(actor, "advertise ads of sites", site)
    old = Advertisement.objects.filter(site=site).first()
    last = 0 if old is None else old.sequence
    sequence = last + 1 if message.sequence is None else message.sequence
    if sequence > now.timestamp() + _DAY_S:
        latest = int(now.timestamp() + _DAY_S)
        fault = f"must be at most {latest}, the Unix time of the next day"
        raise InvalidInput.of(fault, field="UpdateSequenceNumber")
    if old is not None and sequence <= old.sequence:
        raise Conflict(
            f"The UpdateSequenceNumber {sequence} is not larger than {old.sequence}, the "
            f"last one of {site.name}; nothing was changed."
        )
    _check_merged(site, message)
    row, _ = Advertisement.objects.update_or_create(
        site=site,
        defaults={
            "attributes": message.lines,
            "sequence": sequence,
            "lifetime_s": message.lifetime_s,
            "received_at": now,
            "expires_at": now + timedelta(seconds=message.lifetime_s),
            "advertised_by": actor.name,
            "invalidated_at": None,
            "invalidated_by": "",
        },
    )
    is_new = old is None or old.invalidated_at is not None
    if is_new or old is None or old.attributes != row.attributes:
        _record("advertise", site, row, actor, attributes=list(message.attributes))
    return Advertised(row, is_new)


@transaction.atomic
def invalidate(name: str, *, actor: Actor, now: datetime) -> Advertisement:
    """Invalidate a site's advertisement, so that its configuration alone holds.

    The sequence number is kept, so that the old ad cannot be sent again. Raises NotPermitted, and
    NotFound without such a site, or when it advertises nothing.
    """
    site = find_site(name)
    require_configuring(actor, "invalidate ads of sites", site)
    row = (
        Advertisement.objects.filter(site=site, invalidated_at=None)
        .select_for_update(of=("self",))
        .first()
    )
    if row is None:
        raise NotFound(f"{name} advertises nothing.")
    row.invalidated_at, row.invalidated_by = now, actor.name
    row.save(update_fields=["invalidated_at", "invalidated_by"])
    _record("invalidate", site, row, actor)
    return row


def _record(event: str, site: Site, row: Advertisement, actor: Actor, **facts: Any) -> None:
    facts = {"sequence": row.sequence, **facts}
    SiteEvent.objects.create(site=site, event=event, actor=actor.name, facts=facts)
    record_action(f"{event} ad", target=f"site {site.name}", actor=actor, facts=facts)


def _read(text: str) -> _Message:
    try:
        attributes = parse_ad(text)
    except AdError as error:
        field = error.attribute or "ad"
        raise InvalidInput.of(error.message, field=field, line=error.line) from error
    by_name = {name.lower(): (name, expression) for name, expression in attributes.items()}
    findings = [
        Finding(f"cannot be advertised: {why}", field=by_name[name][0])
        for name, why in _REFUSED.items()
        if name in by_name
    ]
    if "name" not in by_name:
        findings.append(Finding("an ad needs the Name of its site", field="Name"))
    findings += [
        Finding(fault, field=by_name[name][0])
        for name, check in _CHECKS.items()
        if name in by_name and (fault := check(by_name[name][1]))
    ]
    if "requirements" in by_name:
        name, expression = by_name["requirements"]
        findings += requirements_faults(expression, field=name)
    if findings:
        raise InvalidInput(findings)

    def number(name: str) -> int | None:
        return int(by_name[name][1]) if name in by_name else None

    return _Message(
        name=_string(by_name["name"][1]) or "",
        sequence=number("updatesequencenumber"),
        lifetime_s=number("classadlifetime") or DEFAULT_LIFETIME_S,
        attributes={
            name: expression
            for name, expression in attributes.items()
            if name.lower() not in _ENVELOPE
        },
    )


def _string(expression: str) -> str | None:
    """The value of a string literal; None for any other expression."""
    if not _STRING.match(expression):
        return None
    value = attribute_value(build_ad({"Value": expression}), "Value", None)
    return value if isinstance(value, str) else None


def _integer(least: int, most: int) -> Callable[[str], str]:
    def check(expression: str) -> str:
        if _INTEGER.match(expression) and least <= int(expression) <= most:
            return ""
        return f"must be a whole number from {least} to {most}, without an expression"

    return check


def _word(word: str) -> Callable[[str], str]:
    def check(expression: str) -> str:
        is_word = (_string(expression) or "").lower() == word.lower()
        return "" if is_word else f'must be "{word}"'

    return check


def _name(expression: str) -> str:
    return "" if _string(expression) else "must be the name of a site in quotes"


def _truth(expression: str) -> str:
    is_literal = expression.lower() in {"true", "false"}
    return "" if is_literal else "must be true or false, without an expression"


def _environment(expression: str) -> str:
    text = _string(expression)
    if text is None:
        return 'must be a string like "NAME=value;NAME=value"'
    try:
        environments.parse_semicolons(text)
    except environments.BadEnvironment as error:
        return str(error)
    return ""


#: The faults of attributes whose values have to be known beforehand, by lower-case name.
_CHECKS: dict[str, Callable[[str], str]] = {
    "name": _name,
    "mytype": _word("Machine"),
    "targettype": _word("Job"),
    "updatesequencenumber": _integer(0, _MAX_INTEGER),
    "classadlifetime": _integer(1, MAX_LIFETIME_S),
    "maxmatches": _integer(0, 2**31 - 1),
    "wantadrevaluate": _truth,
    "siteenvironment": _environment,
}


def _check_merged(site: Site, message: _Message) -> None:
    try:
        check_merged(merge_ad(site, message.attributes))
    except AdError as error:
        text = f"together with the configuration of {site.name}: {error.message}"
        raise InvalidInput.of(text, field=error.attribute or "ad") from error
