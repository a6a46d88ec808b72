"""The portal's web server alone, for benchmarks: started as `manage.py up` starts it."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from portal.cli.listening import Listen
from portal.cli.supervision import web_command
from portal.embedded.ports import LOOPBACK, free_ports

_START_S = 60.0


@dataclass(frozen=True, slots=True)
class WebServer:
    """A web server on this host, by its port and its process."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        """Processor seconds that its processes have used."""
        total_s = 0.0
        main = psutil.Process(self.pid)
        for process in (main, *main.children(recursive=True)):
            # One that has just ended is none of the server's any more.
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total_s += times.user + times.system
        return total_s


@contextmanager
def web_server() -> Iterator[WebServer]:
    """The web server, which answers inside the block."""
    (port,) = free_ports(1)
    server = subprocess.Popen(
        web_command(Listen(LOOPBACK, port)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(port)
        yield WebServer(port, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + _START_S
    while True:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        try:
            connection.request("GET", "/health/live")
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        if time.monotonic() > until_s:
            raise SystemExit("the web server did not start")
        time.sleep(0.1)
