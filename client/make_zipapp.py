"""Make `client/pilotage.pyz`: the client and all it needs as one file for Python 3.9 and newer.

python client/make_zipapp.py [FILE]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipapp
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
#: What older Pythons need; pip judges by the one that runs it.
_OF_OLDER = ("exceptiongroup", "tomli", "typing-extensions")
_OLDEST = "3.9"


def make(target: Path) -> None:
    """Make the zipapp. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="pilotage-") as temporary:
        # A copy, so that nothing of the build stays beside the sources.
        sources = Path(temporary, "sources")
        shutil.copytree(
            _HERE, sources, ignore=shutil.ignore_patterns("*.pyz", "__pycache__", "build")
        )
        _pip("wheel", "--no-deps", "--wheel-dir", f"{temporary}/wheels", str(sources))
        wheels = map(str, Path(temporary, "wheels").glob("*.whl"))
        content = Path(temporary, "content")
        _pip(
            "install", "--target", str(content), "--no-compile", "--only-binary", ":all:",
            "--platform", "any", "--implementation", "py", "--abi", "none",
            "--python-version", _OLDEST, *wheels, *_OF_OLDER,
        )  # fmt: skip
        shutil.rmtree(content / "bin", ignore_errors=True)
        shutil.copy(_HERE / "zipapp_main.py", content / "__main__.py")
        zipapp.create_archive(content, target, "/usr/bin/env python3", compressed=True)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def main(arguments: Sequence[str]) -> int:
    """Make the zipapp that the arguments name."""
    target = Path(arguments[0]) if arguments else _HERE / "pilotage.pyz"
    make(target)
    sys.stdout.write(f"{target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
