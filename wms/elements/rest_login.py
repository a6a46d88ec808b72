"""Login of `ArcElement` and `KubernetesElement`: what `rest_helper` is told of who we are."""

from __future__ import annotations

from collections.abc import Mapping

from wms.elements.logins import Login, LoginKind

#: Settings of a queue that name files, and words for texts in their place.
_FILES = ("certificate_file", "key_file", "token_file")
_TEXTS = ("token", "certificate")


def who_we_are(files: Mapping[str, str], login: Login | None) -> dict[str, str]:
    """Return the files of the settings, or the text of the login, which is in no file."""
    nothing = dict.fromkeys((*_FILES, *_TEXTS), "")
    if login is None:
        return nothing | {name: files[name] for name in _FILES}
    named = "token" if login.kind == LoginKind.BEARER_TOKEN else "certificate"
    return nothing | {named: login.secret}
