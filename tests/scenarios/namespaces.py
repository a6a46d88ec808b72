"""Network namespaces of two hosts, with a wire between them that can be cut, and TLS on one side.

The test reaches both by wires of its own. Nothing leads from the frontend to the factory: it has no
route to the address at which the factory listens, until a port for TLS is opened there.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from portal.cli.state_directory import BASE

#: What the frontend is called by the factory and by its pilots.
FRONTEND, TLS_PORT = "10.213.0.1", 8443
#: What the frontend calls the factory, once it may.
FACTORY = "10.213.0.2"
ADDRESSES = {"frontend": FRONTEND, "factory": FACTORY}
#: Where the test reaches both; the frontend knows nothing of the factory's wire.
SEEN = {"frontend": "10.213.1.2", "factory": "10.213.2.2"}


def why_not() -> str:
    """Why this host makes no namespaces; empty where it does."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("openssl") is None:
        return "the programs ip and openssl are needed"
    name = f"try-{os.getpid()}"
    adding = ["ip", "netns", "add", name]
    tried = subprocess.run(adding, capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"ip netns add: {tried.stderr.strip()}"
    _ip("netns", "del", name)
    return ""


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"ip {' '.join(words)}: {done.stderr}")
    return done.stdout


def _remove_left_behind() -> None:
    """Remove hosts of test runs that were killed, with their programs: they hold the addresses."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        host, _, maker = name.rpartition("-")
        if host in SEEN and not Path("/proc", maker).exists():
            for program in _ip("netns", "pids", name).split():
                with suppress(ProcessLookupError):
                    os.kill(int(program), signal.SIGKILL)
            _ip("netns", "del", name)


@dataclass(frozen=True)
class Hosts:
    """Names of both namespaces, and the folder with the authority that both trust."""

    tag: str
    authorities: Path
    certificate: Path
    #: Programs that end with the hosts.
    programs: list[subprocess.Popen[bytes]]

    def inside(self, host: str, *command: str) -> list[str]:
        """The command as it runs on a host, where only the authority of the test is trusted."""
        trusted = f'mount --bind {self.authorities} /etc/ssl/certs && exec "$@"'
        return ["ip", "netns", "exec", self.name(host), "sh", "-c", trusted, "sh", *command]

    def name(self, host: str) -> str:
        return f"{host}-{self.tag}"

    def open(self, host: str) -> None:
        """Proxy that ends TLS at a port of a host, behind which its portal listens."""
        relay = [sys.executable, "-m", "tests.scenarios.namespaces", str(self.certificate), host]
        self.programs.append(
            subprocess.Popen(self.inside(host, *relay), cwd=BASE, stdin=subprocess.DEVNULL)
        )

    def cut(self) -> None:
        """Cut the wire between frontend and factory."""
        _ip("-n", self.name("frontend"), "link", "set", "peer", "down")

    def mend(self) -> None:
        """Join the wire again."""
        _ip("-n", self.name("frontend"), "link", "set", "peer", "up")

    def reaches(self, host: str, address: str, port: int) -> bool:
        """Whether a connection from a host to an address is made."""
        code = f"import socket; socket.create_connection(({address!r}, {port}), timeout=3)"
        command = self.inside(host, sys.executable, "-c", code)
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def two_hosts(folder: Path) -> Iterator[Hosts]:
    """Both namespaces, wired; TLS ends at the frontend's port, behind which its portal listens."""
    certificate = _certificate(folder)
    hosts = Hosts(str(os.getpid()), certificate.parent / "trusted", certificate, [])
    _remove_left_behind()
    try:
        _wire(hosts)
        hosts.open("frontend")
        yield hosts
    finally:
        for program in hosts.programs:
            program.terminate()
            program.wait(timeout=30)
        for host in SEEN:
            with suppress(AssertionError):
                _ip("netns", "del", hosts.name(host))


def _wire(hosts: Hosts) -> None:
    for number, (host, address) in enumerate(SEEN.items(), start=1):
        name, outside = hosts.name(host), f"v{number}-{hosts.tag}"
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("link", "add", outside, "type", "veth", "peer", "name", "test", "netns", name)
        _ip("addr", "add", f"10.213.{number}.1/24", "dev", outside)
        _ip("link", "set", outside, "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "test")
        _ip("-n", name, "link", "set", "test", "up")
    frontend, factory = hosts.name("frontend"), hosts.name("factory")
    _ip("link", "add", "peer", "netns", frontend, "type", "veth",
        "peer", "name", "peer", "netns", factory)  # fmt: skip
    for name, address in ((frontend, FRONTEND), (factory, FACTORY)):
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "peer")
        _ip("-n", name, "link", "set", "peer", "up")


def _certificate(folder: Path) -> Path:
    """The certificate of both with its key, of an authority that is made for it."""
    trusted = folder / "trusted"
    trusted.mkdir()

    def openssl(*words: str) -> str:
        done = subprocess.run(
            ["openssl", *words], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-days", "2", "-subj", "/CN=authority of the test",
            "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    openssl("req", *new, "-subj", f"/CN={FRONTEND}", "-keyout", "key.pem", "-out", "asked.pem")
    (folder / "names").write_text(f"subjectAltName=IP:{FRONTEND},IP:{FACTORY}\n")
    openssl("x509", "-req", "-in", "asked.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
            "-CAcreateserial", "-extfile", "names", "-out", "cert.pem")  # fmt: skip
    both = folder / "both.pem"
    both.write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    authority = (folder / "ca.pem").read_text()
    (trusted / "ca-certificates.crt").write_text(authority)
    (trusted / f"{openssl('x509', '-hash', '-noout', '-in', 'ca.pem')}.0").write_text(authority)
    return both


def relay(certificate: str, host: str) -> None:
    """End TLS at the port of a host, and pass all on to the portal behind it."""
    import asyncio

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        with suppress(OSError):
            target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_portal = await asyncio.open_connection(SEEN[host], 8000)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, to_portal[1]), pump(to_portal[0], writer))

    async def listen() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = await asyncio.start_server(serve, ADDRESSES[host], TLS_PORT, ssl=context)
        await server.serve_forever()

    asyncio.run(listen())


if __name__ == "__main__":
    relay(sys.argv[1], sys.argv[2])
