"""Transfers by the pilots of jobs: where URLs lead, and the credentials that pilots get for them.

A credential is that of the job's owner for the endpoint; it goes to the pilot with the job, for
this attempt, and is written down nowhere.
"""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from django.views.decorators.debug import sensitive_variables

from wms.core.special_networks import special_networks
from wms.jobs.directives import Directives
from wms.jobs.expressions import success_code
from wms.jobs.models import Attempt
from wms.pilots.credentials.sealing import NoKey
from wms.pilots.protocol.url_transfers import CannotResolve, Source, TransferRules, Transfers
from wms.placement.addresses import scheme_of
from wms.placement.conf import PlacementConf, placement_conf
from wms.placement.credentials import PORTS, credential_for


def resolve_transfers(attempt: Attempt, directives: Directives) -> Transfers:
    """What the pilot of an attempt moves itself. Raises CannotResolve.

    One query for each endpoint that is named.
    """
    found = _Endpoints(attempt.job.owner_id)
    inputs = {
        name: (Source(url, found.authorization(url)),)
        for name, url in directives.input_urls.items()
    }
    outputs = {
        name: Source(url, found.authorization(url)) for name, url in directives.output_urls.items()
    }
    return Transfers(inputs, outputs, success_code(attempt.job), _rules(placement_conf()))


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

    def __init__(self, owner_id: int) -> None:
        self._owner_id = owner_id
        self._known: dict[tuple[str, str, int], str] = {}

    def authorization(self, url: str) -> str:
        """The header that shows the owner's credential for a URL; empty without one.

        Raises CannotResolve.
        """
        parts, scheme = urlsplit(url), scheme_of(url)
        place = scheme, (parts.hostname or "").lower(), parts.port or PORTS[scheme]
        if place not in self._known:
            self._known[place] = self._header(*place)
        return self._known[place]

    @sensitive_variables()
    def _header(self, scheme: str, host: str, port: int) -> str:
        try:
            given = credential_for(self._owner_id, scheme, host, port)
        except NoKey as error:
            raise CannotResolve(
                f"the credential of its owner for {scheme}://{host} cannot be opened"
            ) from error
        if given is None:
            return ""
        if given.token:
            return f"Bearer {given.token}"
        pair = base64.b64encode(f"{given.user}:{given.secret}".encode()).decode()
        return f"Basic {pair}"
