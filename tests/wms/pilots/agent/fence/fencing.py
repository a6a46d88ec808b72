"""Fixture `fencing`: each kind of fence, under an account that can use it here, to run payloads in.

Payloads of many tests run in one pilot, `told` brings each test what became of its own.
`payload_accounts` makes accounts for payloads with sudo.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
_LIMIT_S = 300


@dataclass(frozen=True)
class Payload:
    """A script, and what it is given.

    What still runs of it when it has ended is found by the texts `traces` in command lines.
    """

    script: str
    limits: dict[str, float | None] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    #: Files of the node that are inputs too.
    copied: dict[str, str] = field(default_factory=dict)
    traces: tuple[str, ...] = ()
    network: str = "auto"
    server_url: str = ""
    #: Image that it runs in.
    image: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "limits": self.limits,
            "inputs": {"run.sh": f"#!/bin/sh\n{self.script}\n", **self.inputs},
            "environment": self.environment,
            "copied": self.copied,
            "outputs": list(self.outputs),
            "traces": list(self.traces),
            "network": self.network,
            "server_url": self.server_url,
            "image": self.image,
        }


@dataclass(frozen=True)
class Fencing:
    """One fence, used by a pilot of one account."""

    fence: str
    account: str
    work_dir: Path
    #: The pilot's program.
    code: Path
    #: Folder of the node that it runs in; else on this host.
    node: Path | None = None
    #: Folders that payloads in images see.
    shared: tuple[str, ...] = ()

    def run(self, script: str, **given: Any) -> dict[str, Any]:
        """Run one payload and return what the pilot tells of it."""
        return self.run_all(Payload(script, **given))[0]

    def run_all(self, *payloads: Payload, at_once: int | None = None) -> list[dict[str, Any]]:
        """Run payloads in one pilot: all at the same time, or as many as are said, in turn."""
        needs_accounts = self.fence == "sudo" and os.geteuid() == 0
        with accounts_for_payloads() if needs_accounts else nullcontext():
            return self._run_all(payloads, at_once or len(payloads))

    def _run_all(self, payloads: Sequence[Payload], at_once: int) -> list[dict[str, Any]]:
        task = {
            "fence": self.fence,
            "work_dir": str(self.work_dir),
            "shared": self.shared,
            "at_once": at_once,
            "payloads": [each.as_json() for each in payloads],
        }
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
            entering = inside(self.node, [self.work_dir.parent, self.code], uid=uid)
            number, python = None, "python3"
            _compile_for(self.node, self.code)
        done = subprocess.run(
            [*entering, python, "-m", "tests.wms.pilots.agent.fence.fenced_pilot"],
            input=json.dumps(task).encode(),
            capture_output=True,
            cwd=self.code,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            user=number.pw_uid if number else None,
            group=number.pw_gid if number else None,
            extra_groups=[] if number else None,
            timeout=_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
        return results


def skip_if_unusable(fencing: Fencing, told: dict[str, Any]) -> dict[str, Any]:
    """Outcome of a payload, where its fence works here; else the test is skipped."""
    if "fails" in told:
        pytest.skip(
            f"the fence {fencing.fence} does not work for {fencing.account}: {told['fails']}"
        )
    return told


@pytest.fixture(scope="session")
def pilot_code(processes: None) -> Iterator[Path]:
    """The pilot's program where every account can read it, as the checkout need not be; compiled.

    An account that cannot write there would compile it in each process.
    """
    folder = Path(tempfile.mkdtemp(prefix="pilotage-code-", dir="/var/tmp"))
    shutil.copytree(ROOT / "wms/pilots/agent", folder / "wms/pilots/agent")
    program = Path("tests/wms/pilots/agent/fence/fenced_pilot.py")
    (folder / program).parent.mkdir(parents=True)
    shutil.copy(ROOT / program, folder / program)
    _compile(SYSTEM_PYTHON if os.geteuid() == 0 else sys.executable, folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _compile(python: str, folder: Path, entering: Sequence[str] = ()) -> None:
    argv = [*entering, python, "-m", "compileall", "-q", "wms", "tests"]
    subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=_LIMIT_S)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _compile_for(node: Path, folder: Path) -> None:
    """Compile the program by the Python of a node, once."""
    mark = folder / f"compiled-{node.name}"
    if not mark.exists():
        _compile("python3", folder, inside(node, [folder]))
        mark.touch()


KINDS = (
    "bwrap of root", "bwrap of a user", "sudo of root", "sudo of a user",
    "apptainer of root", "apptainer of a user",
)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def fencing(
    request: pytest.FixtureRequest, fence_programs: None, pilot_code: Path
) -> Iterator[Fencing]:
    """Each kind of fence that works here; the others are skipped with the reason."""
    fence, _, of = request.param.partition(" of ")
    is_root = os.geteuid() == 0
    if of == "root" and not is_root:
        pytest.skip("only root can be root's pilot")
    account = "root" if of == "root" else USER
    node = None
    if fence == "apptainer" and shutil.which("apptainer") is None:
        try:
            node = apptainer_node()
        except Unavailable as error:
            pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="pilotage-fence-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield Fencing(fence, account, folder / "work", pilot_code, node=node)
    shutil.rmtree(folder, ignore_errors=True)


def runs(*payloads: Payload) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a test whose `told` is what became of this payload, or of these.

    All payloads of a module run in one pilot for each kind of fence, two at a time.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        test.payloads = payloads  # type: ignore[attr-defined]
        return test

    return decorate


@pytest.fixture(scope="module")
def all_told(request: pytest.FixtureRequest, fencing: Fencing) -> dict[str, list[dict[str, Any]]]:
    """Outcomes of the payloads of each chosen test of the module, behind one kind of fence."""
    chosen = {
        each.function.__name__: each.function
        for each in request.session.items
        if isinstance(each, pytest.Function) and each.module is request.module
    }
    tests = [(name, each.payloads) for name, each in chosen.items() if hasattr(each, "payloads")]
    payloads = [each for _, its in tests for each in its]
    found = iter(fencing.run_all(*payloads, at_once=2))
    return {name: [next(found) for _ in its] for name, its in tests}


@pytest.fixture
def told(
    request: pytest.FixtureRequest, fencing: Fencing, all_told: dict[str, list[dict[str, Any]]]
) -> Any:
    """Outcome of the test's payload; of several a list."""
    found = [skip_if_unusable(fencing, each) for each in all_told[request.function.__name__]]
    return found if len(found) > 1 else found[0]


@pytest.fixture
def payload_accounts(fence_programs: None) -> Iterator[None]:
    """Accounts for payloads, as `accounts_for_payloads` makes them."""
    with accounts_for_payloads():
        yield


@contextmanager
def accounts_for_payloads() -> Iterator[None]:
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
