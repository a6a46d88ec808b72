"""Credentials of users for the endpoints of their transfers: set, listed, deleted, and shown once.

What is secret is sealed with the keys of the pilots' credentials, and leaves the database for the
transfer that needs it alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from wms.core.actors import Actor
from wms.core.audit import record_action
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Finding, InvalidInput, NotFound, NotPermitted
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.elements.logins import LoginKind
from wms.pilots.credentials.sealing import seal, unseal
from wms.pilots.credentials.secrets import read_secret
from wms.pilots.credentials.services import SEALING_LOCK
from wms.placement.addresses import is_host
from wms.placement.credential_models import PlacementCredential
from wms.placement.modules.found import found_modules
from wms.placement.modules.ports import port_of
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed
from wms.placement.modules.sftp import SSH_SCHEMES

_WITHOUT_TOKENS = frozenset({"ftp", "ftps", "s3"})

_PRINTABLE = re.compile(r"[\x20-\x7e]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")
#: Of `ssh`, which must not take it for an option.
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}")
_MOST_CHARACTERS = 8192


@dataclass(frozen=True, slots=True)
class NewCredential:
    """Credential to be set for an endpoint such as `davs://host`.

    User and password, or a token; of `sftp:` and `scp:` the user and a private key.
    """

    endpoint: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


def credential_schemes() -> list[str]:
    """The schemes whose endpoints may ask for a credential: those of all modules but `file`."""
    return sorted(found_modules().schemes - {"file"})


def own_credentials(user: User) -> QuerySet[PlacementCredential]:
    """The credentials of a user, without what is secret."""
    return PlacementCredential.objects.filter(owner=user).defer("sealed")


@sensitive_variables("new", "sealed", "secret")
def set_credential(
    new: NewCredential, *, owner: User, actor: Actor, reason: str = ""
) -> tuple[PlacementCredential, bool]:
    """Store the owner's credential for an endpoint in place of the one there is, if any.

    Also returns whether it is the first. Raises NotPermitted, and InvalidInput with every fault.
    """
    _require_own(actor, owner)
    scheme, host, port = _endpoint(new.endpoint)
    secret = _checked(new, scheme)
    kind = _kind_of(new)
    with transaction.atomic():
        # The keys do not change meanwhile.
        wait_for_locks([SEALING_LOCK])
        sealed = seal(secret)
        stored, is_new = PlacementCredential.objects.update_or_create(
            owner=owner,
            scheme=scheme,
            host=host,
            port=port,
            defaults={
                "kind": kind, "user": new.user, "sealed": sealed, "replaced_at": timezone.now(),
            },
            create_defaults={"kind": kind, "user": new.user, "sealed": sealed},
        )  # fmt: skip
        record_action(
            "set placement credential",
            target=f"placement credential {stored} of {owner}",
            actor=actor,
            reason=reason,
            facts={"kind": kind.value, "user": new.user},
        )
    return stored, is_new


@transaction.atomic
def delete_credential(credential_id: int, *, owner: User, actor: Actor, reason: str = "") -> None:
    """Forget one of the owner's credentials. Raises NotPermitted and NotFound."""
    _require_own(actor, owner)
    stored = own_credentials(owner).filter(pk=credential_id).first()
    if stored is None:
        raise NotFound(f"You have no credential {credential_id} for placements.")
    record_action(
        "delete placement credential",
        target=f"placement credential {stored} of {owner}",
        actor=actor,
        reason=reason,
    )
    stored.delete()


@sensitive_variables()
def credential_for(
    owner_id: int, scheme: str, host: str, port: int, *, limited_to: int | None
) -> Credential | None:
    """Credential that the owner has stored for an endpoint, opened.

    Credentials are of no frontend: for what is limited to one, one that is stored is refused.
    Raises NoKey, and ModuleFailed where it is refused.
    """
    stored = PlacementCredential.objects.filter(
        owner=owner_id, scheme=scheme, host=host, port=port
    ).first()
    if stored is None:
        return None
    if limited_to is not None:
        raise ModuleFailed(
            FAILED,
            f"the credential of its owner for {scheme}://{host} is not given to what was submitted "
            "by a token that is limited to a frontend",
        )
    secret = unseal(stored.sealed)
    if stored.kind == PlacementCredential.Kind.TOKEN:
        return Credential(token=secret)
    if stored.kind == PlacementCredential.Kind.KEY:
        return Credential(user=stored.user, key=secret)
    return Credential(user=stored.user, secret=secret)


def _require_own(actor: Actor, owner: User) -> None:
    require_role(actor, Role.USER, "keep credentials for placements")
    if not actor.is_system and actor.user != owner:
        raise NotPermitted("Credentials for placements are set by their owners alone.")


def _endpoint(text: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises InvalidInput."""
    schemes = credential_schemes()
    fault = (
        f"must be an endpoint such as davs://storage.example.org; schemes are {', '.join(schemes)}"
    )
    try:
        parts = urlsplit(text.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise InvalidInput.of(fault, field="endpoint") from None
    if parts.scheme not in schemes or not is_host(host) or port == 0:
        raise InvalidInput.of(fault, field="endpoint")
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidInput.of("must be scheme, host and port alone", field="endpoint")
    return parts.scheme, host, port or port_of(parts.scheme)


def _kind_of(new: NewCredential) -> PlacementCredential.Kind:
    if new.token:
        return PlacementCredential.Kind.TOKEN
    return PlacementCredential.Kind.KEY if new.key else PlacementCredential.Kind.PASSWORD


@sensitive_variables()
def _checked(new: NewCredential, scheme: str) -> str:
    """Secret part of it, as it is stored. Raises InvalidInput with every fault."""
    if scheme in SSH_SCHEMES:
        return _checked_key(new, scheme)
    if new.key:
        raise InvalidInput.of(f"{scheme} knows no keys", field="key")
    findings = []
    if bool(new.token) == bool(new.user or new.password):
        findings.append(Finding("give either a token, or user and password", field="token"))
    elif new.token and scheme in _WITHOUT_TOKENS:
        findings.append(Finding(f"{scheme} knows no tokens", field="token"))
    elif new.token and not _fits(_TOKEN, new.token):
        findings.append(Finding("must be ASCII without spaces", field="token"))
    elif not new.token:
        findings += _faults_of_pair(new, scheme)
    if findings:
        raise InvalidInput(findings)
    return new.token or new.password


@sensitive_variables()
def _checked_key(new: NewCredential, scheme: str) -> str:
    findings = [
        Finding(f"{scheme} takes a user and a private key alone", field=name)
        for name, given in (("password", new.password), ("token", new.token))
        if given
    ]
    if not _ACCOUNT.fullmatch(new.user):
        findings.append(Finding("must be the name of an account", field="user"))
    secret = ""
    try:
        secret = read_secret(LoginKind.SSH_KEY, new.key).secret
    except InvalidInput as error:
        findings.append(Finding(error.findings[0].message, field="key"))
    if findings:
        raise InvalidInput(findings)
    return secret


@sensitive_variables()
def _faults_of_pair(new: NewCredential, scheme: str) -> list[Finding]:
    findings = []
    # Keys of S3 stores sign, and are not sent with a password behind a colon.
    if not _is_user(new.user.replace(":", "_") if scheme == "s3" else new.user):
        findings.append(Finding("must be printable ASCII without colons", field="user"))
    if not _fits(_PRINTABLE, new.password):
        findings.append(Finding("must be printable ASCII", field="password"))
    return findings


def _is_user(text: str) -> bool:
    return ":" not in text and len(text) <= 255 and _fits(_PRINTABLE, text)


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    return len(text) <= _MOST_CHARACTERS and pattern.fullmatch(text) is not None
