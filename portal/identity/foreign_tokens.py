"""Token of another issuer, as the API sees it after it was checked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wms.core.models import User


@dataclass(frozen=True, slots=True)
class ForeignToken:
    """Token of another issuer that was accepted; `prefix` tells people which one is meant."""

    user: User
    prefix: str
    scopes: tuple[str, ...]
    #: Ends DAGs, clusters and jobs, also without the scope `control`.
    may_cancel: bool
    expires_at: datetime
    #: Of all tokens of the subject: it gets new ones all the time.
    holder: str
