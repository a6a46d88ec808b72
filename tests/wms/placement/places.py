"""Places where files lie, one kind for each scheme of addresses: what a test has to know of them.

Each is a real server behind a relay, with a credential that it asks for. Another scheme is a class
here and a line in `PLACES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.s3.server import S3Server
from tests.wms.placement.servers.cutting import Relay, relay_to
from tests.wms.placement.servers.http import HttpServer, http_server
from tests.wms.placement.servers.small_disk import small_disk
from tests.wms.placement.servers.tls import server_side
from wms.core.storage.s3_requests import Bucket as Requests
from wms.core.storage.s3_store import S3Store
from wms.placement.credentials import NewCredential

USER, PASSWORD, WRONG = "alice", "secret", "another-word"


@dataclass
class Place:
    """A place on the disk of this host, which needs no server; the others are made of it."""

    scheme: str
    folder: Path
    relay: Relay | None = None

    def at(self, name: str) -> str:
        """Address of a file."""
        return f"file://{self.folder}/{name}"

    def put(self, name: str, content: bytes) -> None:
        """Put a file there."""
        (self.folder / name).write_bytes(content)

    def content(self, name: str) -> bytes | None:
        """Content of a file; None without one."""
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    def names(self) -> list[str]:
        """The names of all that is there, parts of files too."""
        return sorted(each.name for each in self.folder.iterdir())

    def empty(self) -> None:
        """Remove all files."""
        for each in self.folder.iterdir():
            each.unlink()

    def full(self) -> AbstractContextManager[Any]:
        """Have room for less than a MiB."""
        return small_disk(self.folder)

    def credential(self, *, is_wrong: bool = False) -> NewCredential | None:
        """Credential that the server asks for, or a wrong one."""
        return None

    def settings(self) -> dict[str, Any]:
        """Settings of placements that it needs."""
        return {}

    def configure(self, change: Callable[..., None]) -> None:
        """Change the settings."""
        change(**self.settings())


@dataclass
class Remote(Place):
    """A place behind a relay, which asks for a user and a password."""

    def at(self, name: str) -> str:
        return f"{self.endpoint}/{name}"

    @property
    def endpoint(self) -> str:
        """Scheme, host and port."""
        assert self.relay is not None
        return f"{self.scheme}://127.0.0.1:{self.relay.port}"

    def credential(self, *, is_wrong: bool = False) -> NewCredential | None:
        return NewCredential(self.endpoint, USER, WRONG if is_wrong else PASSWORD)


@dataclass
class Http(Remote):
    """A server that keeps files in memory."""

    site: HttpServer = field(default_factory=HttpServer)

    def put(self, name: str, content: bytes) -> None:
        self.site.files[f"/{name}"] = content

    def content(self, name: str) -> bytes | None:
        return self.site.files.get(f"/{name}")

    def names(self) -> list[str]:
        return sorted(each.removeprefix("/") for each in self.site.files)

    def empty(self) -> None:
        self.site.files.clear()
        self.site.is_full = False

    @contextmanager
    def _full(self) -> Iterator[None]:
        self.site.is_full = True
        yield
        self.site.is_full = False

    def full(self) -> AbstractContextManager[Any]:
        return self._full()


@dataclass
class Ftp(Remote):
    """A folder behind a server that does not wait for good-byes when its disk is full."""

    site: Any = None

    @contextmanager
    def _full(self) -> Iterator[None]:
        self.site.is_curt = self.scheme == "ftps"
        with small_disk(self.folder):
            yield
        self.site.is_curt = False

    def full(self) -> AbstractContextManager[Any]:
        return self._full()


@dataclass
class Ssh(Remote):
    """A folder of this host behind its sshd."""

    sshd: Any = None
    known_hosts: Path = Path()
    wrong_key: Path = Path()

    def at(self, name: str) -> str:
        return f"{self.endpoint}{self.folder}/{name}"

    def credential(self, *, is_wrong: bool = False) -> NewCredential | None:
        key = self.wrong_key if is_wrong else self.sshd.folder / "client"
        return NewCredential(self.endpoint, user=self.sshd.user, key=key.read_text())

    def settings(self) -> dict[str, Any]:
        return {"KNOWN_HOSTS": str(self.known_hosts)}

    @contextmanager
    def _full(self) -> Iterator[None]:
        with small_disk(self.folder) as is_mounted:
            if not is_mounted:
                pytest.skip("a file system of its own cannot be mounted here")
            yield

    def full(self) -> AbstractContextManager[Any]:
        return self._full()


@dataclass
class Bucket(Remote):
    """A bucket of an S3 store, whose objects have a prefix."""

    server: Any = None
    objects: Any = None
    full_site: HttpServer = field(default_factory=HttpServer)
    is_full: bool = False
    BUCKET: ClassVar[str] = "runs"

    @property
    def endpoint(self) -> str:
        return f"s3://{self.BUCKET}"

    def at(self, name: str) -> str:
        return f"{self.endpoint}/{self.folder.name}/{name}"

    def _key(self, name: str) -> str:
        return f"{self.folder.name}/{name}"

    def put(self, name: str, content: bytes) -> None:
        super().put(name, content)
        self.objects.put(self._key(name), self.folder / name)

    def content(self, name: str) -> bytes | None:
        return self.server.content(self._key(name))

    def names(self) -> list[str]:
        return sorted(each.key.partition("/")[2] for each in self.objects.listed(self.folder.name))

    def empty(self) -> None:
        self.objects.delete([self._key(name) for name in self.names()])

    def credential(self, *, is_wrong: bool = False) -> NewCredential | None:
        secret = WRONG if is_wrong else self.server.secret
        return NewCredential(self.endpoint, self.server.key_id, secret)

    def settings(self) -> dict[str, Any]:
        assert self.relay is not None
        port = self.full_site.port if self.is_full else self.relay.port
        return {"S3_URL": f"http://127.0.0.1:{port}"}

    @contextmanager
    def _full(self) -> Iterator[None]:
        self.is_full = True
        with http_server() as self.full_site:
            self.full_site.is_full = True
            yield
        self.is_full = False

    def full(self) -> AbstractContextManager[Any]:
        return self._full()


@dataclass
class Servers:
    """Servers that were started, each when it was asked for first, until all are closed."""

    folder: Path
    certificate: Path
    sshd: Callable[[], Any]
    wrong_key: Callable[[], Path]
    s3: Callable[[], S3Server]
    stack: ExitStack = field(default_factory=ExitStack)
    started: dict[tuple[str, str], Place] = field(default_factory=dict)

    def place(self, scheme: str, role: str) -> Place:
        """The place of a scheme as source or destination: empty, and left alone by its relay."""
        key = (scheme, role)
        if key not in self.started:
            folder = self.folder / f"{scheme}-{role}"
            folder.mkdir()
            self.started[key] = PLACES[scheme](self, scheme, folder)
        place = self.started[key]
        if place.relay is not None:
            place.relay.forget()
        place.empty()
        return place

    def relay(self, port: int) -> Relay:
        """A relay to a server's port."""
        return self.stack.enter_context(relay_to(port))


def _file(servers: Servers, scheme: str, folder: Path) -> Place:
    return Place(scheme, folder)


def _http(servers: Servers, scheme: str, folder: Path) -> Place:
    tls = server_side(servers.certificate) if scheme == "https" else None
    site = servers.stack.enter_context(http_server(tls=tls))
    site.password = f"{USER}:{PASSWORD}"
    return Http(scheme, folder, servers.relay(site.port), site)


def _dav(servers: Servers, scheme: str, folder: Path) -> Place:
    from tests.wms.placement.servers.dav import dav_server

    tls = server_side(servers.certificate) if scheme == "davs" else None
    port = servers.stack.enter_context(dav_server(folder, password=PASSWORD, tls=tls))
    return Remote(scheme, folder, servers.relay(port))


def _ftp(servers: Servers, scheme: str, folder: Path) -> Place:
    from tests.wms.placement.servers.ftp import ftp_server

    certificate = servers.certificate if scheme == "ftps" else None
    site = servers.stack.enter_context(ftp_server(folder, anonymous="", certificate=certificate))
    relay = servers.relay(site.port)
    site.lead = relay.listen
    return Ftp(scheme, folder, relay, site)


def _ssh(servers: Servers, scheme: str, folder: Path) -> Place:
    sshd = servers.sshd()
    relay = servers.relay(sshd.port)
    known_hosts = servers.folder / "known hosts"
    host_key = " ".join((sshd.folder / "host.pub").read_text().split()[:2])
    with known_hosts.open("a") as file:
        file.write(f"[127.0.0.1]:{relay.port} {host_key}\n")
    return Ssh(scheme, folder, relay, sshd, known_hosts, servers.wrong_key())


def _s3(servers: Servers, scheme: str, folder: Path) -> Place:
    server = servers.s3()
    objects = S3Store(Requests(server.bucket_conf()), folder)
    servers.stack.callback(objects.close)
    # Settings name one store: its relay is that of the source and of the destination.
    relays = [each.relay for each in servers.started.values() if isinstance(each, Bucket)]
    port = int(server.url.rpartition(":")[2])
    relay = relays[0] if relays else servers.relay(port)
    return Bucket(scheme, folder, relay, server, objects)


#: How the place of each scheme is made.
PLACES: dict[str, Callable[[Servers, str, Path], Place]] = {
    "file": _file,
    "http": _http,
    "https": _http,
    "dav": _dav,
    "davs": _dav,
    "ftp": _ftp,
    "ftps": _ftp,
    "sftp": _ssh,
    "scp": _ssh,
    "s3": _s3,
}
#: Markers of tests of a scheme.
_MARKS = {
    "dav": {"process"},
    "davs": {"process"},
    "sftp": {"batch", "process"},
    "scp": {"batch", "process"},
    "s3": {"process"},
}


def marks_of(schemes: Iterable[str]) -> list[str]:
    """Names of the markers of a test with servers of these schemes."""
    return sorted(set().union(*(_MARKS.get(scheme, set()) for scheme in schemes)))
