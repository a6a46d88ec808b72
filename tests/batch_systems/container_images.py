"""Images of containers to test with: unpacked folders of a few programs, and files made of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.batch_systems.apptainer import inside

_PROGRAMS = ("sh", "ls", "cat", "id", "grep", "sleep", "touch", "env", "mount", "unshare", "kill")
_BUILD_LIMIT_S = 60


def make_folder(image: Path, root: Path) -> None:
    """Make an unpacked image of programs of a node, without Python or any library."""
    for name in ("bin", "dev", "proc", "sys", "etc", "tmp", "var/tmp"):
        (image / name).mkdir(parents=True)
    shutil.copy(root / "usr/bin/busybox", image / "bin/busybox")
    for name in _PROGRAMS:
        (image / "bin" / name).symlink_to("busybox")
    (image / "etc/image").write_text("an image\n")


def make_file(image: Path, folder: Path, root: Path) -> None:
    """Make a file of an unpacked image, beside it, by the Apptainer of a node."""
    build = ["apptainer", "-s", "build", str(image), str(folder)]
    place = folder.parent
    subprocess.run(
        [*inside(root, [place]), *build],
        check=True,
        capture_output=True,
        cwd=place,
        timeout=_BUILD_LIMIT_S,
    )
    image.chmod(0o644)
