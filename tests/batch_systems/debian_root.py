"""Root folder for a chroot: Debian packages, unpacked with all that they need.

Nothing is installed on this host: `apt-get` with private state folders finds and fetches a package
with all that it needs, `tar` unpacks them, and no maintainer script runs. That takes seconds where
`debootstrap` takes minutes. The folder is kept for the next run in `cache_folder()`, so it is made
at most once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.batch_systems.services import Unavailable, locked

#: Where the unpacked packages are kept.
CACHE_VARIABLE = "PILOTAGE_TEST_CACHE"
#: Ends the building, downloads included.
BUILD_LIMIT_S = 300
#: Every program here expects these, and no package asks for them.
BASE_PACKAGES = (
    "bash", "coreutils", "dash", "findutils", "grep", "hostname", "mawk", "procps", "sed", "time",
)  # fmt: skip
#: What maintainer scripts would have made.
_LINKS = {"usr/bin/sh": "dash", "usr/bin/awk": "mawk", "etc/mtab": "/proc/self/mounts"}
_FILES = {
    "etc/passwd": (
        "root:x:0:0::/root:/bin/sh\n"
        "condor:x:500:500::/var/lib/condor:/usr/sbin/nologin\n"
        "pilot:x:501:501::/var/home/pilot:/bin/sh\n"
        "nobody:x:65534:65534::/:/usr/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\ncondor:x:500:\npilot:x:501:\ntty:x:5:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/hosts": "127.0.0.1 localhost submit.example.org\n",
    "etc/resolv.conf": "",
    # Apptainer shows it to all containers.
    "etc/localtime": "",
}
#: The accounts in `etc/passwd` by which daemons and jobs run.
CONDOR_UID, PILOT_UID = 500, 501
#: Folders that are links into /usr on a Debian of today.
_MERGED = ("bin", "sbin", "lib", "lib64")
_PUBLIC_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def cache_folder() -> Path:
    """Return the folder that outlives a test run, outside the checkout."""
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(CACHE_VARIABLE) or Path(user_cache, "pilotage-tests"))


def debian_root(suite: str, packages: Sequence[str]) -> Path:
    """Return a folder with these packages of a Debian suite unpacked; raise `Unavailable`."""
    wanted = sorted({*packages, *BASE_PACKAGES})
    digest = hashlib.sha256(" ".join([suite, *wanted]).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{suite}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            building = folder.with_suffix(".new")
            shutil.rmtree(building, ignore_errors=True)
            _build(building, suite, wanted)
            building.rename(folder)
    return folder


def _build(folder: Path, suite: str, packages: Sequence[str]) -> None:
    for name in ("apt-get", "tar", "dpkg-deb"):
        if shutil.which(name) is None:
            raise Unavailable(f"{name} is missing")
    state = folder.with_suffix(".apt")
    try:
        archives = _fetch(state, suite, packages)
        for name in _MERGED:
            (folder / "usr" / name).mkdir(parents=True)
            (folder / name).symlink_to(f"usr/{name}")
        for archive in archives:
            _unpack(archive, folder)
        for name, target in _LINKS.items():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
        for name, text in _FILES.items():
            (folder / name).write_text(text)
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or b""
        raise Unavailable(f"{error}: {said.decode(errors='replace')[-500:]}") from error
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _fetch(state: Path, suite: str, packages: Sequence[str]) -> list[Path]:
    """Download the packages and all that they depend on into a private state of `apt-get`."""
    shutil.rmtree(state, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "--yes", "--download-only", "install", *packages])
    return sorted((state / "cache" / "archives").glob("*.deb"))


def _mirror() -> str:
    """Return the mirror of this host's own sources, which is perhaps the only one in reach."""
    for path in sorted(Path("/etc/apt/sources.list.d").glob("debian*.sources")):
        if found := re.search(r"^URIs:\s*(\S+)", path.read_text(), re.M):
            return found[1]
    listed = Path("/etc/apt/sources.list")
    text = listed.read_text() if listed.exists() else ""
    found = re.search(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+/debian/?)\s", text, re.M)
    return found[1] if found else _PUBLIC_MIRROR


def _unpack(archive: Path, folder: Path) -> None:
    content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
    # Documentation is more than a third of the files, and nobody reads it here.
    skipped = ["--exclude=./usr/share/doc/*", "--exclude=./usr/share/man/*"]
    untar = ["tar", "-x", "-C", str(folder), "--keep-directory-symlink", *skipped]
    with content:
        subprocess.run(
            untar, stdin=content.stdout, check=True, capture_output=True, timeout=BUILD_LIMIT_S
        )


def _run(argv: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    subprocess.run(argv, check=True, capture_output=True, env=environment, timeout=BUILD_LIMIT_S)
