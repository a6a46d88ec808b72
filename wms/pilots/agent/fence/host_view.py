"""Parts of the host that are shown inside a fence, as options of bubblewrap; what is hidden.

They are the system's folders, read-only, and shared ones. Used by the fences of payloads
(bubblewrap, Apptainer) and of the scripts of nodes. Also the paths of a job's own folders inside,
and the path of a fence's program.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ..files.job_directories import JobDirectories
from .base import FenceUnusable

HOME = "/job"
TMP = "/tmp"
ATTRIBUTES_FOLDER = "/run/pilotage"

#: Folders of the host that every fenced program sees, scripts of nodes too.
BASE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: A payload sees the software of its site besides.
SYSTEM = (*BASE, "/opt", "/cvmfs", "/sw")
ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "group", "grid-security", "host.conf"),
    *("hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "passwd", "pki", "protocols", "resolv.conf", "services", "ssl", "timezone"),
)
#: Search path for the programs of fences.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def shown_folders(system: Sequence[str] = SYSTEM) -> list[str]:
    """Folders of the host that exist and are shown, that of our interpreter included."""
    prefix = os.path.realpath(sys.base_prefix)
    shown = [each for each in system if os.path.isdir(each)]
    if prefix == "/" or any(is_below(prefix, each) for each in shown):
        return shown
    return [*shown, prefix]


def host_words(folders: Sequence[str]) -> list[str]:
    """Options of bwrap that show folders of the host, and parts of `/etc`, read-only."""
    words: list[str] = []
    for path in folders:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
            continue
        # What is made on the way by itself would be closed to other accounts.
        for parent in _folders_above(path):
            words += ["--dir", parent]
        words += ["--ro-bind", path, path]
    words += ["--dir", "/etc"]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def system_words() -> list[str]:
    """Options of bwrap that show the system to a payload."""
    words = host_words(shown_folders())
    return [*words, "--dir", "/var", "--dir", "/run", "--symlink", TMP, "/var/tmp"]


def _folders_above(path: str) -> list[str]:
    """Parents from the top down, without the top. They have no slices in Python 3.9."""
    return [str(each) for each in reversed(Path(path).parents)][1:]


def shared_words(directories: JobDirectories) -> list[str]:
    """Options of bwrap that show the folders a job shares with the node; none for missing ones."""
    words: list[str] = []
    for each in directories.shared:
        for parent in _folders_above(each.path):
            words += ["--dir", parent]
        words += ["--bind-try" if each.is_writable else "--ro-bind-try", each.path, each.path]
    return words


def is_hidden(path: str, directories: JobDirectories) -> bool:
    """Tell whether a payload cannot see a path of the node."""
    seen = [*shown_folders(), *(each.path for each in directories.shared)]
    return not any(is_below(path, each) for each in seen)


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path lies in a folder or is it."""
    return os.path.commonpath([path, folder]) == folder


def program(name: str) -> str:
    """Path of a program of the system; raises `FenceUnusable`."""
    path = shutil.which(name, path=PATH)
    if path is None:
        raise FenceUnusable(f"{name} is not installed on this node")
    return path
