"""Confinement of payloads behind each fence: system calls and network."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.wms.pilots.agent.fence.fencing import (
    ROOT,
    Fencing,
    Payload,
    all_told,
    fencing,
    pilot_code,
    runs,
    skip_if_unusable,
    told,
)
from wms.pilots.agent.supervisor.confinement import landlock_version

__all__ = ["all_told", "fencing", "pilot_code", "told"]

_TRY = """
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in words]
    result = libc.syscall(ctypes.c_long(number), *words)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(what, *words):
    try:
        what(*words)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "done"
"""

_KERNEL = (
    _TRY
    + """
numbers = {
    "mount": (165, 40), "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "setns": (308, 268),
    "io_uring_setup": (425, 425), "open_tree": (428, 428), "fsopen": (430, 430),
    "pivot_root": (155, 41), "init_module": (175, 105), "kexec_load": (246, 104),
    "clone3": (435, 435), "future": (999, 999),
}
column = 0 if os.uname().machine == "x86_64" else 1
found = {name: call(number[column], 0, 0, 0, 0, 0) for name, number in numbers.items()}
unshare, personality, clone = ((272, 97), (135, 92), (56, 220))
found["unshare"] = call(unshare[column], 0x10000000)
found["clone"] = call(clone[column], 0x10000000 | 17, 0, 0, 0, 0)
found["personality"] = call(personality[column], 0x0400000)
found["TIOCSTI"] = attempt(lambda: __import__("fcntl").ioctl(0, 0x5412, b"x"))
for family in ("AF_PACKET", "AF_VSOCK", "AF_ALG"):
    found[family] = attempt(socket.socket, getattr(socket, family), socket.SOCK_DGRAM, 0)
found["raw"] = attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
found["mptcp"] = attempt(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262)
print(json.dumps(found))
"""
)


def trying(program: str, **given: Any) -> Payload:
    """Payload that runs a program of Python, which prints JSON."""
    return Payload("exec python3 try.py", inputs={"try.py": program}, **given)


def said(told: Any) -> Any:
    assert told["stdout"], told
    return json.loads(told["stdout"])


@runs(trying(_KERNEL))
def test_what_no_payload_needs_of_the_kernel_is_denied(told: Any) -> None:
    found = said(told)

    assert found.pop("clone3") == found.pop("future") == "ENOSYS"
    for family in ("AF_PACKET", "AF_VSOCK", "AF_ALG"):
        assert found.pop(family) == "EAFNOSUPPORT"
    assert found.pop("mptcp") == "EPROTONOSUPPORT"
    assert found == dict.fromkeys(found, "EPERM")


@runs(Payload("cat /proc/self/status"))
def test_a_payload_has_no_capabilities_and_is_filtered(fencing: Fencing, told: Any) -> None:
    facts = dict(line.split(":\t") for line in told["stdout"].splitlines() if ":\t" in line)
    none = "0" * 16
    assert [facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [none] * 4
    # An ordinary account has nothing with which it could be emptied, and nothing that it is for.
    assert facts["CapBnd"] == none or fencing.fence == "sudo"
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


_OLD = 'int main(void) { int r; __asm__("int $0x80" : "=a"(r) : "a"(20)); return 7; }'


@runs(Payload("gcc -o old old.c || exit 99; ./old; echo $?", inputs={"old.c": _OLD}))
def test_a_program_of_another_kind_of_machine_is_ended(told: Any) -> None:
    if told["exit_code"] == 99:
        pytest.skip("no compiler of C for this machine")
    # By SIGSYS.
    assert told["stdout"] == "159\n"


@pytest.mark.process
def test_the_keys_of_a_payload_are_its_own() -> None:
    program = """
import ctypes, os, sys
from wms.pilots.agent.supervisor import confinement
libc, keyctl = ctypes.CDLL(None), 250 if os.uname().machine == "x86_64" else 219
def session():
    return libc.syscall(keyctl, 0, -3, 0)
libc.syscall(keyctl, 1, None)
before = session()
confinement.confine(dict(has_own_keys=True, has_own_network=False, account=None,
    has_no_capabilities=False, watched=b"", denied=b""))
print(before > 0, session() > 0, session() != before)
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    if done.stdout.startswith("False"):
        pytest.skip("this host has no keys")
    assert done.stdout == "True True True\n"


_ORDINARY = """
import concurrent.futures, multiprocessing, socket, subprocess, tempfile, threading
from multiprocessing import shared_memory
assert sum(concurrent.futures.ThreadPoolExecutor(8).map(abs, range(100))) == 4950
memory = shared_memory.SharedMemory(create=True, size=1 << 20)
memory.buf[0] = 7
def child(name, pipe):
    other = shared_memory.SharedMemory(name)
    pipe.send(other.buf[0])
    other.close()
for method in ("fork", "spawn"):
    if __name__ == "__main__":
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        process = context.Process(target=child, args=(memory.name, theirs))
        process.start(); assert ours.recv() == 7; process.join()
if __name__ == "__main__":
    memory.unlink()
    assert subprocess.run(["bash", "-c", "echo $((6 * 7))"], capture_output=True).stdout == b"42\\n"
    server = socket.create_server(("127.0.0.1", 0))
    def serve():
        peer, _ = server.accept(); peer.sendall(peer.recv(9)); peer.close()
    threading.Thread(target=serve).start()
    with socket.create_connection(server.getsockname(), 30) as client:
        client.sendall(b"echo"); assert client.recv(9) == b"echo"
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [1]); assert socket.recv_fds(other, 1, 1)[1]
    datagrams = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    datagrams[0].bind(("127.0.0.1", 0))
    datagrams[1].sendto(b"d", datagrams[0].getsockname()); assert datagrams[0].recv(9) == b"d"
    datagrams[1].sendmsg([b"m"], [], 0, datagrams[0].getsockname())
    assert datagrams[0].recv(9) == b"m"
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    print('"lives"')
"""


@runs(trying(_ORDINARY))
def test_the_ordinary_life_of_programs_goes_on(told: Any) -> None:
    assert said(told) == "lives"


_METADATA = (
    _TRY
    + """
found = {}
for address in ("169.254.169.254", "::ffff:169.254.169.254", "fe80::1%lo", "fd00:ec2::254"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    tcp, udp, message = (socket.socket(family, kind) for kind in (1, 2, 2))
    for each in (tcp, udp):
        each.settimeout(3)
    found["tcp " + address] = attempt(tcp.connect, (address, 80))
    found["udp " + address] = attempt(udp.connect, (address, 53))
    found["to " + address] = attempt(message.sendto, b"x", (address, 53))
print(json.dumps(found))
"""
)


@runs(trying(_METADATA, network="node"))
def test_addresses_of_the_link_and_of_a_clouds_metadata_are_denied(told: Any) -> None:
    found = said(told)

    assert found == dict.fromkeys(found, "EACCES")


_RACE = (
    _TRY
    + """
import threading, time
good = struct.pack("=H2s4s8x", 2, struct.pack(">H", 9), socket.inet_aton("127.0.0.1"))
bad = struct.pack("=H2s4s8x", 2, struct.pack(">H", int(os.environ["PORT"])),
    socket.inet_aton("169.254.169.254"))
memory = ctypes.create_string_buffer(good, 16)
def change():
    while True:
        memory.raw = bad
        memory.raw = good
threading.Thread(target=change, daemon=True).start()
reached = 0
until = time.monotonic() + 1
while time.monotonic() < until:
    tcp = socket.socket()
    tcp.settimeout(0.2)
    tcp.setblocking(False)
    libc.connect(tcp.fileno(), memory, 16)
    time.sleep(0.002)
    try:
        reached += tcp.getpeername()[0] == "169.254.169.254"
    except OSError:
        pass
    tcp.close()
print(json.dumps(reached))
"""
)


_READ = """
import json, os, urllib.request
try:
    url = "http://169.254.169.254:" + os.environ["PORT"]
    print(json.dumps(urllib.request.urlopen(url, timeout=5).read().decode()))
except OSError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def metadata() -> Iterator[int]:
    """A server at the address of a cloud's metadata, on this host; the number of its port."""
    if os.geteuid() != 0:
        pytest.skip("only root can give this host another address")
    subprocess.run(["ip", "address", "add", "169.254.169.254/32", "dev", "lo"], check=False)
    server = http.server.ThreadingHTTPServer(("169.254.169.254", 0), _Secret)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    subprocess.run(["ip", "address", "del", "169.254.169.254/32", "dev", "lo"], check=False)


class _Secret(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, *words: object) -> None:
        pass


def test_a_clouds_metadata_is_not_read_and_an_address_changed_after_the_look_reaches_nothing(
    fencing: Fencing, metadata: int
) -> None:
    around: dict[str, Any] = {"network": "node", "environment": {"PORT": str(metadata)}}

    found = fencing.run_all(trying(_READ, **around), trying(_RACE, **around))

    read, reached = (said(skip_if_unusable(fencing, each)) for each in found)
    assert read.endswith("Permission denied>")
    assert reached == 0


#: Name of a socket that has no path.
_NAME = f"\0pilotage-test-of-names-{os.getpid()}"


@pytest.fixture(scope="module", autouse=True)
def _named_socket() -> Iterator[None]:
    """A socket of this name on this host."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(_NAME.encode())
        server.listen()
        yield


_CONNECT = _TRY + f"print(json.dumps(attempt(socket.socket(1).connect, {_NAME!r})))"


@runs(trying(_CONNECT, network="node"))
def test_names_of_sockets_of_the_node_are_not_reached(told: Any) -> None:
    if landlock_version() < 6:
        pytest.skip("the kernel keeps no names of sockets apart")
    assert said(told) == "EPERM"


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[str]:
    """Address of a stand-in for the portal, on this host's loopback."""
    (tmp_path / "answer").write_text("portal")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


_AROUND = (
    _TRY
    + """
import urllib.request
url, other = os.environ["URL"], int(os.environ["OTHER"])
found = {"other": attempt(socket.create_connection, ("127.0.0.1", other), 3)}
found["out"] = attempt(socket.create_connection, ("192.0.2.1", 80), 3)
found["link"] = attempt(socket.create_connection, ("169.254.169.254", 80), 3)
try:
    found["portal"] = urllib.request.urlopen(url + "/answer", timeout=20).read().decode()
except OSError as error:
    found["portal"] = errno.errorcode.get(getattr(error.reason, "errno", 0), str(error))
own = socket.create_server(("127.0.0.1", 0))
found["itself"] = attempt(socket.create_connection, own.getsockname(), 3)
print(json.dumps(found))
"""
)


_MANY = """
import concurrent.futures, json, os, urllib.request
def fetch(_):
    return urllib.request.urlopen(os.environ["URL"] + "/answer", timeout=60).read().decode()
with concurrent.futures.ThreadPoolExecutor(100) as pool:
    print(json.dumps(sorted(set(pool.map(fetch, range(200))))))
"""


def test_a_network_of_its_own_leads_to_the_portal_many_times_at_once_or_nowhere(
    fencing: Fencing, portal: str
) -> None:
    if fencing.fence == "sudo":
        pytest.skip("sudo leaves payloads in the node's network")
    with socket.create_server(("127.0.0.1", 0)) as other:
        around = {"URL": portal, "OTHER": str(other.getsockname()[1])}
        payloads = [
            trying(program, network=network, server_url=portal, environment=around)
            for program, network in ((_AROUND, "portal"), (_AROUND, "none"), (_MANY, "portal"))
        ]
        found = fencing.run_all(*payloads)

    to_portal, nowhere, many = (said(skip_if_unusable(fencing, each)) for each in found)
    expected = {"other": "ECONNREFUSED", "out": "ENETUNREACH", "link": "ENETUNREACH"}
    assert to_portal == expected | {"portal": "portal", "itself": "done"}
    assert nowhere == expected | {"portal": "ECONNREFUSED", "itself": "done"}
    assert many == ["portal"]


@runs(
    Payload(
        "mkdir d; n=0; while :; do n=$((n + 1)); : >d/f$n; done",
        limits={"files": 500, "wall_s": 50.0, "grace_s": 0.5},
    )
)
def test_files_without_end_are_stopped(told: Any) -> None:
    assert "501 of 500" in told["reason"]
    assert told["stopped_by"] == "watchdog"
