"""Self-test of the public address: whether people and pilots can reach the portal there.

Also whether it is encrypted, and whether allowed hosts, listen address and proxy settings fit it.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from django.http.request import validate_host

from portal.selftest.findings import Code, Finding, error, ok, warning


def resolves(host: str) -> bool:
    """Whether this host knows an address for the name."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return True


def reachable(
    public_url: str, far_queues: Sequence[str], knows: Callable[[str], bool]
) -> Iterator[Finding]:
    """Whether worker nodes can call it; `far_queues` have theirs on other hosts."""
    host = urlsplit(public_url).hostname or ""
    setting = f"PILOTAGE_PUBLIC_URL is {public_url}"
    name_it = "Set PILOTAGE_PUBLIC_URL to an address that worker nodes can call, and start anew."
    if _is_everywhere_itself(host):
        if far_queues:
            yield error(
                Code.ADDRESS_IS_LOOPBACK,
                f"{setting}, which on every host is that host itself.",
                f"Pilots on other hosts never find the portal: {_named(far_queues)}.",
                name_it,
            )
        else:
            yield ok(Code.ADDRESS, f"{setting}: all queues are on this host.")
    elif not knows(host):
        yield error(
            Code.ADDRESS_DOES_NOT_RESOLVE,
            f"{setting}, and this host knows no address of {host or 'no name'}.",
            "Pilots call this address, those of queues on this host too.",
            f"Enter the name in the DNS, or: {name_it}",
        )
    else:
        yield ok(Code.ADDRESS, f"{setting}.")


def served(
    public_url: str, listen: str, allowed: Sequence[str], *, behind_proxy: bool
) -> Iterator[Finding]:
    """Whether the web server takes what is sent to that address."""
    parts = urlsplit(public_url)
    host = parts.hostname or ""
    if not validate_host(f"[{host}]" if ":" in host else host, allowed):
        yield error(
            Code.ADDRESS_NOT_ALLOWED,
            f"PILOTAGE_ALLOWED_HOSTS does not contain {host}, the host of PILOTAGE_PUBLIC_URL.",
            "Every request to the public address is refused with 400.",
            f"Add {host} to PILOTAGE_ALLOWED_HOSTS.",
        )
    if "*" in allowed:
        yield warning(
            Code.ANY_HOST_ALLOWED,
            "PILOTAGE_ALLOWED_HOSTS allows every name of a host.",
            "Who leads a browser here by another name chooses the name in the portal's answers.",
            f"Set it to {host}.",
        )
    if _is_everywhere_itself(host):
        return
    if parts.scheme != "https":
        yield warning(
            Code.NO_TLS,
            "The public address begins with http: nothing is encrypted.",
            "Everybody on the way reads passwords, tokens and what jobs bring.",
            "Put a proxy in front that adds TLS: docs/how-to/run-it-for-real.md.",
        )
    if behind_proxy:
        return
    if parts.scheme == "https":
        yield warning(
            Code.PROXY_NOT_TOLD,
            "The public address begins with https, and PILOTAGE_BEHIND_PROXY is not 1.",
            "The portal adds no TLS, so there is a proxy: all requests seem to come from it, and "
            "wrong passwords of one lock everybody out. Browsers are not told to keep to TLS.",
            "Set PILOTAGE_BEHIND_PROXY=1, where the proxy sets both headers anew.",
        )
    elif is_loopback(listen.rpartition(":")[0]):
        yield warning(
            Code.ADDRESS_NOT_LISTENED_TO,
            f"The web server listens on {listen}, which no other host reaches.",
            "The public address is another one: nobody answers there, unless by a proxy.",
            "Set PILOTAGE_LISTEN, or put a proxy in front and set PILOTAGE_BEHIND_PROXY=1.",
        )


def is_loopback(host: str) -> bool:
    """Whether a host calls itself by this name."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def _is_everywhere_itself(host: str) -> bool:
    """Whether each host that calls this calls itself; 0.0.0.0 is called so too."""
    address = _address(host)
    return is_loopback(host) or (address is not None and address.is_unspecified)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _named(queues: Sequence[str]) -> str:
    shown = ", ".join(queues[:5])
    return f"{shown} and {len(queues) - 5} more" if len(queues) > 5 else shown
