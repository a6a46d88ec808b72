"""Ports of schemes, for addresses that tell none."""

from __future__ import annotations

from typing import Final

from wms.placement.modules.installed import installed_modules

_PORTS: Final = {
    "http": 80, "https": 443, "dav": 80, "davs": 443, "ftp": 21, "ftps": 21, "sftp": 22, "scp": 22,
    "s3": 443,
}  # fmt: skip


def port_of(scheme: str) -> int:
    """The port of a scheme; 0 where nobody says one."""
    return _PORTS.get(scheme) or installed_modules().ports.get(scheme, 0)
