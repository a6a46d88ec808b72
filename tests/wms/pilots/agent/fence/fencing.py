"""Fixture `fencing`: each kind of fence, under an account that can use it here, to run payloads in.

`payload_accounts` makes accounts for payloads with sudo; `marked` finds processes by a text.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.batch_systems.apptainer import apptainer_node, inside
from tests.batch_systems.services import FOLDER_VARIABLE, Unavailable, locked
from wms.pilots.agent.fence.unix_accounts import SHARED

ROOT = Path(__file__).parents[5]
#: An ordinary account that is on every system.
USER = "nobody"
#: A Python that every account may run; that of the tests may lie in somebody's home.
SYSTEM_PYTHON = "/usr/bin/python3"
_SUDOERS = Path("/etc/sudoers.d/pilotage-tests")
_LIMIT_S = 120


@dataclass(frozen=True)
class Payload:
    """A script, and what it is given."""

    script: str
    limits: dict[str, float | None] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    #: Files of the node that are inputs too.
    copied: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "limits": self.limits,
            "inputs": {"run.sh": f"#!/bin/sh\n{self.script}\n", **self.inputs},
            "environment": self.environment,
            "copied": self.copied,
            "outputs": list(self.outputs),
        }


@dataclass(frozen=True)
class Fencing:
    """One fence, used by a pilot of one account."""

    fence: str
    account: str
    work_dir: Path
    network: str = "auto"
    server_url: str = ""
    #: Folder of the node that it runs in; else on this host.
    node: Path | None = None
    #: Image that the payloads run in, and folders that they see.
    image: str | None = None
    shared: tuple[str, ...] = ()

    def run(self, script: str, **given: Any) -> dict[str, Any]:
        """Run one payload and return what the pilot tells of it."""
        return self.run_all(Payload(script, **given))[0]

    def run_all(self, *payloads: Payload) -> list[dict[str, Any]]:
        """Run payloads at the same time."""
        task = {
            "fence": self.fence,
            "network": self.network,
            "server_url": self.server_url,
            "work_dir": str(self.work_dir),
            "payloads": [each.as_json() for each in payloads],
        }
        if self.image is not None:
            task |= {"image": self.image, "shared": self.shared}
        shutil.rmtree(self.work_dir, ignore_errors=True)
        self.work_dir.mkdir(mode=0o700)
        is_other = os.geteuid() == 0 and self.account != "root"
        if is_other:
            shutil.chown(self.work_dir, self.account)
        python = SYSTEM_PYTHON if is_other else sys.executable
        number = pwd.getpwnam(self.account) if is_other else None
        entering: list[str] = []
        if self.node is not None:
            uid = number.pw_uid if number else 0
            entering = inside(self.node, [self.work_dir.parent], uid=uid)
            number, python = None, "python3"
        copied = is_other or self.node is not None
        done = subprocess.run(
            [*entering, python, "-m", "tests.wms.pilots.agent.fence.fenced_pilot"],
            input=json.dumps(task).encode(),
            capture_output=True,
            cwd=_readable_copy(self.work_dir.parent / "code") if copied else ROOT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            user=number.pw_uid if number else None,
            group=number.pw_gid if number else None,
            extra_groups=[] if number else None,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        answer = json.loads(done.stdout)
        if "fails" in answer:
            pytest.skip(
                f"the fence {self.fence} does not work for {self.account}: {answer['fails']}"
            )
        results: list[dict[str, Any]] = answer["results"]
        return results


def _readable_copy(folder: Path) -> Path:
    """The pilot's program where every account can read it, as the checkout need not be."""
    if not folder.exists():
        shutil.copytree(ROOT / "wms/pilots/agent", folder / "wms/pilots/agent")
        program = Path("tests/wms/pilots/agent/fence/fenced_pilot.py")
        (folder / program).parent.mkdir(parents=True)
        shutil.copy(ROOT / program, folder / program)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


KINDS = (
    "bwrap of root", "bwrap of a user", "sudo of root", "sudo of a user",
    "apptainer of root", "apptainer of a user",
)  # fmt: skip


@pytest.fixture(params=KINDS)
def fencing(request: pytest.FixtureRequest, fence_programs: None) -> Iterator[Fencing]:
    """Each kind of fence that works here; the others are skipped with the reason."""
    fence, _, of = request.param.partition(" of ")
    is_root = os.geteuid() == 0
    if of == "root" and not is_root:
        pytest.skip("only root can be root's pilot")
    if fence == "sudo" and is_root:
        request.getfixturevalue("payload_accounts")
    account = "root" if of == "root" else USER
    node = None
    if fence == "apptainer" and shutil.which("apptainer") is None:
        try:
            node = apptainer_node()
        except Unavailable as error:
            pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="pilotage-fence-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield Fencing(fence, account, folder / "work", node=node)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def payload_accounts(fence_programs: None) -> Iterator[None]:
    """Accounts for payloads, and leave for the tests' ordinary account to act for them.

    For one test of the host at a time: another one would find all of them in use, or gone.
    """
    if not shutil.which("useradd") or not shutil.which("sudo"):
        pytest.skip("no sudo, or no useradd to make accounts with")
    with locked(Path(os.environ[FOLDER_VARIABLE], "payload-accounts.lock")):
        yield from _accounts()


def _accounts() -> Iterator[None]:
    made = [name for name in ("pilotage1", "pilotage2") if not _exists(name)]
    for name in made:
        command = ["useradd", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
        subprocess.run(command, check=True)
    # Root's pilots and those of an ordinary account use the same accounts here.
    shared = not SHARED.exists()
    if shared:
        SHARED.mkdir(mode=0o770)
        os.chown(SHARED, 0, pwd.getpwnam(USER).pw_gid)
        SHARED.chmod(0o770)
    _SUDOERS.write_text(f"{USER} ALL=(pilotage1,pilotage2) NOPASSWD: ALL\n")
    _SUDOERS.chmod(0o440)
    yield
    _SUDOERS.unlink(missing_ok=True)
    if shared:
        shutil.rmtree(SHARED)
    for name in made:
        subprocess.run(["userdel", name], check=False)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def marked(marker: str) -> list[int]:
    """The processes of this host with a text in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found
