"""Chroot with its own namespaces of mounts and processes, in which daemons of a batch system run.

`Chroot` starts them, runs commands beside them and kills all of them: nothing stays behind.
`ensure_namespaces` raises `Unavailable` where this host does not allow it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.batch_systems.services import Unavailable, end, is_gone, own_pid, wait_until

_LIMIT_S = 30.0
_PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

# Arguments: root, state, commands, folders. The mounts end with the last process of the namespace.
# `/` is a mount point because HTCondor's starter changes how it is shared. The first process stays
# to reap: a pilot that has ended must not look alive.
_FIRST = r"""
set -eu
root=$1 state=$2 commands=$3
shift 3
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
for name; do mount --bind "$state/$name" "$root/$name"; done
mount -o remount,bind,ro "$root"
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root \
  bash -c 'eval "$1"; while :; do sleep 3600 & wait $!; done' first "$commands"
"""

#: Write the own process id, then become the program.
_NOTED = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"'


class Chroot:
    """A folder of unpacked packages, with the folders of `state` in place of its own."""

    def __init__(self, root: Path, state: Path, folders: Sequence[str]) -> None:
        self._root, self._state, self._folders = root, state, folders
        self._pid_file = state / "chroot.pid"
        for name in folders:
            (state / name).mkdir(parents=True, exist_ok=True)
            (root / name).mkdir(parents=True, exist_ok=True)

    def is_up(self) -> bool:
        return own_pid(self._pid_file, self._state) is not None

    def start(self, commands: str) -> None:
        """Run the commands, which start daemons, as the first process of new namespaces."""
        flags = ["--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--propagation=private"]
        arguments = [str(self._root), str(self._state), commands, *self._folders]
        inner = ["unshare", *flags, "bash", "-c", _FIRST, "chroot", *arguments]
        self._pid_file.unlink(missing_ok=True)
        with (self._state / "start.log").open("ab") as log:
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", _NOTED, str(self._pid_file), *inner],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                timeout=_LIMIT_S,
            )
        wait_until(self.is_up, _LIMIT_S)

    def run(self, *argv: str) -> str:
        """Return what a command prints that runs inside, beside the daemons."""
        first = self._first_process()
        inside = ["nsenter", f"--target={first}", "--mount", "--pid", f"--root=/proc/{first}/root"]
        done = subprocess.run(
            [*inside, "--wd=/", "env", "-i", _PATH, "LANG=C.UTF-8", *argv],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
        return done.stdout

    def kill(self) -> None:
        """End every process inside at once, as when the machine loses its power."""
        try:
            first = self._first_process()
        except ProcessLookupError:
            first = None
        end(self._pid_file, self._state, number=signal.SIGKILL)
        if first is not None:
            wait_until(lambda: is_gone(first), _LIMIT_S)

    def _first_process(self) -> int:
        pid = own_pid(self._pid_file, self._state)
        if pid is None:
            raise ProcessLookupError("the chroot is down")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            raise ProcessLookupError("the chroot has no process")
        return int(children[0])


def ensure_namespaces() -> None:
    """Raise `Unavailable` where there can be no chroot with namespaces of its own."""
    if os.geteuid() != 0:
        raise Unavailable("a chroot needs root")
    missing = [name for name in ("unshare", "nsenter", "chroot", "bash") if not shutil.which(name)]
    if missing:
        raise Unavailable(f"not installed: {', '.join(missing)}")
    argv = ["unshare", "--mount", "--pid", "--fork", "mount", "--bind", "/tmp", "/tmp"]
    tried = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if tried.returncode:
        raise Unavailable(f"no namespaces of mounts: {tried.stderr.strip()}")
