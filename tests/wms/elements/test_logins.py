"""Logins in place of what a queue's settings name: what programs find, and what is left of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wms.elements import logins
from wms.elements.htcondor_login import TokenRunner
from wms.elements.logins import BadLogin, Login, LoginKind, in_folder, in_memory, sweep
from wms.elements.protocol import Unreachable
from wms.elements.registry import element_for, login_kinds
from wms.elements.rest_helper import _context, _headers
from wms.elements.rest_login import who_we_are

FILES = {"certificate_file": "/cert", "key_file": "/key", "token_file": "/token"}


@pytest.mark.process
def test_what_a_killed_process_left_is_swept_and_what_is_in_use_stays(tmp_path: Path) -> None:
    base = tmp_path / "logins"
    code = (
        "import os, sys; from pathlib import Path; from wms.elements.logins import in_folder\n"
        "with in_folder('token', 'x', base=Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(base)], check=False, timeout=30)
    [left] = base.iterdir()
    assert (left / "content" / "token").read_text() == "x"

    with in_folder("token", "y", base=base) as folder:
        assert not left.exists()
        assert sweep(base) == 0
        assert (folder / "token").stat().st_mode & 0o777 == 0o600
    assert list(base.iterdir()) == []

    with in_memory("z") as path:
        assert subprocess.run(["cat", str(path)], capture_output=True, check=True).stdout == b"z"
    assert not path.exists()


def test_a_folder_that_others_could_read_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    with pytest.raises(Unreachable), in_folder("token", "x", base=tmp_path):
        pass


@pytest.mark.process
def test_htcondor_finds_the_token_of_the_login_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "default_base", lambda: tmp_path / "base")
    runner = TokenRunner(Login(LoginKind.HTCONDOR_TOKEN, "a.b.c", "mark"))

    done = runner.run(["sh", "-c", 'cd "$_CONDOR_SEC_TOKEN_DIRECTORY" && ls && cat token'])

    assert done.stdout.split() == ["token", "a.b.c"]
    assert list((tmp_path / "base").iterdir()) == []


def test_an_arc_ce_is_told_the_login_in_place_of_all_files() -> None:
    question: dict[str, Any] = who_we_are(FILES, Login(LoginKind.BEARER_TOKEN, "secret", "mark"))
    assert _headers(question, {})["Authorization"] == "Bearer secret"
    assert set(question.values()) == {"", "secret"}

    certificate = who_we_are(FILES, Login(LoginKind.CERTIFICATE, "no certificate", "mark"))
    assert certificate["certificate"] == "no certificate"
    with pytest.raises(OSError, match=r"SSL|PEM"):
        _context({"ca_path": "", **certificate})
    assert who_we_are(FILES, None) == {**FILES, "token": "", "certificate": ""}


@pytest.mark.parametrize(
    ("kind", "given", "login"),
    [
        ("host", {"directory": "/x"}, LoginKind.SSH_KEY),
        ("slurm", {"log_directory": "/x"}, LoginKind.SSH_KEY),
        ("arc", {"url": "https://ce/arex", "token_file": "/x"}, LoginKind.HTCONDOR_TOKEN),
        ("htcondor", {"collector": "c", "token_directory": "/x"}, LoginKind.BEARER_TOKEN),
        ("kubernetes", {"url": "https://k", "token_file": "/x"}, LoginKind.CERTIFICATE),
    ],
)
def test_a_login_of_no_use_to_the_element_is_refused(
    kind: str, given: dict[str, object], login: LoginKind
) -> None:
    assert login not in login_kinds(kind, given)
    with pytest.raises(BadLogin):
        element_for(kind, given, Login(login, "secret", "mark"))
