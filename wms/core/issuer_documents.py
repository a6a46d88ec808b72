"""Services on what identity providers publish: kept in the database, for all processes.

The network is asked by faces, outside of transactions; here is what they found, and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from wms.core.identity_models import IssuerDocument


def kept_document(issuer: str) -> IssuerDocument | None:
    """Document of an issuer as it was fetched last; None if it never was."""
    return IssuerDocument.objects.filter(issuer=issuer, fetched_at__isnull=False).first()


def claim_attempt(issuer: str, *, now: datetime, floor: timedelta) -> bool:
    """Whether the caller may ask the issuer now: one does, and the next after `floor`."""
    IssuerDocument.objects.bulk_create([IssuerDocument(issuer=issuer)], ignore_conflicts=True)
    is_due = Q(tried_at=None) | Q(tried_at__lte=now - floor) | Q(tried_at__gt=now + floor)
    rows = IssuerDocument.objects.filter(is_due, issuer=issuer)
    return bool(rows.update(tried_at=now))


def keep_document(
    issuer: str, *, configuration: Mapping[str, Any], keys: Mapping[str, Any], now: datetime
) -> IssuerDocument:
    """Keep what the issuer published, in place of what it published before."""
    values = {"configuration": dict(configuration), "keys": dict(keys), "fetched_at": now}
    row, _ = IssuerDocument.objects.update_or_create(issuer=issuer, defaults=values)
    return row
