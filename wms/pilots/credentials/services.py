"""Services on credentials of frontends: check, save, delete. Permitted and audited.

The trail tells fingerprints, never what is secret.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from matching.plurals import counted
from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.database.saving import check_row, check_same_name, save_audited
from wms.core.errors import Conflict, Finding, InvalidInput
from wms.core.models import Role
from wms.core.policy import require_role
from wms.elements.logins import LoginKind
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.choice import unfit
from wms.pilots.credentials.sealing import NoKey, read_keys, seal
from wms.pilots.credentials.secrets import Material, read_secret
from wms.pilots.models import Pilot
from wms.pilots.monitoring.adoption import REMINDED_FOR
from wms.pilots.states import ALIVE, PilotState
from wms.sites.frontends.entries import is_private
from wms.sites.models import Queue

_PERMISSION = "configure credentials of frontends"
#: Whoever seals waits for this, so that no key goes while something is sealed with it.
SEALING_LOCK = "credential-keys"
_AUDITED = (
    "name", "frontend_id", "queue_id", "site_id", "kind", "account", "directory", "is_enabled",
    "fingerprint", "subject",
)  # fmt: skip
#: What pilots that are under way are found by.
_FIXED = ("frontend_id", "queue_id", "site_id", "kind", "account", "directory")
_FIELDS = {"frontend_id": "frontend", "queue_id": "queue", "site_id": "site"}


@sensitive_variables("material")
def check_credential(credential: Credential) -> None:
    """Raise InvalidInput with the faults of a credential and its new secret, by field.

    Sets what may be shown of the secret: fingerprint, subject, time of expiry.
    """
    _checked(credential, timezone.now())


@sensitive_variables("material")
def _checked(credential: Credential, now: datetime) -> Material | None:
    stored = Credential.objects.filter(pk=credential.pk).first() if credential.pk else None
    findings = _findings_of_place(credential)
    material = None
    if credential.kind in {each.value for each in LoginKind}:
        findings += _findings_of_kind(credential)
        if credential.new_secret.strip():
            material, faults = _read(credential)
            findings += faults
        elif stored is None or stored.kind != credential.kind:
            findings.append(Finding("is missing: paste it here", field="secret"))
    _set_shown(credential, stored, material)
    if credential.expires_at is not None and credential.expires_at <= now and not findings:
        field = "secret" if material and _own_end(material, now) else "valid_until"
        when = f"{credential.expires_at:%Y-%m-%d %H:%M} UTC"
        # One that has expired may still be switched off, or moved.
        if stored is None or stored.expires_at != credential.expires_at:
            findings.append(Finding(f"has expired at {when}", field=field))
    if stored is not None:
        findings += _findings_of_use(credential, stored, now)
    _raise_all(credential, findings)
    return material


def _raise_all(credential: Credential, findings: list[Finding]) -> None:
    """Raise InvalidInput with these findings and those of the model."""
    shown = {"sealed", "fingerprint"}
    try:
        credential.sealed = credential.sealed or "-"
        check_row(credential)
        check_same_name(credential)
    except InvalidInput as error:
        told = {finding.field for finding in findings}
        findings += [
            each for each in error.findings if each.field not in shown | told and each.field
        ] or ([] if findings else [each for each in error.findings if each.field not in shown])
    finally:
        credential.sealed = "" if credential.sealed == "-" else credential.sealed
    if findings:
        raise InvalidInput(findings)


@sensitive_variables("material")
def _read(credential: Credential) -> tuple[Material | None, list[Finding]]:
    try:
        material = read_secret(LoginKind(credential.kind), credential.new_secret)
        read_keys()
    except InvalidInput as error:
        return None, list(error.findings)
    except NoKey as error:
        return None, [Finding(str(error), field="secret")]
    return material, []


@sensitive_variables("material")
def _set_shown(
    credential: Credential, stored: Credential | None, material: Material | None
) -> None:
    if material is not None:
        credential.fingerprint, credential.subject = material.fingerprint, material.subject
        credential.told_until = material.expires_at
    elif stored is not None:
        credential.fingerprint, credential.subject = stored.fingerprint, stored.subject
        credential.told_until = stored.told_until
    ends = [each for each in (credential.valid_until, credential.told_until) if each is not None]
    credential.expires_at = min(ends, default=None)


def _own_end(material: Material, now: datetime) -> bool:
    return material.expires_at is not None and material.expires_at <= now


def _findings_of_place(credential: Credential) -> list[Finding]:
    queue, site = credential.queue, credential.site
    if (queue is None) == (site is None):
        message = "name a queue, or a site" if queue is None else "not beside a queue"
        return [Finding(message, field="queue" if queue is None else "site")]
    if queue is not None and is_private(queue) and credential.frontend_id is not None:
        return [Finding("its pilots are private, and of no frontend", field="queue")]
    return []


def _findings_of_kind(credential: Credential) -> list[Finding]:
    """Findings of the kind, for the queue or each queue of the site, and of the account."""
    findings = []
    queues: Collection[Queue] = (
        [credential.queue]
        if credential.queue is not None
        else Queue.objects.filter(site=credential.site_id)
        if credential.site_id is not None
        else []
    )
    refusals = [unfit(credential, queue) for queue in queues]
    if refusals and all(refusals):
        findings.append(Finding(refusals[0], field="kind"))
    elif credential.site_id is not None and not refusals:
        findings.append(Finding("the site has no queue", field="site"))
    if credential.kind != LoginKind.SSH_KEY:
        findings += [
            Finding("is of an SSH key only", field=name)
            for name in ("account", "directory")
            if getattr(credential, name)
        ]
    return findings


def _findings_of_use(credential: Credential, stored: Credential, now: datetime) -> list[Finding]:
    """What may not change as long as pilots are asked for and removed with it."""
    changed = [name for name in _FIXED if getattr(stored, name) != getattr(credential, name)]
    if stored.subject != credential.subject and not changed:
        changed = ["secret"]
    count = pilots_in_use(credential, now) if changed else 0
    if not count:
        return []
    pilots = counted(count, "pilot that has not ended was", "pilots that have not ended were")
    why = f"{pilots} submitted with it, which nobody would find then"
    return [Finding(why, field=_FIELDS.get(name, name)) for name in changed]


def pilots_in_use(credential: Credential, now: datetime) -> int:
    """Pilots of which the batch system may still have to be asked with the credential."""
    removed = Q(state=PilotState.REMOVED, is_forgotten=False, ended_at__gt=now - REMINDED_FOR)
    unsettled = removed & Q(missing_polls=0) & ~Q(batch_state__in=["done", "failed", "cancelled"])
    of_it = Pilot.objects.filter(Q(state__in=ALIVE) | unsettled, credential=credential.pk)
    return of_it.count()


@transaction.atomic
@sensitive_variables("material", "sealed")
def save_credential(credential: Credential, *, actor: Actor, reason: str = "") -> None:
    """Check and store a credential; `new_secret` takes the place of its secret, if there is one.

    It counts from the next turn on, for pilots that are under way, too. Raises NotPermitted or
    InvalidInput.
    """
    require_role(actor, Role.OPERATOR, _PERMISSION)
    wait_for_locks([SEALING_LOCK])
    now = timezone.now()
    stored = Credential.objects.select_for_update(of=("self",)).filter(pk=credential.pk).first()
    material = _checked(credential, now)
    if material is not None:
        try:
            sealed = seal(material.secret)
        except NoKey as error:
            raise InvalidInput.of(str(error), field="secret") from None
        credential.sealed, credential.replaced_at = sealed, now
    facts = {
        name: [_told(getattr(stored, name, None)), _told(getattr(credential, name))]
        for name in ("valid_until", "expires_at")
        if getattr(stored, name, None) != getattr(credential, name)
    }
    save_audited(
        credential, target=target_of(credential), actor=actor, reason=reason, fields=_AUDITED,
        facts=facts,
    )  # fmt: skip
    columns = ["valid_until", "told_until", "expires_at"]
    credential.save(update_fields=[*columns, "sealed", "replaced_at"] if material else columns)
    credential.new_secret = ""


def _told(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat(timespec="seconds")


def check_deletion(credential: Credential) -> None:
    """Raise Conflict while pilots that have not ended were submitted with the credential."""
    count = pilots_in_use(credential, timezone.now())
    if count:
        pilots = counted(count, "pilot that has not ended was", "pilots that have not ended were")
        raise Conflict(
            f"{pilots} submitted with the credential {credential.name}: without it nobody could "
            "ask for or remove them. Switch it off, and delete it when they have ended."
        )


@transaction.atomic
def delete_credential(credential: Credential, *, actor: Actor, reason: str = "") -> None:
    """Delete a credential that no pilot needs any more. Raises NotPermitted or Conflict.

    What the batch system keeps of pilots that have ended stays there.
    """
    require_role(actor, Role.OPERATOR, _PERMISSION)
    Credential.objects.select_for_update(of=("self",)).filter(pk=credential.pk).first()
    check_deletion(credential)
    record_action(
        "delete credential",
        target=target_of(credential),
        actor=actor,
        reason=reason,
        facts={"kind": [credential.kind, None], "fingerprint": [credential.fingerprint, None]},
    )
    # Nobody is to be asked for them with another credential.
    Pilot.objects.filter(credential=credential.pk).update(credential=None, is_forgotten=True)
    credential.delete()


def target_of(credential: Credential) -> str:
    """Name of a credential in the audit trail."""
    return f"credential {credential.name}"
