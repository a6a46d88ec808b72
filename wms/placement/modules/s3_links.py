"""Links to objects of the S3 store that are good for one method and a time (presigned URLs).

Who has such a link needs no credential, and learns none: AWS Signature Version 4 in the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote, urlsplit

from wms.core.storage.s3_signing import Request, quoted_key, signed_query
from wms.placement.conf import PlacementConf
from wms.placement.modules.connections import endpoint_of
from wms.placement.modules.protocol import FAILED, Credential, ModuleFailed
from wms.placement.modules.s3 import STORE_PORTS, host_header, key_of


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
    endpoint = store.at(store.path.rstrip("/") + f"/{bucket}/{quoted_key(key)}")
    plain = f"{endpoint.scheme}://{host_header(endpoint)}{endpoint.path}"
    signing = key_of(credential, conf.s3_region)
    if signing is None:
        return plain
    request = Request(link.method, host_header(endpoint), endpoint.path)
    return f"{plain}?{signed_query(signing, request, lifetime_s=link.lifetime_s, now=now)}"
