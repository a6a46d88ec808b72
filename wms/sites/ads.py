"""Ads of sites: merged from configuration and advertisement, checked, published, read.

Also the values of a site's ad that need no DAG, for `$$(Attr)` and `MATCH_` attributes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import classad2
import structlog
from django.db import transaction

from matching.ads.ad_cost import check_cost
from matching.ads.classads import (
    MAX_AD_BYTES,
    AdError,
    build_ad,
    literal_values,
    parse_expression,
    parse_lines,
    quote,
    read_lines,
    render_lines,
)
from matching.descriptions import environments
from matching.task_queues.impossible_requirements import constant_fault
from wms.core.errors import Conflict, Finding, InvalidInput
from wms.sites.downtimes.models import Downtime
from wms.sites.models import Queue, Site, SiteAd
from wms.sites.queue_figures import FIGURES, QueueFigures, figures_of
from wms.sites.selectors import configured_queues, downtimes_from

log = structlog.get_logger(__name__)
NO_FIGURES: Mapping[str, str] = MappingProxyType({})
#: An ad that is not renewed within this time is not matched (HTCondor's default for ClassAds).
AD_LIFETIME = timedelta(seconds=900)
#: Attributes that Pilotage computes itself, or that have a field of their own.
RESERVED = frozenset(
    name.lower()
    for name in (
        "MyType",
        "TargetType",
        "Name",
        "CurMatches",
        "MaxMatches",
        "MatchUnit",
        "GroupSize",
        "UpdateSequenceNumber",
        "ClassAdLifetime",
        "WantAdRevaluate",
        "SiteEnvironment",
        "Requirements",
        "Rank",
    )
)


_TWO_SIDED = frozenset({"Requirements", "Rank", "CurrentRank"})


@dataclass(frozen=True, slots=True)
class Load:
    """DAGs and jobs that are bound to a site."""

    dags: int = 0
    unfinished_nodes: int = 0


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a site's ad; `source` is configured, advertised, both or computed."""

    expression: str
    source: str


@dataclass(frozen=True, slots=True)
class PublishedAd:
    """The ad under which a site is matched.

    `group_size` is set where the ad counts jobs: a DAG counts with its unfinished nodes divided by
    it. Elsewhere every DAG counts 1.
    """

    site_id: int
    name: str
    ad: classad2.ClassAd
    group_size: float | None


def check_site(site: Site) -> None:
    """Raise InvalidInput with every fault of the site's expressions, by field and line."""
    findings = [
        *_expression_faults("requirements", site.requirements),
        *_expression_faults("rank", site.rank),
        *_environment_faults(site.environment),
        *_attribute_faults(site.attributes),
    ]
    findings = findings or _merged_faults(site)
    if findings:
        raise InvalidInput(findings)


def _expression_faults(field: str, text: str) -> list[Finding]:
    try:
        parse_expression(text)
    except AdError as error:
        return [Finding(error.message, field=field, line=error.line_in_text, column=error.column)]
    return requirements_faults(text, field=field) if field == "requirements" else []


def requirements_faults(text: str, *, field: str) -> list[Finding]:
    """Faults of a site's Requirements that are neither true nor false for every DAG."""
    try:
        check_cost({"Requirements": text})
    except AdError as error:
        return [Finding(error.message, field=field)]
    why = constant_fault(text, {})
    return [Finding(f"can never be true: {why.replace('site', 'DAG')}", field=field)] if why else []


def _environment_faults(text: str) -> list[Finding]:
    try:
        environments.parse_lines(text)
    except environments.BadEnvironment as error:
        return [Finding(str(error), field="environment", line=error.line)]
    return []


def _attribute_faults(text: str) -> list[Finding]:
    try:
        attributes = parse_lines(text)
    except AdError as error:
        return [Finding(error.message, field="attributes", line=error.line, column=error.column)]
    return [
        Finding(f"{name} is set by Pilotage; use the field made for it", field="attributes")
        for name in attributes
        if name.lower() in RESERVED
    ]


def _merged_faults(site: Site) -> list[Finding]:
    """Faults of the whole ad, first as configured, then with the advertisement."""
    advertised = advertised_attributes(site) if site.pk else {}
    for attributes, where in (({}, ""), (advertised, "together with what is advertised: ")):
        try:
            check_merged(merge_ad(site, attributes))
        except AdError as error:
            name = error.attribute.lower()
            field = name if name in {"requirements", "rank"} else "attributes"
            return [Finding(where + error.message, field=field)]
    return []


def advertised_attributes(site: Site) -> dict[str, str]:
    """Attributes of a site's advertisement, expired ones included; empty without one."""
    advertisement = getattr(site, "advertisement", None)
    if advertisement is None or advertisement.invalidated_at is not None:
        return {}
    return parse_lines(advertisement.attributes)


def merge_ad(
    site: Site,
    advertised: Mapping[str, str],
    *,
    load: Load | None = None,
    sequence: int = 0,
    figures: Mapping[str, str] = NO_FIGURES,
) -> dict[str, Attribute]:
    """The site's ad by attribute (names after the USCMS report on matchmaking).

    What is advertised wins, but can only narrow what was configured: both Requirements have to be
    true, and MaxMatches is the smaller one. `figures` are computed attributes, of which those are
    left out that are configured or advertised. Raises AdError or BadEnvironment when the
    configuration was changed behind the administration's back.
    """
    said = {name.lower(): text for name, text in advertised.items()}
    environment = environments.render_semicolons(environments.parse_lines(site.environment))
    ad = {
        "MyType": Attribute('"Machine"', "computed"),
        "TargetType": Attribute('"Job"', "computed"),
        "Name": Attribute(quote(site.name), "configured"),
        "UpdateSequenceNumber": Attribute(str(sequence), "computed"),
        "WantAdRevaluate": _advertised_or(said, "WantAdRevaluate", "true"),
        "SiteEnvironment": _advertised_or(said, "SiteEnvironment", quote(environment)),
        "Requirements": _requirements(site.requirements, said.get("requirements")),
        "Rank": _advertised_or(said, "Rank", site.rank),
        **_matches(site, load or Load(), said.get("maxmatches")),
    }
    for name, text in parse_lines(site.attributes).items():
        if name.lower() not in said:
            ad[name] = Attribute(text, "configured")
    for name, text in advertised.items():
        if name.lower() not in RESERVED:
            ad[name] = Attribute(text, "advertised")
    given = {name.lower() for name in ad}
    for name, text in figures.items():
        if name.lower() not in given:
            ad[name] = Attribute(text, "computed")
    return ad


def _advertised_or(said: Mapping[str, str], name: str, configured: str) -> Attribute:
    text = said.get(name.lower())
    return Attribute(configured, "configured") if text is None else Attribute(text, "advertised")


def _requirements(configured: str, said: str | None) -> Attribute:
    if said is None:
        return Attribute(configured, "configured")
    # A comment at the end of one of them must not hide the parenthesis.
    return Attribute(f"({configured}\n) && ({said}\n)", "both")


def _matches(site: Site, load: Load, said: str | None) -> dict[str, Attribute]:
    """Current and largest number of matches of the site, in DAGs or in groups of jobs."""
    most, source = site.max_matches, "configured"
    if said is not None and int(said) < most:
        most, source = int(said), "advertised"
    if site.matches_unit == Site.MatchesUnit.DAGS:
        return {
            "CurMatches": Attribute(str(load.dags), "computed"),
            "MaxMatches": Attribute(str(most), source),
        }
    groups = load.unfinished_nodes / site.group_size
    return {
        "CurMatches": Attribute(repr(groups), "computed"),
        "MaxMatches": Attribute(repr(most / site.group_size), source),
        "MatchUnit": Attribute(quote(site.matches_unit), "configured"),
        "GroupSize": Attribute(str(site.group_size), "configured"),
    }


def check_merged(ad: Mapping[str, Attribute]) -> None:
    """Raise AdError when the ad costs too much to evaluate, or is larger than may be published."""
    check_cost({name: attribute.expression for name, attribute in ad.items()})
    # Numbers that Pilotage sets grow by a few digits.
    if len(_rendered(ad).encode()) > MAX_AD_BYTES - 256:
        raise AdError(f"the site's ad would be larger than {MAX_AD_BYTES} bytes")


def _rendered(ad: Mapping[str, Attribute]) -> str:
    return render_lines(build_ad({name: attribute.expression for name, attribute in ad.items()}))


def current_ad(site: Site) -> dict[str, Attribute]:
    """The ad as configuration and advertisement make it now, with counts as last published.

    Raises Conflict when it cannot be made.
    """
    ad = getattr(site, "ad", None)
    sequence, count = (ad.sequence, ad.cur_matches) if ad else (0, 0)
    try:
        return merge_ad(
            site,
            advertised_attributes(site),
            load=Load(count, count),
            sequence=sequence,
            figures=_published_figures(ad) if ad else NO_FIGURES,
        )
    except (AdError, environments.BadEnvironment) as error:
        raise Conflict(f"The ad of {site.name} cannot be made: {error}") from error


def _published_figures(ad: SiteAd) -> dict[str, str]:
    known = {name.lower() for name in FIGURES}
    return {name: text for name, text in parse_lines(ad.text).items() if name.lower() in known}


def published_ad(ad: SiteAd) -> classad2.ClassAd:
    """A stored ad as an object. Raises AdError."""
    return read_lines(ad.text)


def match_attributes(ad: classad2.ClassAd) -> dict[str, Any]:
    """Values of a site's ad that need no DAG, so without Requirements and Rank."""
    values = literal_values(ad)
    return {name: value for name, value in values.items() if name not in _TWO_SIDED}


def match_attributes_at(site_name: str) -> dict[str, Any]:
    """Values of the ad under which a site was last published; its name alone without one."""
    row = SiteAd.objects.filter(site__name=site_name).first()
    try:
        return match_attributes(published_ad(row)) if row is not None else {"Name": site_name}
    except AdError as error:
        log.warning("site_ad_unreadable", site=site_name, error=str(error))
        return {"Name": site_name}


def read_ads(now: datetime) -> list[PublishedAd]:
    """The ads that have not expired, by the sites' names, whatever the sites' standing.

    One that cannot be read is left out, and no other suffers from it.
    """
    stored = SiteAd.objects.filter(expires_at__gt=now).select_related("site")
    ads = []
    for row in stored.order_by("site__name"):
        try:
            ad = published_ad(row)
        except AdError as error:
            log.warning("site_ad_unreadable", site=row.site.name, error=str(error))
            continue
        counts_jobs = row.site.matches_unit == Site.MatchesUnit.JOBS
        group_size = float(row.site.group_size) if counts_jobs else None
        ads.append(PublishedAd(row.site_id, row.site.name, ad, group_size))
    return ads


@transaction.atomic
def publish_ads(
    loads: Mapping[int, Load],
    *,
    now: datetime,
    figures: Mapping[int, QueueFigures] = MappingProxyType({}),
    storages: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> int:
    """Publish the ads of all sites with larger sequence numbers; return how many.

    `loads` are those of sites, `storages` the names of those near them, `figures` those of queues'
    pilots, by id. Those of closed sites as
    well: an explanation can then tell "never" from "not now". A site whose ad cannot be made is
    left out: its old ad expires.
    """
    sites = list(Site.objects.select_related("advertisement"))
    queues, downtimes = _queues_by_site(), _next_downtimes(now)
    old = dict(SiteAd.objects.select_for_update().values_list("site_id", "sequence"))
    ads = []
    for site in sites:
        load = loads.get(site.pk, Load())
        sequence = max(old.get(site.pk, 0) + 1, int(now.timestamp()))
        try:
            ad = merge_ad(site, advertised_attributes(site), load=load, sequence=sequence)
            rows = queues.get(site.pk, ()), downtimes.get(site.pk), storages.get(site.pk, ())
            text = _with_figures(ad, figures, *rows)
        except (AdError, environments.BadEnvironment) as error:
            log.warning("site_ad_not_made", site=site.name, error=str(error))
            continue
        counts_jobs = site.matches_unit == Site.MatchesUnit.JOBS
        ads.append(
            SiteAd(
                site=site,
                text=text,
                sequence=sequence,
                cur_matches=load.unfinished_nodes if counts_jobs else load.dags,
                published_at=now,
                expires_at=now + AD_LIFETIME,
            )
        )
    SiteAd.objects.bulk_create(
        ads,
        update_conflicts=True,
        unique_fields=["site"],
        update_fields=["text", "sequence", "cur_matches", "published_at", "expires_at"],
    )
    return len(ads)


def _queues_by_site() -> dict[int, list[Queue]]:
    """Queues that are switched on, by site id. One query."""
    queues: dict[int, list[Queue]] = defaultdict(list)
    for queue in configured_queues():
        queues[queue.site_id].append(queue)
    return queues


def _next_downtimes(now: datetime) -> dict[int, Downtime]:
    """The next downtime of each site that has one, or that which has begun. One query."""
    downtimes: dict[int, Downtime] = {}
    for downtime in downtimes_from(now):
        downtimes.setdefault(downtime.site_id, downtime)
    return downtimes


def _with_figures(
    ad: Mapping[str, Attribute],
    figures: Mapping[int, QueueFigures],
    queues: Iterable[Queue],
    downtime: Downtime | None,
    storages: Sequence[str],
) -> str:
    """Text of the ad with the figures for which it leaves room."""
    text = _rendered(ad)
    given = {name.lower() for name in ad}
    room = MAX_AD_BYTES - len(text.encode()) - 1
    found = figures_of(queues, figures, downtime, room=room, storages=storages)
    # They are literals on one line each, and need not be parsed to be printed.
    lines = [f"{name} = {value}" for name, value in found.items() if name.lower() not in given]
    return "\n".join(sorted([*text.split("\n"), *lines], key=str.lower))
