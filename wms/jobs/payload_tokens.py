"""Bearer tokens of payloads: what a job's owner may read of this job, while its attempt is open.

A token is not stored: it is signed, with its end, over the attempt and the key of its claim. So it
ends with its attempt, however that ends, and at its own time where nobody is left to end that. A
claim whose answer was lost is simply given another one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from wms.core.errors import AccountOff, TokenExpired, TokenUnknown
from wms.core.keyed_digests import is_keyed_digest, keyed_digest
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.jobs.directives import Directives
from wms.jobs.models import Attempt, Job

#: Pilots ask for another one after half of this; one that is lost leaves a token for no longer.
LIFETIME = timedelta(minutes=20)
BEGINNING = "plj_"
_SALT = "wms.jobs.payload_token"
_FORM = re.compile(r"plj_([0-9]{1,18})_([0-9]{1,5})_([0-9]{1,11})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class PayloadToken:
    """A token for one attempt."""

    text: str
    lifetime_s: int


@dataclass(frozen=True, slots=True)
class PayloadCaller:
    """Owner of a job as its payload calls, without the powers of a role, and the job."""

    user: User
    job: Job


def token_for(attempt: Attempt, *, now: datetime) -> PayloadToken | None:
    """Token for an open attempt; None where its job asks for none. Reads job and description."""
    if attempt.outcome or not Directives.of(attempt.job.directives).has_token:
        return None
    ends_at = int((now + LIFETIME).timestamp())
    signature = keyed_digest(_SALT, _about(attempt, ends_at))
    text = f"{BEGINNING}{attempt.job_id}_{attempt.number}_{ends_at}_{signature}"
    return PayloadToken(text, int(LIFETIME.total_seconds()))


def authenticate_payload(text: str, *, now: datetime) -> PayloadCaller:
    """Caller with this token.

    Raises TokenUnknown, AccountOff, and TokenExpired, also once the attempt is over.
    """
    parts = _FORM.fullmatch(text)
    if parts is None:
        raise TokenUnknown("This is no token of a payload.")
    job_id, number, ends_at = (int(part) for part in parts.groups()[:3])
    attempt = (
        Attempt.objects.filter(job_id=job_id, number=number, outcome="")
        .select_related("job__description", "job__owner", "job__workspace")
        .first()
    )
    is_good = (
        attempt is not None
        and is_keyed_digest(_SALT, _about(attempt, ends_at), parts[4])
        and datetime.fromtimestamp(ends_at, UTC) > now
    )
    if attempt is None or not is_good:
        raise TokenExpired("The token is unknown or expired, or its attempt is over.")
    owner: User = attempt.job.owner
    if not owner.is_active:
        raise AccountOff("The account of this token is switched off.")
    limited = owner.within(attempt.job.workspace.limited_to)
    return PayloadCaller(_without_powers(limited), attempt.job)


def _without_powers(owner: User) -> User:
    """The owner in memory as an ordinary user: a payload has none of the powers of a role."""
    if has_role(owner, Role.USER):
        owner.role = Role.USER
    owner.is_superuser = owner.is_staff = False
    return owner


def _about(attempt: Attempt, ends_at: int) -> str:
    return f"{attempt.job_id} {attempt.number} {ends_at} {attempt.claim_key}"
