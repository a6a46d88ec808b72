"""Fences that separate a script of a node from the rest of the host: `bwrap`, `account`, `none`.

`bwrap`: a file system of its own, in which only the system's folders and its workspace exist, and
namespaces of its own. `account`: an account of its own, which root can give it. `none`: no
separation; only where the settings allow it. Also the folders and account of a script (`Sandbox`),
its PATH, and the Python that starts it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wms.dags.scripts.conf import ScriptConf
from wms.pilots.agent.fence.host_view import BASE, host_words, is_below, shown_folders

#: Path of the workspace behind `bwrap`.
INNER_ROOT: Final = "/workspace"
# Capabilities of the launcher: to start the script as another account, and to end it.
_LAUNCHER_MAY = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL", "CAP_DAC_READ_SEARCH")

_OWN_FOLDERS: Final = 'mount --bind "$1" /tmp && mount --bind "$2" /dev/shm && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Folders of one script, its workspace and temporary ones, and its account if it has one."""

    files: Path
    tmp: Path
    shm: Path
    uid: int | None


@dataclass(frozen=True, slots=True)
class Fence:
    """Fence around a sandbox: prefix of the command line, and the paths inside of the fence."""

    name: str
    prefix: tuple[str, ...]
    root: str
    tmp: str
    uid: int | None


def interpreter() -> str:
    """Python interpreter outside of the virtual environment, which fences hide."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def search_path() -> str:
    """PATH of scripts; the folder of our interpreter is last, as for pilots."""
    return f"/usr/local/bin:/usr/bin:/bin:{Path(interpreter()).parent}"


def bwrap_fence(conf: ScriptConf, sandbox: Sandbox) -> Fence:
    """Fence with bubblewrap, with a user namespace unless root runs it."""
    prefix = [conf.bwrap, "--die-with-parent", "--new-session", "--clearenv"]
    prefix += ["--unshare-ipc", "--unshare-pid", "--unshare-uts"]
    if not conf.has_network:
        prefix.append("--unshare-net")
    if sandbox.uid is None:
        prefix.append("--unshare-user")
    else:
        prefix += ["--cap-drop", "ALL"]
        prefix += [word for name in _LAUNCHER_MAY for word in ("--cap-add", name)]
    prefix += _system_arguments(conf)
    prefix += ["--proc", "/proc", "--dev", "/dev", "--bind", str(sandbox.shm), "/dev/shm"]
    prefix += ["--remount-ro", "/dev", "--bind", str(sandbox.tmp), "/tmp"]
    prefix += ["--bind", str(sandbox.files), INNER_ROOT, "--remount-ro", "/", "--chdir", "/", "--"]
    return Fence("bwrap", tuple(prefix), INNER_ROOT, "/tmp", sandbox.uid)


def _system_arguments(conf: ScriptConf) -> list[str]:
    shown = shown_folders([*BASE, *conf.readable])
    prefix = host_words(shown)
    for path in conf.hidden:
        if any(is_below(path, each) for each in shown):
            prefix += ["--tmpfs", path]
    return prefix


def account_fence(conf: ScriptConf, sandbox: Sandbox) -> Fence:
    """Fence with an account of its own, without privilege escalation, and without network.

    The folders that everybody writes to are those of the sandbox, on its disk: files that a script
    leaves there use no memory of the host, are invisible to others, and are removed with the
    sandbox.
    """
    prefix = ["setpriv", "--no-new-privs", "--", "unshare", "--mount", "--ipc"]
    if not conf.has_network:
        prefix.append("--net")
    prefix += ["--", "/bin/sh", "-c", _OWN_FOLDERS, "sh", str(sandbox.tmp), str(sandbox.shm)]
    return Fence("account", tuple(prefix), str(sandbox.files), "/tmp", sandbox.uid)


def no_fence(conf: ScriptConf, sandbox: Sandbox) -> Fence:
    """No fence: the script runs as the portal's account, or as its own account under root."""
    return Fence("none", (), str(sandbox.files), str(sandbox.tmp), sandbox.uid)
