"""Transfers by the pilots of jobs: where URLs lead, and the credentials that pilots get for them.

A credential is that of the job's owner for the endpoint; it goes to the pilot with the job, for
this attempt, and is written down nowhere. Of an S3 store the pilot gets signed links instead.
Logical names lead to the replicas near the pilot's site first.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from wms.core.special_networks import special_networks
from wms.jobs.directives import Directives
from wms.jobs.expressions import success_code
from wms.jobs.models import Attempt
from wms.jobs.states import InputCause
from wms.pilots.credentials.sealing import NoKey
from wms.pilots.protocol.url_transfers import (
    CannotResolve,
    FetchedInput,
    NoReplica,
    Source,
    TransferRules,
    Transfers,
)
from wms.placement.addresses import scheme_of, with_scheme
from wms.placement.catalogue.locating import inputs_of
from wms.placement.catalogue.names import is_logical
from wms.placement.catalogue.resolving import replica_urls
from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.credentials import credential_for
from wms.placement.modules.ports import port_of
from wms.placement.modules.protocol import Credential, ModuleFailed
from wms.placement.modules.s3_links import Link, link_to
from wms.sites.models import Site

#: So long a link is good beyond the time that its job may take: for tries, and for other files.
_SPARE_S: Final = 6 * 3600
#: Schemes of replicas that pilots read: WebDAV is HTTP to who reads.
_AS_HTTP: Final = {"dav": "http", "davs": "https"}
_READ_BY_PILOTS: Final = frozenset({"http", "https", "s3", *_AS_HTTP})
_MOST_SOURCES: Final = 8


def resolve_transfers(attempt: Attempt, directives: Directives) -> Transfers:
    """Transfers that the pilot of an attempt carries out itself. Raises CannotResolve.

    One query for each endpoint that is named.
    """
    job, conf = attempt.job, placement_conf()
    found = _Endpoints(job.owner_id, job.workspace.limited_to, conf, timezone.now())
    inputs = {
        name: _logical(attempt, url, found)
        if is_logical(url)
        else FetchedInput((found.source(url, "GET", _SPARE_S),))
        for name, url in directives.input_urls.items()
    }
    until_end_s = job.wall_limit_s + _SPARE_S
    outputs = {
        name: found.source(url, "PUT", until_end_s) for name, url in directives.output_urls.items()
    }
    return Transfers(inputs, outputs, success_code(job), _rules(conf))


def _logical(attempt: Attempt, url: str, found: _Endpoints) -> FetchedInput:
    """Addresses of a logical file for a pilot: near its site first. Raises CannotResolve."""
    sites = Site.objects.filter(name=attempt.site_name).values_list("pk", flat=True)
    owner = attempt.job.owner.within(attempt.job.workspace.limited_to)
    replicas = replica_urls(url, owner=owner, site_id=sites.first(), schemes=_READ_BY_PILOTS)
    if replicas is None or not replicas.urls:
        located = inputs_of(attempt.job)
        if located is not None and located.cause is InputCause.MISSING:
            raise NoReplica(located.told)
        raise CannotResolve(f"there is no replica of {url} that pilots can read")
    urls = replicas.urls[:_MOST_SOURCES]
    return FetchedInput([found.source(each, "GET", _SPARE_S) for each in urls], replicas.sha256)


def _rules(conf: PlacementConf) -> TransferRules:
    return TransferRules(
        limit_s=conf.limit_s,
        stall_s=conf.stall_s,
        file_bytes=conf.file_bytes,
        refused=special_networks(),
        allowed=conf.allowed,
    )


class _Endpoints:
    """The credentials of an owner by endpoint, each looked for once."""

    def __init__(
        self, owner_id: int, limited_to: int | None, conf: PlacementConf, now: datetime
    ) -> None:
        self._owner_id = owner_id
        self._limited_to = limited_to
        self._conf = conf
        self._now = now
        self._known: dict[tuple[str, str, int], Credential | None] = {}

    @sensitive_variables()
    def source(self, url: str, method: str, lifetime_s: int) -> Source:
        """Link and headers that a pilot needs for a URL. Raises CannotResolve."""
        scheme, parts = scheme_of(url), urlsplit(url)
        host = (parts.hostname or "").lower()
        credential = self._credential(scheme, host, parts.port or port_of(scheme))
        if scheme != "s3":
            return Source(_over_http(url), _header(credential))
        try:
            link = Link(method, url, lifetime_s)
            return Source(link_to(link, credential, self._conf, now=self._now))
        except ModuleFailed as error:
            raise CannotResolve(f"{url}: {error.message}") from error

    @sensitive_variables()
    def _credential(self, scheme: str, host: str, port: int) -> Credential | None:
        place = scheme, host, port
        if place not in self._known:
            try:
                self._known[place] = credential_for(
                    self._owner_id, *place, limited_to=self._limited_to
                )
            except ModuleFailed as error:
                raise CannotResolve(error.message) from error
            except NoKey as error:
                raise CannotResolve(
                    f"the credential of its owner for {scheme}://{host} cannot be opened"
                ) from error
        return self._known[place]


def _over_http(url: str) -> str:
    """The URL as pilots know it; both schemes have the same ports."""
    scheme = scheme_of(url)
    return with_scheme(url, _AS_HTTP.get(scheme, scheme))


@sensitive_variables()
def _header(given: Credential | None) -> str:
    """The header that shows a credential; empty without one."""
    if given is None:
        return ""
    if given.token:
        return f"Bearer {given.token}"
    pair = base64.b64encode(f"{given.user}:{given.secret}".encode()).decode()
    return f"Basic {pair}"
