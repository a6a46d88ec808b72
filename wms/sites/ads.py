"""The ad of a site: composed from its configuration, checked before it is stored, published."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import classad2
from django.db import transaction

from matching import environments
from matching.adcost import check_cost
from matching.classads import AdError, build_ad, parse_expression, parse_lines, render_lines
from wms.core.errors import Finding, InvalidInput
from wms.sites.models import Site, SiteAd
from wms.sites.selectors import enabled_sites

#: An ad that is not renewed within this time is not matched (HTCondor's default for ClassAds).
AD_LIFETIME = timedelta(seconds=900)
#: Attributes that Pilotage computes itself.
RESERVED = frozenset(
    name.lower()
    for name in (
        "MyType",
        "TargetType",
        "Name",
        "CurMatches",
        "MaxMatches",
        "UpdateSequenceNumber",
        "WantAdRevaluate",
        "SiteEnvironment",
        "Requirements",
        "Rank",
    )
)


def check_site(site: Site) -> None:
    """Raise InvalidInput with every fault of the site's expressions, by field and line."""
    findings = [
        *_expression_faults("requirements", site.requirements),
        *_expression_faults("rank", site.rank),
        *_environment_faults(site.environment),
        *_attribute_faults(site.attributes),
    ]
    findings = findings or _cost_faults(site)
    if findings:
        raise InvalidInput(findings)


def _expression_faults(field: str, text: str) -> list[Finding]:
    try:
        parse_expression(text)
    except AdError as error:
        return [Finding(error.message, field=field)]
    return []


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
        return [Finding(error.message, field="attributes", line=error.line)]
    return [
        Finding(f"{name} is set by Pilotage; use the field made for it", field="attributes")
        for name in attributes
        if name.lower() in RESERVED
    ]


def _expressions(site: Site) -> dict[str, str]:
    return {
        **parse_lines(site.attributes),
        "Requirements": site.requirements,
        "Rank": site.rank,
    }


def _cost_faults(site: Site) -> list[Finding]:
    try:
        check_cost(_expressions(site))
    except AdError as error:
        name = error.attribute.lower()
        field = name if name in {"requirements", "rank"} else "attributes"
        return [Finding(error.message, field=field)]
    return []


def compose_ad(site: Site, *, cur_matches: int, sequence: int) -> classad2.ClassAd:
    """The site's ad as it is published (attributes after the USCMS report on matchmaking)."""
    values = {
        "MyType": "Machine",
        "TargetType": "Job",
        "Name": site.name,
        "UpdateSequenceNumber": sequence,
        "WantAdRevaluate": True,
        "CurMatches": cur_matches,
        "MaxMatches": site.max_matches,
        "SiteEnvironment": environments.render_semicolons(
            environments.parse_lines(site.environment)
        ),
    }
    return build_ad(_expressions(site), values)


def published_ad(ad: SiteAd) -> classad2.ClassAd:
    """A stored ad as an object."""
    return build_ad(parse_lines(ad.text))


@transaction.atomic
def publish_ads(cur_matches_by_site: Mapping[int, int], *, now: datetime) -> int:
    """Publish the ads of all sites that are on, with larger sequence numbers; return how many.

    A site that cannot be composed (its configuration was changed behind the admin's back) is left
    out: its old ad expires.
    """
    sites = list(enabled_sites())
    old = {
        ad.site_id: ad.sequence for ad in SiteAd.objects.filter(site__in=sites).select_for_update()
    }
    ads = []
    for site in sites:
        sequence = max(old.get(site.pk, 0) + 1, int(now.timestamp()))
        count = cur_matches_by_site.get(site.pk, 0)
        try:
            text = render_lines(compose_ad(site, cur_matches=count, sequence=sequence))
        except (AdError, environments.BadEnvironment):
            continue
        ads.append(
            SiteAd(
                site=site,
                text=text,
                sequence=sequence,
                cur_matches=count,
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
