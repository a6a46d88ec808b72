"""Free TCP ports on the loopback address, and the ports that a portal keeps from start to start."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from portal.embedded.private import write_private

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """`count` different ports that are free now, chosen by the system."""
    probes = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def kept_ports(
    path: Path,
    names: Iterable[str],
    preferred: Mapping[str, int],
    given: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """One free port per name: the one kept in `path`, else the preferred one, else any; kept.

    Those that are given are taken as they are.
    """
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    wanted = {name: kept.get(name) or preferred.get(name) for name in names}
    fixed = dict(given or {})
    chosen = {
        name: port if port and is_free(port) and port not in fixed.values() else free_ports(1)[0]
        for name, port in wanted.items()
    } | fixed
    write_private(path, json.dumps(chosen, indent=1) + "\n")
    return chosen
