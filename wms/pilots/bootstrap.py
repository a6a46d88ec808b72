"""The script that a batch system runs: it fetches the pilot program, verifies it and becomes it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

_SHA256 = re.compile(r"[0-9a-f]{64}")

# The shell only looks for a Python. Secrets are in the here-document, so they appear neither among
# arguments nor in the environment; from there they go to the program through a pipe.
_SCRIPT = r"""#!/bin/sh
# Pilotage pilot: fetches the pilot program, verifies it and becomes it.
umask 077
# Where the script would stay beside the payloads, it goes: it holds the secrets of its whole batch.
[ -n "${PILOTAGE_SCRIPT:-}" ] && rm -f -- "$PILOTAGE_SCRIPT"
for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 ''; do
  [ -n "$python" ] || { echo "pilot: no Python 3.9 or newer on this node" >&2; exit 69; }
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && break
done
exec "$python" -I - <<'END-OF-BOOTSTRAP'
import hashlib, json, os, random, sys, tempfile, time, urllib.request

SERVER = @SERVER@
SHA256 = @SHA256@
PILOTS = @PILOTS@
PATIENCE_S = 1800


def fetch():
    started, pause = time.monotonic(), 1.0
    while True:
        try:
            with urllib.request.urlopen(SERVER + "/pilot/v1/agent.pyz", timeout=30) as answer:
                return answer.read()
        except (OSError, ValueError) as error:
            if time.monotonic() - started > PATIENCE_S:
                sys.exit("pilot: cannot fetch the pilot program: %s" % error)
            print("pilot: %s; next try in %.0f s" % (error, pause), flush=True)
        time.sleep(pause * random.uniform(0.7, 1.0))
        pause = min(pause * 2, 30.0 if time.monotonic() - started > 120 else 5.0)


index = int(os.environ.get("PILOTAGE_INDEX", "0"))
if not 0 <= index < len(PILOTS):
    sys.exit("pilot: index %d of a batch of %d" % (index, len(PILOTS)))
program = fetch()
found = hashlib.sha256(program).hexdigest()
if found != SHA256:
    sys.exit("pilot: the pilot program has SHA-256 %s instead of %s: not run" % (found, SHA256))
scratch = os.environ.get("TMPDIR") or os.getcwd()
work_dir = tempfile.mkdtemp(prefix="pilotage-", dir=scratch)
path = os.path.join(work_dir, "agent.pyz")
with open(path, "wb") as target:
    target.write(program)
pilot, secret = PILOTS[index]
mission = {"server": SERVER, "pilot": pilot, "secret": secret, "work_dir": work_dir}
reader, writer = os.pipe()
os.write(writer, json.dumps(mission).encode())
os.close(writer)
os.dup2(reader, 0)
os.close(reader)
os.execv(sys.executable, [sys.executable, "-I", path])
END-OF-BOOTSTRAP
"""


@dataclass(frozen=True, slots=True)
class PilotCredential:
    """What lets one pilot register, once."""

    pilot: str
    secret: str


def render_script(server_url: str, agent_sha256: str, pilots: Sequence[PilotCredential]) -> str:
    """Return the script for a batch; the pilot with PILOTAGE_INDEX i uses `pilots[i]`."""
    if urlsplit(server_url).scheme not in {"http", "https"} or not urlsplit(server_url).hostname:
        raise ValueError(f"{server_url!r} is not an http or https address")
    if not _SHA256.fullmatch(agent_sha256):
        raise ValueError(f"{agent_sha256!r} is not a SHA-256")
    # JSON lists of strings are Python literals too, on one line, without any quoting trouble.
    table = json.dumps([[str(each.pilot), each.secret] for each in pilots])
    return (
        _SCRIPT.replace("@SERVER@", json.dumps(server_url.rstrip("/")))
        .replace("@SHA256@", json.dumps(agent_sha256))
        .replace("@PILOTS@", table)
    )
