"""Network of payloads: the one that a queue wants, and what of it is in force on this node."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from ..supervisor import socket_filter
from ..supervisor.confinement import CONNECTS_SINCE, landlock_version
from ..supervisor.network_guard import CONNECTS, FILTERS

#: The node's without link-local addresses, or `OPEN` where those cannot be kept away.
AUTO = "auto"
#: The node's, without link-local addresses.
NODE = "node"
#: One of its own, in which nothing is but the portal.
PORTAL = "portal"
#: One of its own, in which nothing is.
NONE = "none"
#: The node's, with all that it reaches.
OPEN = "open"

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Network:
    """Network for payloads; `server_url` is the portal's address."""

    name: str = OPEN
    server_url: str = ""
    #: Method of the network guard, if one is needed.
    guard: str = ""

    def guarded(self, *, has_other_account: bool) -> Network:
        """The same network with its guard, where it needs one. Raises OSError where none works.

        Of payloads under another account the guard must be root's to see what they do.
        """
        if self.name != NODE:
            return self
        if socket_filter.can_put_on():
            return replace(self, guard=FILTERS)
        if landlock_version() >= CONNECTS_SINCE and not has_other_account:
            return replace(self, guard=CONNECTS)
        raise OSError(
            errno.EPERM,
            "link-local addresses cannot be kept from payloads: this account can put no filter on "
            "sockets, and the kernel has no other way for it",
        )

    @property
    def is_own(self) -> bool:
        """Tell whether it is a namespace of its own, not the node's network."""
        return self.name in (PORTAL, NONE)

    @property
    def portal(self) -> tuple[str, int] | None:
        """Host and port of the portal, where that is all that can be reached."""
        if self.name != PORTAL:
            return None
        url = urlsplit(self.server_url)
        return url.hostname or "", url.port or _PORTS[url.scheme]

    def addresses(self) -> list[str]:
        """Addresses of the portal, which the payload's network takes as its own. Raises OSError."""
        if self.portal is None:
            return []
        infos = socket.getaddrinfo(*self.portal, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(each[4][0]) for each in infos))

    def hosts(self, addresses: list[str]) -> str:
        """Content of `/etc/hosts` in a network of its own, which has no name server."""
        name = self.portal[0] if self.portal else ""
        named = [each for each in addresses if each != name]
        lines = ["127.0.0.1 localhost", "::1 localhost", *(f"{each} {name}" for each in named)]
        return "".join(f"{line}\n" for line in lines)
