"""Settings of the bucket that keeps contents of files in place of a folder."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from portal.config import env

_PREFIX = "PILOTAGE_BLOBS_S3_PREFIX"
_WORD = re.compile(r"[0-9A-Za-z_.-]{1,100}")
#: Beginnings of the keys that each installation has behind its prefix.
_OWN = re.compile("[0-9a-f]{2}|uploads|sent|trials|streams|pilot-logs|self-test")


def blobs_s3() -> dict[str, Any]:
    """Value of `PILOTAGE["BLOBS_S3"]`; without a bucket's name nothing of it counts."""
    bucket = env.text("PILOTAGE_BLOBS_S3_BUCKET", "")
    needed = None if bucket else ""
    return {
        "BUCKET": bucket,
        "URL": env.text("PILOTAGE_BLOBS_S3_URL", needed),
        "PREFIX": _prefix(),
        "REGION": env.text("PILOTAGE_BLOBS_S3_REGION", "us-east-1"),
        "KEY_ID": env.text("PILOTAGE_BLOBS_S3_KEY_ID", needed),
        "SECRET": env.text("PILOTAGE_BLOBS_S3_SECRET", needed),
        "LINKS_URL": env.text("PILOTAGE_BLOBS_S3_LINKS_URL", ""),
        "LINK_S": env.number("PILOTAGE_BLOBS_S3_LINK_S", 900),
        "SERVES_PEOPLE": env.flag("PILOTAGE_BLOBS_S3_SERVES_PEOPLE", True),
    }


def _prefix() -> str:
    """Prefix of all keys, which no other installation may take for a folder of its own."""
    prefix = env.text(_PREFIX, "").strip("/")
    for word in prefix.split("/") if prefix else ():
        if not _WORD.fullmatch(word) or word in {".", ".."}:
            raise ImproperlyConfigured(
                f"{_PREFIX} must be words of letters, digits, _, . and -, with slashes between "
                f"them, not {prefix!r}."
            )
        if _OWN.fullmatch(word):
            raise ImproperlyConfigured(
                f"{_PREFIX} may not have the word {word!r}: an installation in the same bucket "
                "has a folder of this name, and would remove what is not its own there."
            )
    return prefix
