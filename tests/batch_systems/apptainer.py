"""A worker node with Apptainer: unpacked packages, in which a program runs with its own mounts.

The Debian of this host need not have Apptainer, so the packages are those of another suite. The
program is not in a chroot, where the kernel makes no namespaces of users: the folder becomes the
root of a namespace of mounts, which ends with the program.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.batch_systems.chroot import ensure_namespaces
from tests.batch_systems.debian_root import debian_root
from tests.batch_systems.services import CHOICE_VARIABLE, Unavailable

SUITE = "sid"
PACKAGES = (
    "apptainer", "busybox-static", "mount", "python3", "squashfs-tools", "squashfuse", "util-linux",
)  # fmt: skip

# Arguments: root, number of folders, folders, program. Temporary folders are its own; the folders
# lie in them.
_ENTER = r"""
set -eu
root=$1 folders=$2 here=$PWD
shift 2
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
for name in tmp var/tmp; do
  mount -t tmpfs none "$root/$name"
  chmod 1777 "$root/$name"
done
while [ "$folders" -gt 0 ]; do
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1"
  folders=$((folders - 1))
  shift
done
cd "$root"
mount -o remount,bind,ro "$root"
pivot_root . mnt
cd /
umount -l mnt
cd "$here"
exec "$@"
"""


def apptainer_node() -> Path:
    """Return the folder of such a node; raise `Unavailable`."""
    chosen = os.environ.get(CHOICE_VARIABLE)
    if chosen is not None and "apptainer" not in chosen.split(","):
        raise Unavailable(f"{CHOICE_VARIABLE}={chosen} leaves out apptainer")
    ensure_namespaces()
    if shutil.which("pivot_root", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        raise Unavailable("not installed: pivot_root")
    root = debian_root(SUITE, PACKAGES)
    (root / "mnt").mkdir(exist_ok=True)
    return root


def inside(root: Path, folders: Sequence[Path], *, uid: int = 0) -> list[str]:
    """Return the words before a command that runs in this node, under an account.

    It sees these folders of this host at their place, which is one for temporary files, and begins
    in one of them.
    """
    entering = ["unshare", "--mount", "--propagation=private", "bash", "-c", _ENTER, "enter"]
    words = [*entering, str(root), str(len(folders)), *map(str, folders)]
    if uid:
        words += ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return words
