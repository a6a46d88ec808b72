from __future__ import annotations

import ast
import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wms.pilots.program.bootstrap import pilot_secret, render_script

pytestmark = pytest.mark.process

PILOT, SECRET = "00000000-0000-4000-8000-000000000000", "secret-of-it"
#: A stand-in for the agent that tells what it was given, and what others could see of it.
SPY = """
import json, os, sys
config = json.loads(sys.stdin.read())
seen = {"config": config, "argv": open("/proc/self/cmdline").read(), "env": dict(os.environ),
        "work_dir_mode": oct(os.stat(config["work_dir"]).st_mode & 0o777),
        "files": os.listdir(config["work_dir"] + "/files")}
print(json.dumps(seen))
"""


def zipped(program: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", program)
    return buffer.getvalue()


AGENT = zipped(SPY)


@dataclass
class Site:
    """What a server offers: a manifest and its files, by hash; and what it was told."""

    files: dict[str, bytes] = field(default_factory=dict)
    failures: int = 0
    cuts: int = 0
    asked: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)

    def add(self, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        self.files[sha256] = content
        return sha256

    def add_manifest(self, agent: bytes, /, *scripts: bytes, **changes: object) -> str:
        def entry(content: bytes) -> dict[str, object]:
            return {"sha256": self.add(content), "size_bytes": len(content)}

        manifest = {
            "format": 1,
            "agent": entry(agent),
            "checks": [{"builtin": True}, *({"builtin": False, **entry(s)} for s in scripts)],
        }
        return self.add(json.dumps(manifest | changes).encode())


class Server(http.server.ThreadingHTTPServer):
    """Offers a site's files; as a proxy it does the same for any address."""

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.site = site

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        site = self.server.site
        site.asked.append(self.path)
        site.failures -= 1
        content = site.files.get(self.path.rpartition("/")[2])
        if site.failures >= 0 or content is None:
            self.send_error(404 if site.failures < 0 else 503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        site.cuts -= 1
        self.wfile.write(content if site.cuts < 0 else content[: len(content) // 2])

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.site.told.append({"path": self.path, **json.loads(content)})
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


@contextmanager
def serving(site: Site) -> Iterator[Server]:
    with Server(site) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Site()) as server:
        yield server


def run(
    server: Server, directory: Path, *, manifest: str = "", proxy: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    script = directory / "run"
    sha256 = manifest or server.site.add_manifest(AGENT)
    script.write_text(render_script(server.url, sha256, http_proxy=proxy))
    return subprocess.run(
        ["sh", "./run"],
        cwd=directory,
        env={
            "PATH": os.environ["PATH"],
            "TMPDIR": str(directory),
            "PILOTAGE_SECRET": pilot_secret(PILOT, SECRET),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_stopped(
    done: subprocess.CompletedProcess[str], server: Server, directory: Path, why: str
) -> None:
    """Nothing was executed, nothing is left, and the server knows why."""
    assert done.returncode == 1
    assert '"config"' not in done.stdout
    assert not list(directory.glob("pilotage-*"))
    [told] = server.site.told
    assert told["path"] == "/pilot/v1/unfit"
    assert (told["pilot"], told["secret"]) == (PILOT, SECRET)
    assert why in told["reason"]


def test_the_program_gets_the_secret_that_the_script_was_given(
    server: Server, tmp_path: Path
) -> None:
    done = run(server, tmp_path)

    config = json.loads(done.stdout)["config"]
    assert (config["pilot"], config["secret"]) == (PILOT, SECRET)
    assert config["server"] == server.url


def test_no_secret_is_among_arguments_or_in_the_environment(server: Server, tmp_path: Path) -> None:
    seen = json.loads(run(server, tmp_path).stdout)

    assert SECRET not in seen["argv"]
    assert SECRET not in json.dumps(seen["env"])
    assert seen["work_dir_mode"] == "0o700"


def test_the_script_goes_where_it_would_lie_beside_payloads(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, PILOTAGE_SCRIPT=str(tmp_path / "run"))

    assert done.returncode == 0
    assert not (tmp_path / "run").exists()


def test_what_the_manifest_lists_is_there_when_the_program_starts(
    server: Server, tmp_path: Path
) -> None:
    manifest = server.site.add_manifest(AGENT, b"#!/bin/sh\ntrue\n")

    seen = json.loads(run(server, tmp_path, manifest=manifest).stdout)

    assert seen["config"]["manifest_sha256"] == manifest
    assert 0 <= seen["config"]["used_s"] < 60
    assert seen["files"] == [hashlib.sha256(b"#!/bin/sh\ntrue\n").hexdigest()]


def test_a_program_with_another_hash_is_not_run(server: Server, tmp_path: Path) -> None:
    manifest = server.site.add_manifest(AGENT)
    server.site.files[hashlib.sha256(AGENT).hexdigest()] = zipped(SPY + "# tampered with")

    done = run(server, tmp_path, manifest=manifest)

    assert_stopped(done, server, tmp_path, "not run")


def test_a_script_of_a_check_with_another_hash_stops_the_program_too(
    server: Server, tmp_path: Path
) -> None:
    manifest = server.site.add_manifest(AGENT, b"#!/bin/sh\n")
    server.site.files[hashlib.sha256(b"#!/bin/sh\n").hexdigest()] = b"#!/bin/sh\nrm -rf /\n"

    done = run(server, tmp_path, manifest=manifest)

    assert_stopped(done, server, tmp_path, "not run")


def test_a_manifest_that_was_tampered_with_is_not_followed(server: Server, tmp_path: Path) -> None:
    manifest = server.site.add_manifest(AGENT)
    other = server.site.add_manifest(zipped("print('config')"))
    server.site.files[manifest] = server.site.files[other]

    done = run(server, tmp_path, manifest=manifest)

    assert_stopped(done, server, tmp_path, f"manifests/{manifest} has SHA-256 {other}")


@pytest.mark.parametrize("missing", ["manifest", "agent", "check"])
def test_a_missing_file_stops_the_program(server: Server, tmp_path: Path, missing: str) -> None:
    manifest = server.site.add_manifest(AGENT, b"#!/bin/sh\n")
    files = {"agent": AGENT, "check": b"#!/bin/sh\n", "manifest": server.site.files[manifest]}
    del server.site.files[hashlib.sha256(files[missing]).hexdigest()]

    done = run(server, tmp_path, manifest=manifest)

    assert_stopped(done, server, tmp_path, "is missing")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"agent": None},
        {"checks": [{}]},
        {"agent": {"sha256": "../../etc/passwd", "size_bytes": 1}},
        {"agent": {"sha256": hashlib.sha256(AGENT).hexdigest(), "size_bytes": 1}},
    ],
    ids=["format", "no agent", "no check", "no hash", "another size"],
)
def test_a_manifest_that_is_none_is_not_followed(
    server: Server, tmp_path: Path, changes: dict[str, object]
) -> None:
    manifest = server.site.add_manifest(AGENT, **changes)

    done = run(server, tmp_path, manifest=manifest)

    assert_stopped(done, server, tmp_path, "")


def test_a_manifest_that_is_no_json_is_not_followed(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, manifest=server.site.add(b"\xff{"))

    assert_stopped(done, server, tmp_path, "not JSON")


def test_files_come_through_the_proxy_of_the_queue(server: Server, tmp_path: Path) -> None:
    manifest = server.site.add_manifest(AGENT)
    with serving(Site(files=dict(server.site.files))) as proxy:
        done = run(server, tmp_path, manifest=manifest, proxy=proxy.url)

        assert done.returncode == 0
        assert server.site.asked == []
        assert [path.partition("/pilot/")[0] for path in proxy.site.asked] == [server.url] * 2


def test_a_proxy_that_does_not_answer_is_left_out(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, proxy="http://127.0.0.1:1")

    assert done.returncode == 0
    assert len(server.site.asked) == 2


def test_a_proxy_that_gives_other_files_stops_the_program(server: Server, tmp_path: Path) -> None:
    manifest = server.site.add_manifest(AGENT)
    with serving(Site(files={manifest: b"{}"})) as proxy:
        done = run(server, tmp_path, manifest=manifest, proxy=proxy.url)

    assert_stopped(done, server, tmp_path, "not run")


def test_an_unfit_pilot_keeps_its_slot_a_while(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text(render_script(server.url, "0" * 64, hold_s=600))
    process = subprocess.Popen(
        ["sh", "./run"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "TMPDIR": str(tmp_path),
            "PILOTAGE_SECRET": pilot_secret(PILOT, SECRET),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    deadline = time.monotonic() + 30
    while not server.site.told and time.monotonic() < deadline:
        time.sleep(0.05)

    assert "is missing" in server.site.told[0]["reason"]
    assert process.poll() is None
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM


def test_a_server_that_is_away_for_a_moment_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.site.failures = 1

    done = run(server, tmp_path)

    assert done.returncode == 0
    assert "503" in done.stdout


def test_an_answer_that_was_cut_on_its_way_is_asked_for_again(
    server: Server, tmp_path: Path
) -> None:
    server.site.cuts = 1

    done = run(server, tmp_path)

    assert done.returncode == 0
    assert "cut" in done.stdout
    assert not server.site.told


def test_the_script_is_written_in_the_language_of_python_3_9() -> None:
    script = render_script("http://host", "0" * 64)

    _, _, program = script.partition("\nEND-OF-SECRET\n")
    tree = ast.parse(program.partition("END-OF-BOOTSTRAP")[0], feature_version=(3, 9))

    imported = {
        alias.name for each in tree.body if isinstance(each, ast.Import) for alias in each.names
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_a_pilot_that_was_given_no_secret_says_so(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, PILOTAGE_SECRET="none")

    assert done.returncode == 1
    assert "no secret" in done.stderr


def environment_of(pid: int) -> bytes:
    """What the account of a process can read of its first environment."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def test_no_process_of_its_account_can_look_into_the_script_that_waits(
    server: Server, tmp_path: Path
) -> None:
    script = tmp_path / "run"
    script.write_text(render_script(server.url, "0" * 64, hold_s=600))
    with subprocess.Popen(
        ["sh", "./run"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "TMPDIR": str(tmp_path),
            "PILOTAGE_SECRET": pilot_secret(PILOT, SECRET),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 30
        while not server.site.told and time.monotonic() < deadline:
            time.sleep(0.05)

        assert SECRET.encode() not in environment_of(process.pid)
        # By ptrace's rule: what the kernel gives to root, only root can look into.
        assert Path(f"/proc/{process.pid}/mem").stat().st_uid == 0
        process.kill()


def test_a_node_without_python_says_so(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")

    script = tmp_path / "run"
    script.write_text(render_script("http://127.0.0.1:1", "0" * 64))
    done = subprocess.run(
        ["/bin/sh", str(script)],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 69
    assert "no Python 3.9" in done.stderr


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "host:80"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http or https"):
        render_script(url, "0" * 64)


def test_a_hash_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        render_script("http://host", "abc")


def test_a_proxy_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="http or https"):
        render_script("http://host", "0" * 64, http_proxy="squid:3128")
