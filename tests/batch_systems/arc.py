"""Real ARC CE for tests (NorduGrid A-REX with REST) from Debian's package, with a CA of its own.

    python -m tests.batch_systems.arc start FOLDER
    python -m tests.batch_systems.arc stop FOLDER

Only root can start it: it runs in a chroot of unpacked packages. Jobs run as plain processes of the
account `pilot`. For tests and for trying things out only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.batch_systems.chroot import Chroot, ensure_namespaces
from tests.batch_systems.debian_root import debian_root
from tests.batch_systems.services import Unavailable, free_ports, locked, wait_until

SUITE, PACKAGES = "bookworm", ("nordugrid-arc-arex",)
START_LIMIT_S = 60.0
QUEUE = "fork"
_CLIENT = "/DC=test/CN=pilotage"
_FOLDERS = ("arc", "var", "tmp", "usr/share/arc")

_CONFIGURATION = """\
[common]
hostname=localhost
x509_host_key=/arc/ca/host.key
x509_host_cert=/arc/ca/host.pem
x509_cert_dir=/arc/ca/certificates
[authgroup:all]
subject={client}
[mapping]
map_to_user=all pilot:pilot
[lrms]
lrms=fork
gnu_time=/usr/bin/time
[arex]
controldir=/arc/control
sessiondir=/arc/session
pidfile=/arc/run/arex.pid
logfile=/arc/log/arex.log
joblog=
scratchdir=
shared_filesystem=yes
tmpdir=/tmp
wakeupperiod=1
defaultttl=86400 86400
maxjobs=20000 5000 -1 -1 20
[arex/data-staging]
logfile=/arc/log/datastaging.log
[arex/ws]
wsurl=https://localhost:{port}/arex
logfile=/arc/log/arex-ws.log
pidfile=/arc/run/arex-ws.pid
[arex/ws/jobs]
allowaccess=all
[infosys]
logfile=/arc/log/infoprovider.log
[infosys/glue2]
[infosys/cluster]
[queue:{queue}]
"""
_SIGNING_POLICY = """\
access_id_CA   X509    '/DC=test/CN=Test CA'
pos_rights     globus  CA:sign
cond_subjects  globus  '"/DC=test/*"'
"""
#: The CE's programs, of which this one has its own copy with shorter pauses.
_SCRIPTS = "usr/share/arc"
_START = """
export ARC_CONFIG=/arc/arc.conf
rm -f /arc/run/*
for each in arex arex-ws; do /usr/share/arc/arc-$each-start; done
"""


@dataclass(frozen=True, slots=True)
class Arc:
    """A CE that is up, and what a client needs to speak to it."""

    folder: Path
    port: int
    chroot: Chroot

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/arex"

    @property
    def ca_file(self) -> Path:
        return self.folder / "arc/ca/ca.pem"

    @property
    def certificate_file(self) -> Path:
        return self.folder / "arc/ca/client.pem"

    @property
    def key_file(self) -> Path:
        return self.folder / "arc/ca/client.key"

    def kill(self) -> None:
        """End the service and all jobs at once; `start` brings back what its disk has."""
        self.chroot.kill()


def start(folder: Path) -> Arc:
    """Start the CE if it is not up, and return when it answers; raise `Unavailable`."""
    ensure_namespaces()
    if shutil.which("openssl") is None:
        raise Unavailable("not installed: openssl")
    with locked(folder / "lock"):
        root = debian_root(SUITE, PACKAGES)
        arc = Arc(folder, _configure(folder, root), Chroot(root, folder, _FOLDERS))
        if not arc.chroot.is_up():
            arc.chroot.start(_START)
        if not wait_until(lambda: _answers(arc), START_LIMIT_S):
            raise Unavailable(f"the CE did not come up; see {folder}/arc/log")
    return arc


def stop(folder: Path) -> None:
    """End the CE that `start` started in this folder, with all its jobs."""
    Chroot(Path("/"), folder, ()).kill()


def _configure(folder: Path, root: Path) -> int:
    """Lay out the folder once, and return the port of the CE."""
    port_file = folder / "port"
    if port_file.exists():
        return int(port_file.read_text())
    [port] = free_ports(1)
    for name in ("control", "session", "run", "log", "ca/certificates"):
        (folder / "arc" / name).mkdir(parents=True, exist_ok=True)
    for name in ("var/spool", "var/run", "var/lock", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    _hurry(root / _SCRIPTS, folder / _SCRIPTS)
    _make_certificates(folder / "arc/ca")
    # Else ARC computes parameters of 4096 bits for minutes.
    _openssl(
        "genpkey",
        "-genparam",
        "-algorithm",
        "DH",
        "-pkeyopt",
        "group:ffdhe2048",
        "-out",
        str(folder / "arc/control/dhparam.pem"),
    )
    (folder / "arc/arc.conf").write_text(
        _CONFIGURATION.format(port=port, queue=QUEUE, client=_CLIENT)
    )
    port_file.write_text(str(port))
    return port


def _hurry(source: Path, target: Path) -> None:
    """Copy the programs, and let them look every second instead of every ten or sixty."""
    shutil.copytree(source, target)
    scan = target / "scan-fork-job"
    scan.write_text(re.sub(r"^sleep 10$", "sleep 1", scan.read_text(), flags=re.M))
    # How often the service collects what it shows of its jobs; no line of arc.conf says it.
    start = target / "arc-arex-start"
    place, period = "<arex:gmconfig>", "InfoproviderWakeupPeriod"
    faster = f"<arex:{period}>1</arex:{period}>{place}"
    start.write_text(start.read_text().replace(place, faster))


def _make_certificates(folder: Path) -> None:
    """Make a certificate authority, and certificates of the host and of a client."""
    ca = [str(folder / "ca.pem"), str(folder / "ca.key")]
    _openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-out", ca[0],
        "-keyout", ca[1], "-subj", "/DC=test/CN=Test CA",
        "-addext", "basicConstraints=critical,CA:TRUE",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    for name, subject, extension in (
        ("host", "/DC=test/CN=localhost", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ("client", _CLIENT, "extendedKeyUsage=clientAuth"),
    ):
        certificate, key, request = (
            str(folder / f"{name}.{each}") for each in ("pem", "key", "csr")
        )
        extensions = folder / f"{name}.ext"
        extensions.write_text(f"{extension}\nkeyUsage=critical,digitalSignature,keyEncipherment\n")
        _openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request,
                 "-subj", subject)  # fmt: skip
        _openssl("x509", "-req", "-in", request, "-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial",
                 "-days", "30", "-out", certificate, "-extfile", str(extensions))  # fmt: skip
        os.chmod(key, 0o600)
    digest = _openssl("x509", "-in", ca[0], "-noout", "-hash").strip()
    shutil.copy(ca[0], folder / f"certificates/{digest}.0")
    (folder / f"certificates/{digest}.signing_policy").write_text(_SIGNING_POLICY)


def _openssl(*arguments: str) -> str:
    done = subprocess.run(
        ["openssl", *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        raise Unavailable(f"openssl {arguments[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _answers(arc: Arc) -> bool:
    context = ssl.create_default_context(cafile=arc.ca_file)
    context.load_cert_chain(arc.certificate_file, arc.key_file)
    try:
        with urllib.request.urlopen(f"{arc.url}/rest/1.0/info", context=context, timeout=5):
            return True
    except OSError:
        return False


def _main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.batch_systems.arc")
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("folder", type=Path, help="all of its state; it may be removed after stop")
    parsed = parser.parse_args(arguments)
    folder = parsed.folder.resolve()
    if parsed.command == "stop":
        stop(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        arc = start(folder)
    except Unavailable as error:
        sys.exit(f"arc: {error}")
    settings = {
        "url": arc.url,
        "ca_file": str(arc.ca_file),
        "certificate_file": str(arc.certificate_file),
        "key_file": str(arc.key_file),
    }
    sys.stdout.write(f"settings of a queue with the element arc:\n{json.dumps(settings)}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
