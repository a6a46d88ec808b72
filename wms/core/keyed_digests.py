"""Digests keyed by the portal's secret key (HMAC-SHA-256), also by those keys that it had before.

The first key makes them; what a former one made counts as long as that is among the fallbacks. So
the key changes while tokens that were made of it are on their way.
"""

from __future__ import annotations

import hmac

from django.conf import settings
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables


@sensitive_variables()
def secret_keys() -> tuple[str, ...]:
    """The secret keys that count now; the first one signs."""
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def keyed_digest(salt: str, about: str) -> str:
    """The digest of a text under the first key, in hexadecimal digits."""
    return salted_hmac(salt, about, algorithm="sha256").hexdigest()


@sensitive_variables()
def former_digests(salt: str, about: str) -> tuple[str, ...]:
    """The digests of the same text under each key that was the first one before."""
    return tuple(
        salted_hmac(salt, about, secret=key, algorithm="sha256").hexdigest()
        for key in settings.SECRET_KEY_FALLBACKS
    )


def is_keyed_digest(salt: str, about: str, told: str) -> bool:
    """Whether this is the digest of the text under one of the keys; compared in constant time."""
    # As bytes: what was sent may have any characters.
    sent = told.encode(errors="replace")
    if hmac.compare_digest(keyed_digest(salt, about).encode(), sent):
        return True
    return any(hmac.compare_digest(each.encode(), sent) for each in former_digests(salt, about))
