"""Settings of notices that leave by e-mail and webhook, with types and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from wms.core.conf import conf as core_conf


@dataclass(frozen=True, slots=True)
class Conf:
    """The `NOTICES` dictionary of the `PILOTAGE` settings, as values."""

    email_from: str
    webhooks_allowed: tuple[str, ...]
    is_plain_http_allowed: bool
    public_url: str

    @property
    def is_email_on(self) -> bool:
        """False where no server for mail is named."""
        return bool(self.email_from)


def conf() -> Conf:
    """The settings in force now."""
    everything: dict[str, Any] = settings.PILOTAGE
    raw: dict[str, Any] = everything["NOTICES"]
    return Conf(
        email_from=str(raw["EMAIL_FROM"]),
        webhooks_allowed=tuple(raw["WEBHOOKS_ALLOWED"]),
        is_plain_http_allowed=bool(raw["PLAIN_HTTP"]),
        public_url=core_conf().public_url,
    )
