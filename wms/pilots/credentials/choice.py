"""Choice of the credential that a frontend's pilots are submitted with at a queue, or why of none.

Also the element (batch system adapter) of a queue that shows a credential.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from wms.core.errors import PilotageError
from wms.elements.logins import BadLogin, Login, LoginKind
from wms.elements.protocol import Element
from wms.elements.registry import element_for, login_refusal
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.sealing import unseal
from wms.sites.models import Queue
from wms.sites.selectors import element_of, element_settings

#: The time of the last use is written no more often.
_USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The credential of an entry; without an id the queue's own settings are used.

    Where `refusal` is set, nothing may be submitted, not with other credentials either.
    """

    credential_id: int | None = None
    refusal: str = ""


class Choices:
    """Credentials of all entries at one moment, without what is secret. One query."""

    def __init__(self, now: datetime, credentials: Iterable[Credential] | None = None) -> None:
        rows = stored() if credentials is None else credentials
        self._now = now
        self._at_queue: dict[tuple[int | None, int | None], Credential] = {}
        self._at_site: dict[tuple[int | None, int | None], list[Credential]] = {}
        for row in rows:
            if row.queue_id is not None:
                self._at_queue[row.queue_id, row.frontend_id] = row
            else:
                self._at_site.setdefault((row.site_id, row.frontend_id), []).append(row)

    def of(self, queue: Queue, frontend_id: int | None) -> Chosen:
        """The credential with which a frontend's pilots are submitted to a queue now."""
        own = self._at_queue.get((queue.pk, frontend_id))
        if own is None:
            at_site = self._at_site.get((queue.site_id, frontend_id), ())
            # Of several kinds at a site, those are meant that the queue takes.
            own = next((each for each in at_site if not unfit(each, queue)), None)
        if own is None:
            return Chosen()
        return Chosen(own.pk, self._refusal(own, queue))

    def _refusal(self, credential: Credential, queue: Queue) -> str:
        why = unfit(credential, queue)
        if not credential.is_enabled:
            why = "it is switched off"
        elif credential.expires_at is not None and credential.expires_at <= self._now:
            why = f"it expired at {credential.expires_at:%Y-%m-%d %H:%M} UTC"
        return f"no pilot is submitted with the credential {credential.name}: {why}" if why else ""


def stored() -> Iterable[Credential]:
    """All credentials in a fixed order, without what is secret."""
    return Credential.objects.defer("sealed").order_by("name")


def chosen_at(queue: Queue, frontend_id: int | None, now: datetime) -> Chosen:
    """The credential with which a frontend's pilots are submitted to one queue now. One query."""
    here = Q(queue=queue.pk) | Q(site=queue.site_id)
    rows = Credential.objects.defer("sealed").filter(here, frontend=frontend_id).order_by("name")
    return Choices(now, rows).of(queue, frontend_id)


def unfit(credential: Credential, queue: Queue) -> str:
    """Why a queue's element cannot use the credential; empty if it can."""
    return login_refusal(queue.element, queue.settings, LoginKind(credential.kind))


@sensitive_variables("login")
def element_with(queue: Queue, credential_id: int | None) -> Element:
    """The adapter to the queue's batch system that shows it a credential, or the queue's own.

    Expired ones are shown, too: what was submitted with one is asked for and removed as long as the
    batch system lets it. Raises BadSettings, or BadLogin when it cannot be unsealed or used.
    """
    if credential_id is None:
        return element_of(queue)
    credential = Credential.objects.filter(pk=credential_id).first()
    if credential is None:
        raise BadLogin(f"there is no credential {credential_id} any more")
    try:
        login = Login(
            LoginKind(credential.kind),
            unseal(credential.sealed),
            credential.fingerprint,
            credential.account,
            credential.directory,
        )
    except PilotageError as error:
        raise BadLogin(f"credential {credential.name}: {error}") from None
    _note_use(credential)
    return element_for(queue.element, element_settings(queue), login)


def _note_use(credential: Credential) -> None:
    now = timezone.now()
    unnoted = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_NOTED_EVERY)
    last = credential.last_used_at
    if last is None or last < now - _USE_NOTED_EVERY:
        Credential.objects.filter(unnoted, pk=credential.pk).update(last_used_at=now)
