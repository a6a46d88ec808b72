"""Make the client's wheel and `pilotage.pyz`: it and all it needs as one file for Python 3.9+.

`python client/make_zipapp.py FOLDER`; by default they are made beside this file.
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


def make(folder: Path) -> list[Path]:
    """Make both in a folder; where they are. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="pilotage-") as temporary:
        # A copy, so that nothing of the build stays beside the sources.
        sources = Path(temporary, "sources")
        ignored = shutil.ignore_patterns(".*", "*.pyz", "*.whl", "__pycache__", "build")
        shutil.copytree(_HERE, sources, ignore=ignored)
        _pip("wheel", "--no-deps", "--wheel-dir", f"{temporary}/wheels", str(sources))
        [wheel] = Path(temporary, "wheels").glob("*.whl")
        content = Path(temporary, "content")
        _pip(
            "install", "--target", str(content), "--no-compile", "--only-binary", ":all:",
            "--platform", "any", "--implementation", "py", "--abi", "none",
            "--python-version", _OLDEST, str(wheel), *_OF_OLDER,
        )  # fmt: skip
        shutil.rmtree(content / "bin", ignore_errors=True)
        shutil.copy(_HERE / "zipapp_main.py", content / "__main__.py")
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "pilotage.pyz"
        zipapp.create_archive(content, target, "/usr/bin/env python3", compressed=True)
        target.chmod(0o755)
        return [Path(shutil.copy(wheel, folder)), target]


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def main(arguments: Sequence[str]) -> int:
    """Make both where the arguments say."""
    for made in make(Path(arguments[0]) if arguments else _HERE):
        sys.stdout.write(f"{made}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
