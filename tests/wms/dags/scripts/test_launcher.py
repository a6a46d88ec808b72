"""Status that the launcher reports to the service, and that a script cannot forge it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wms.dags.scripts.conftest import done, said
from wms.dags.scripts import process
from wms.dags.scripts.fences import Fence
from wms.dags.scripts.process import Command, Limits, ProcessResult

pytestmark = pytest.mark.process

LIMITS = Limits(
    wall_s=10, cpu_s=10, memory_mb=512, processes=4096, file_bytes=1024, output_bytes=2000
)

#: Tries what a process of the launcher's account may do to the launcher.
INTRUDER = """
import os
launcher = os.getppid()
try:
    for name in os.listdir(f"/proc/{launcher}/fd"):
        print(name, os.readlink(f"/proc/{launcher}/fd/{name}"))
    open(f"/proc/{launcher}/mem", "rb")
except OSError as error:
    print("refused:", error.strerror)
"""


@pytest.fixture
def run_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProcessResult]:
    """Run a program of the system with a launcher that ends with these words of Python."""

    def run(words: str) -> ProcessResult:
        text = f"import os, sys, time; say = lambda x: os.write(int(sys.argv[1]), x); {words}"
        monkeypatch.setattr(process, "_LAUNCHER_TEXT", text)
        fence = Fence("none", (), str(tmp_path), str(tmp_path), None)
        return process.run_process(
            fence, Command("true", (), "", {}), LIMITS, heartbeat=lambda: None
        )

    return run


@pytest.fixture
def unprivileged() -> Callable[[str], str]:
    """What a program of Python says that the launcher starts, both under one account."""

    # Ours may lie in a folder of root's.
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if python is None:
        pytest.skip("no python3 for every account")

    def run(program: str) -> str:
        command = Command(python, ("-c", program), "", {})
        spec = process._spec(Fence("none", (), "/", "/tmp", None), command, LIMITS)
        account = {"user": 60_599, "group": 60_599, "extra_groups": ()}
        status, inner = os.pipe()
        launched = subprocess.Popen(
            [python, "-I", "-S", "-c", process._LAUNCHER_TEXT, str(inner)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(inner,), cwd="/",
            **(account if os.geteuid() == 0 else {}),
        )  # fmt: skip
        os.close(inner)
        launched.stdin.write(json.dumps(spec).encode() + b"\n")
        launched.stdin.flush()
        output = launched.stdout.read().decode()
        assert json.loads(os.read(status, 4096)) == {"exit_code": 0}
        launched.communicate(timeout=10)
        os.close(status)
        return output

    return run


def test_an_end_is_believed(run_as_told):
    assert run_as_told("say(b'{\"exit_code\": 7}')") == ProcessResult(7)


def test_more_than_an_end_takes_is_not_read(run_as_told):
    ended = run_as_told("[say(b' ' * 4000) for _ in range(1000)]; say(b'{\"exit_code\": 0}')")

    assert ended.exit_code != 0
    assert "launcher" in ended.failure


@pytest.mark.parametrize("said", ["{", "[]", '{"exit_code": "0"}', '{"exit_code": true}'])
def test_what_is_no_end_is_a_failure(run_as_told, said):
    ended = run_as_told(f"say({said.encode()!r})")

    assert ended.exit_code == 1
    assert "launcher" in ended.failure


@pytest.mark.django_db(transaction=True)
def test_a_failure_with_a_very_long_name_is_told(works, ask):
    run = done(ask(executable="/" + "\U0001f600" * 1000))

    assert run.exit_code == 1
    assert "something else" not in run.failure
    assert len(json.dumps(run.failure)) < 4096


def test_a_process_of_its_account_cannot_look_into_the_launcher(unprivileged):
    output = unprivileged(INTRUDER)

    assert output.startswith("refused:")


@pytest.mark.django_db(transaction=True)
def test_a_script_cannot_look_into_its_launcher(real_fence, ask):
    assert said(done(ask(f"exec python3 -c '{INTRUDER}'"))).startswith("refused:")
