"""Check of the settings of traces."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def check_traces(url: str, share: float) -> None:
    """Raise ImproperlyConfigured for an address or a share of no use."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise ImproperlyConfigured(
            "PILOTAGE_TRACES_URL must be the address of a collector of OTLP over HTTP, such as "
            "http://collector:4318/v1/traces."
        )
    if not 0 < share <= 1:
        raise ImproperlyConfigured(
            f"PILOTAGE_TRACES_SHARE must be above 0, at most 1, not {share:g}."
        )
