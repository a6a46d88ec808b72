"""What keeps a script from the rest of the host.

`bwrap`: a file system of its own, in which only the system's folders and its workspace exist, and
namespaces of its own. `account`: an account of its own, which root can give it. `none`: nothing;
only where the settings allow it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wms.dags.scripts.conf import ScriptConf
from wms.pilots.agent.fence.host_view import BASE, host_words, is_below, shown_folders

#: Where a script behind `bwrap` sees its workspace.
INNER_ROOT: Final = "/workspace"
# What the launcher needs to start the script as another account without rights, and to end it.
_LAUNCHER_MAY = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL", "CAP_DAC_READ_SEARCH")

_OWN_FOLDERS: Final = 'mount --bind "$1" /tmp && mount --bind "$2" /dev/shm && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class Room:
    """What a script is given: its workspace and room for temporary files, and an account if any."""

    files: Path
    tmp: Path
    shm: Path
    uid: int | None


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence around a room: the words before a command, and how things are called inside."""

    name: str
    words: tuple[str, ...]
    root: str
    tmp: str
    uid: int | None


def interpreter() -> str:
    """The interpreter without the virtual environment, which is not seen behind a fence."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def search_path() -> str:
    """The PATH of scripts; the folder of our interpreter is last, as for pilots."""
    return f"/usr/local/bin:/usr/bin:/bin:{Path(interpreter()).parent}"


def bwrap_fence(conf: ScriptConf, room: Room) -> Fence:
    """Behind bubblewrap, which root uses without a user namespace, others with one."""
    words = [conf.bwrap, "--die-with-parent", "--new-session", "--clearenv"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    if not conf.has_network:
        words.append("--unshare-net")
    if room.uid is None:
        words.append("--unshare-user")
    else:
        words += ["--cap-drop", "ALL"]
        words += [word for name in _LAUNCHER_MAY for word in ("--cap-add", name)]
    words += _system_words(conf)
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(room.shm), "/dev/shm"]
    words += ["--remount-ro", "/dev", "--bind", str(room.tmp), "/tmp"]
    words += ["--bind", str(room.files), INNER_ROOT, "--remount-ro", "/", "--chdir", "/", "--"]
    return Fence("bwrap", tuple(words), INNER_ROOT, "/tmp", room.uid)


def _system_words(conf: ScriptConf) -> list[str]:
    shown = shown_folders([*BASE, *conf.readable])
    words = host_words(shown)
    for path in conf.hidden:
        if any(is_below(path, each) for each in shown):
            words += ["--tmpfs", path]
    return words


def account_fence(conf: ScriptConf, room: Room) -> Fence:
    """An account of its own, without a way to more rights, and without the network.

    The folders that everybody writes to are the room's own, on its disk: what a script leaves there
    takes no memory of the host's, is seen by no other, and goes with the room.
    """
    words = ["setpriv", "--no-new-privs", "--", "unshare", "--mount", "--ipc"]
    if not conf.has_network:
        words.append("--net")
    words += ["--", "/bin/sh", "-c", _OWN_FOLDERS, "sh", str(room.tmp), str(room.shm)]
    return Fence("account", tuple(words), str(room.files), "/tmp", room.uid)


def no_fence(conf: ScriptConf, room: Room) -> Fence:
    """Nothing: the script may do what the portal's account may do, or its own one under root."""
    return Fence("none", (), str(room.files), str(room.tmp), room.uid)
