"""Secrets of webhooks, and signatures of messages by them (HMAC).

A secret is made of the portal's key and a nonce, so that no table holds it; when that key has
changed it stays the same, and is kept sealed with the key that came after. Also its check value,
which is stored and reveals nothing of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables

from wms.core.key_rotation import Kept, KeyKind, Renewal
from wms.core.keyed_digests import secret_keys
from wms.factories.sealing import BrokenSeal, key_of, seal, unseal
from wms.notices.models import Channel

_SALT = "pilotage.webhooks"


def new_nonce() -> str:
    """A new random nonce, of which a secret is made."""
    return secrets.token_urlsafe(24)


def new_secret(nonce: str) -> str:
    """The secret of a channel with this nonce, by the key of the portal."""
    return _made(nonce, secret_keys()[0])


@sensitive_variables()
def secret_of(channel: Channel) -> str | None:
    """The secret that a channel was given; None where the key that it depends on is gone."""
    if channel.sealed_secret:
        try:
            return unseal(_sealing_keys(), channel.sealed_secret)
        except BrokenSeal:
            return None
    made = (_made(channel.nonce, key) for key in secret_keys())
    return next((each for each in made if check_of(each) == channel.secret_check), None)


@sensitive_variables()
def _sealed_anew(channel: Channel) -> str | None:
    """The secret as it is to be kept beside the nonce, for the first key alone to be needed.

    Empty where the first key makes it of the nonce. None where it is lost.
    """
    first, *_ = secret_keys()
    if check_of(_made(channel.nonce, first)) == channel.secret_check:
        return ""
    own, *_ = _sealing_keys()
    secret = secret_of(channel)
    if secret is None:
        return None
    try:
        unseal([own], channel.sealed_secret)
    except BrokenSeal:
        return seal(own, secret)
    return channel.sealed_secret


def _renew(channels: Sequence[Channel]) -> Renewal:
    changed, lost = [], []
    for channel in channels:
        sealed = _sealed_anew(channel)
        if sealed is None:
            lost.append(f"webhook {channel.pk} of user {channel.user_id}")
        elif sealed != channel.sealed_secret:
            channel.sealed_secret = sealed
            changed.append(channel)
    return Renewal(changed, lost)


WEBHOOK_SECRETS: Final = Kept(
    "secrets of webhooks",
    KeyKind.SECRET,
    lambda: Channel.objects.filter(kind=Channel.Kind.WEBHOOK),
    ("sealed_secret",),
    _renew,
)


def _made(nonce: str, key: str) -> str:
    return "plw_" + salted_hmac(_SALT, nonce, secret=key, algorithm="sha256").hexdigest()


def _sealing_keys() -> list[bytes]:
    return [key_of(key, purpose="webhooks") for key in secret_keys()]


def check_of(secret: str) -> str:
    """Check value of a secret, which reveals nothing of it."""
    return hashlib.sha256(secret.encode()).hexdigest()[:32]


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The HMAC-SHA256 of the time stamp, a full stop, and the body, in hexadecimal digits."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
