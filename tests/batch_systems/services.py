"""Services that the processes of one test run share, and that end with the run.

A service is a module of this package with `start(folder)`, which changes nothing where the service
is up already, and `stop(folder)`. The first test that asks for it starts it. A keeper process stops
all of them when the run is over, however it ended: it waits for a lock that the run holds.
Helpers for these modules: file locks, free ports, daemons and their pid files, waiting.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

#: Which kinds may be started, separated by commas; all if it is not set.
CHOICE_VARIABLE = "PILOTAGE_BATCH_SYSTEMS"
#: Names the folder of this run's services to its workers.
FOLDER_VARIABLE = "PILOTAGE_TEST_SERVICES"
STOP_LIMIT_S = 60.0
_ALIVE = "alive"
_KEEPER = "keeper"


class Unavailable(Exception):
    """A service cannot run here; a test that needs it is skipped with this reason."""


@contextmanager
def run_folder() -> Iterator[None]:
    """Give this test run a folder for its services, and end them with it."""
    # As short as can be: sockets below have a longest name.
    folder = Path(tempfile.mkdtemp(prefix="pts-"))
    folder.chmod(0o755)
    os.environ[FOLDER_VARIABLE] = str(folder)
    with (folder / _ALIVE).open("w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        yield
    if (folder / _KEEPER).exists():
        wait_until(lambda: not folder.exists(), STOP_LIMIT_S)
    shutil.rmtree(folder, ignore_errors=True)


def shared(name: str) -> Any:
    """Return what the `start` of the service returns; raise `Unavailable` if it cannot run here.

    A name is a module of this package, or one with `-` and more behind it for another of its kind.
    """
    require_chosen(name.partition("-")[0])
    folder = Path(os.environ[FOLDER_VARIABLE])
    with locked(folder / f"{name}.lock"):
        failed = folder / f"{name}.failed"
        if failed.exists():
            raise Unavailable(failed.read_text())
        _ensure_keeper(folder)
        (folder / name).mkdir(exist_ok=True)
        try:
            return _module(name).start(folder / name)
        except Unavailable as error:
            failed.write_text(str(error))
            raise


def require_chosen(kind: str) -> None:
    """Raise `Unavailable` for a kind that this run leaves out."""
    chosen = os.environ.get(CHOICE_VARIABLE)
    if chosen is not None and kind not in chosen.split(","):
        raise Unavailable(f"{CHOICE_VARIABLE}={chosen} leaves out {kind}")


@contextmanager
def locked(path: Path) -> Iterator[IO[str]]:
    """Hold an exclusive lock on a file, waiting for it as long as it takes."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name.partition('-')[0]}")


def _ensure_keeper(folder: Path) -> None:
    with locked(folder / "keeper.lock"):
        if (folder / _KEEPER).exists():
            return
        # By a shell that does not wait, so that it is nobody's child.
        subprocess.run(
            ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", sys.executable, "-m", __name__, folder],
            stdin=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
            check=True,
            start_new_session=True,
        )
        (folder / _KEEPER).touch()


def keep(folder: Path) -> None:
    """Wait until the run is over, then stop its services and remove the folder."""
    with locked(folder / _ALIVE), ExitStack() as stops:
        stops.callback(shutil.rmtree, folder, ignore_errors=True)
        for each in sorted(folder.iterdir()):
            if each.is_dir():
                stops.callback(_module(each.name).stop, each)


def wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Return whether the condition came true within the time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens at."""
    with ExitStack() as stack:
        holders = [stack.enter_context(socket.socket()) for _ in range(count)]
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [holder.getsockname()[1] for holder in holders]


def run_daemon(argv: Sequence[str], *, log: Path) -> None:
    """Run a program that goes into the background by itself; raise `Unavailable` if it fails."""
    with log.open("ab") as output:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            start_new_session=True,
            timeout=30,
        )
    if done.returncode:
        said = log.read_text(errors="replace").strip()[-300:]
        raise Unavailable(f"{argv[0]} ended with {done.returncode}: {said}")


def own_pid(pid_file: Path, folder: Path) -> int | None:
    """Return the process of a pid file if it lives and its command line names the folder."""
    try:
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except (OSError, ValueError):
        return None
    return pid if str(folder) in command and not is_gone(pid) else None


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has, where nobody reaps."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def end(pid_file: Path, folder: Path, *, number: int, limit_s: float = 10.0) -> None:
    """Send a signal to the process of a pid file, if it is one of the folder, and see it end."""
    pid = own_pid(pid_file, folder)
    if pid is not None:
        os.kill(pid, number)
        if not wait_until(lambda: is_gone(pid), limit_s):
            os.kill(pid, 9)
            wait_until(lambda: is_gone(pid), limit_s)
    pid_file.unlink(missing_ok=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
