"""Signatures of requests to S3 stores: AWS Signature Version 4, in headers or in the address.

Who has a signed address (presigned URL) needs no key, and learns none.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

#: What stands for the hash of a content that is not signed.
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
EMPTY: Final = hashlib.sha256(b"").hexdigest()
#: The longest time that stores take for an address.
LONGEST_S: Final = 7 * 86_400
_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Key:
    """An access key of a store, and the store's region."""

    key_id: str
    secret: str = field(repr=False)
    region: str


@dataclass(frozen=True, slots=True)
class Request:
    """Signed parts of a request; `path` is encoded, `headers` are those beside `host`."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def quoted_key(key: str) -> str:
    """Key of an object as it stands in a path."""
    return quote(key, safe="/~")


def query_of(values: Mapping[str, str]) -> str:
    """Query in the order and the writing that are signed."""
    return "&".join(
        f"{quote(name, safe='~')}={quote(values[name], safe='~')}" for name in sorted(values)
    )


def signed_headers(
    key: Key | None, request: Request, *, content_sha256: str, now: datetime
) -> dict[str, str]:
    """Headers of a request with those that sign it; without a key only the content's hash."""
    stamp = _stamp(now)
    own = {"x-amz-content-sha256": content_sha256, "x-amz-date": stamp, **request.headers}
    if key is None:
        return own
    signed = {name.lower(): value for name, value in (own | {"host": request.host}).items()}
    names = ";".join(sorted(signed))
    signature = _signature(key, stamp, _canonical(request, request.query, signed, content_sha256))
    return own | {
        "Authorization": f"{_ALGORITHM} Credential={key.key_id}/{_scope(key, stamp)}, "
        f"SignedHeaders={names}, Signature={signature}"
    }


def signed_query(key: Key, request: Request, *, lifetime_s: int, now: datetime) -> str:
    """Query that signs an address, and the headers of the request, for a time."""
    stamp = _stamp(now)
    signed = {name.lower(): value for name, value in request.headers.items()}
    signed["host"] = request.host
    query = {
        **request.query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{key.key_id}/{_scope(key, stamp)}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(min(lifetime_s, LONGEST_S)),
        "X-Amz-SignedHeaders": ";".join(sorted(signed)),
    }
    signature = _signature(key, stamp, _canonical(request, query, signed, UNSIGNED))
    return f"{query_of(query)}&X-Amz-Signature={signature}"


def _stamp(now: datetime) -> str:
    return now.strftime("%Y%m%dT%H%M%SZ")


def _scope(key: Key, stamp: str) -> str:
    return f"{stamp[:8]}/{key.region}/s3/aws4_request"


def _canonical(
    request: Request, query: Mapping[str, str], signed: Mapping[str, str], content_sha256: str
) -> str:
    names = sorted(signed)
    headers = [f"{name}:{signed[name]}" for name in names]
    lines = [request.method, request.path, query_of(query), *headers, "", ";".join(names)]
    return "\n".join([*lines, content_sha256])


def _signature(key: Key, stamp: str, canonical: str) -> str:
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{stamp}\n{_scope(key, stamp)}\n{digest}"
    secret = f"AWS4{key.secret}".encode()
    for part in (stamp[:8], key.region, "s3", "aws4_request"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    return hmac.digest(secret, text.encode(), "sha256").hex()
