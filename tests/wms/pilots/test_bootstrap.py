from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wms.pilots.bootstrap import PilotCredential, render_script

PILOTS = [PilotCredential(f"00000000-0000-4000-8000-00000000000{i}", f"secret-{i}") for i in "01"]
#: A stand-in for the agent that tells what it was given, and what others could see of it.
SPY = """
import json, os, sys
mission = json.loads(sys.stdin.read())
seen = {"mission": mission, "argv": open("/proc/self/cmdline").read(), "env": dict(os.environ),
        "work_dir_mode": oct(os.stat(mission["work_dir"]).st_mode & 0o777)}
print(json.dumps(seen))
"""


def zipped(program: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", program)
    return buffer.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves the pilot program after a number of failures."""

    content = zipped(SPY)
    failures = 0


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.failures -= 1
        self.send_response(503 if self.server.failures >= 0 else 200)
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(
    server: Server, directory: Path, *, sha256: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{server.server_port}"
    script = directory / "run"
    script.write_text(
        render_script(url, sha256 or hashlib.sha256(server.content).hexdigest(), PILOTS)
    )
    return subprocess.run(
        ["sh", "./run"],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(directory), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_each_pilot_of_a_batch_gets_its_own_credential(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, PILOTAGE_INDEX="1")

    mission = json.loads(done.stdout)["mission"]
    assert mission["pilot"] == PILOTS[1].pilot
    assert mission["secret"] == "secret-1"
    assert mission["server"] == f"http://127.0.0.1:{server.server_port}"


def test_no_secret_is_among_arguments_or_in_the_environment(server: Server, tmp_path: Path) -> None:
    seen = json.loads(run(server, tmp_path, PILOTAGE_INDEX="0").stdout)

    assert "secret-0" not in seen["argv"]
    assert "secret-0" not in json.dumps(seen["env"])
    assert seen["work_dir_mode"] == "0o700"


def test_the_script_goes_where_it_would_lie_beside_payloads(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, PILOTAGE_SCRIPT=str(tmp_path / "run"))

    assert done.returncode == 0
    assert not (tmp_path / "run").exists()


def test_a_program_with_another_hash_is_not_run(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, sha256="0" * 64)

    assert done.returncode == 1
    assert "not run" in done.stderr
    assert done.stdout == ""


def test_a_server_that_is_away_for_a_moment_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.failures = 1

    done = run(server, tmp_path)

    assert done.returncode == 0
    assert "503" in done.stdout


def test_an_index_outside_of_the_batch_is_an_error(server: Server, tmp_path: Path) -> None:
    done = run(server, tmp_path, PILOTAGE_INDEX="2")

    assert done.returncode == 1
    assert "index 2 of a batch of 2" in done.stderr


def test_a_node_without_python_says_so(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")

    script = tmp_path / "run"
    script.write_text(render_script("http://127.0.0.1:1", "0" * 64, PILOTS))
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
    with pytest.raises(ValueError, match="not an http or https address"):
        render_script(url, "0" * 64, PILOTS)


def test_a_hash_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        render_script("http://host", "abc", PILOTS)
