"""Links to objects of the S3 store that are good for one method and a time (presigned URLs).

Who has such a link needs no credential, and learns none: AWS Signature Version 4 in the query.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from wms.placement.conf import PlacementConf
from wms.placement.modules.connections import endpoint_of
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed
from wms.placement.modules.s3 import STORE_PORTS, UNSIGNED, host_header, signature_of

#: The longest time that stores take.
LONGEST_S: Final = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Link:
    """Terms of a link: the method, `s3://bucket/key`, and for how long."""

    method: str
    url: str
    lifetime_s: int


def link_to(
    link: Link, credential: Credential | None, conf: PlacementConf, *, now: datetime
) -> str:
    """The URL of an object at the store of the settings; signed where there is a credential.

    Raises ModuleFailed where the settings name no proper store.
    """
    parts = urlsplit(link.url)
    bucket, key = (parts.hostname or "").lower(), unquote(parts.path).lstrip("/")
    if not conf.s3_url:
        raise ModuleFailed(FAILED, "no S3 store is set (PILOTAGE_PLACEMENT_S3_URL)")
    store = endpoint_of(conf.s3_url, STORE_PORTS)
    endpoint = store.at(store.path.rstrip("/") + f"/{bucket}/{quote(key, safe='/~')}")
    plain = f"{endpoint.scheme}://{host_header(endpoint)}{endpoint.path}"
    if credential is None:
        return plain
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{conf.s3_region}/s3/aws4_request"
    query = "&".join(
        f"{name}={quote(value, safe='~')}"
        for name, value in (
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", f"{credential.user}/{scope}"),
            ("X-Amz-Date", stamp),
            ("X-Amz-Expires", str(min(link.lifetime_s, LONGEST_S))),
            ("X-Amz-SignedHeaders", "host"),
        )
    )
    canonical = "\n".join(
        [
            link.method,
            endpoint.path,
            query,
            f"host:{host_header(endpoint)}",
            "",
            "host",
            UNSIGNED,
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    signed = signature_of(credential, stamp[:8], conf.s3_region, text)
    return f"{plain}?{query}&X-Amz-Signature={signed}"
