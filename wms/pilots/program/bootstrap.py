"""Bootstrap script for the batch system: fetches what a manifest lists and becomes the pilot.

Also the secret by which a pilot registers.
"""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

_SHA256 = re.compile(r"[0-9a-f]{64}")

# The shell only looks for a Python. The secret comes as a variable: of the shell, where the element
# wrote it into the script, or of the environment. It goes on through pipes, never by arguments.
_SCRIPT = r"""#!/bin/sh
# Pilotage pilot: fetches what its manifest lists, verifies it, and becomes the pilot program.
umask 077
secret=${PILOTAGE_SECRET:-}
unset PILOTAGE_SECRET
# Where the script would stay beside the payloads, it goes: it may hold secrets.
[ -n "${PILOTAGE_SCRIPT:-}" ] && rm -f -- "$PILOTAGE_SCRIPT"
for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 ''; do
  [ -n "$python" ] || { echo "pilot: no Python 3.9 or newer on this node" >&2; exit 69; }
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && break
done
exec "$python" -I - 3<<END-OF-SECRET <<'END-OF-BOOTSTRAP'
$secret
END-OF-SECRET
import ctypes
# Before the secret is here: nobody of this account may look into this process from now on.
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
import hashlib, json, os, random, re, shutil, sys, tempfile, time
import urllib.error, urllib.request

SERVER = @SERVER@
MANIFEST = @MANIFEST@
PROXY = @PROXY@
HOLD_S = @HOLD_S@
RETRY_S = 1800
MOST_BYTES = 4 * 1024 * 1024
STARTED = time.monotonic()


# Something was found out before anything was executed.
class Unfit(Exception):
    pass


def say(text):
    print("pilot: " + text, flush=True)


def openers():
    if PROXY:
        through = urllib.request.ProxyHandler({"http": PROXY, "https": PROXY})
        yield urllib.request.build_opener(through)
    yield urllib.request.build_opener()


# What the proxy has, or the server where the proxy does not answer.
def get(path):
    problem = None
    for opener in openers():
        try:
            with opener.open(SERVER + "/pilot/v1/" + path, timeout=30) as answer:
                content = answer.read(MOST_BYTES + 1)
                if answer.length and len(content) <= MOST_BYTES:
                    raise OSError("the answer was cut")
                return content
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                raise Unfit("%s is missing: %s" % (path, error))
            problem = error
        except (OSError, ValueError) as error:
            problem = error
        except Exception as error:
            # http.client's: an answer that was cut, or is none.
            problem = OSError(repr(error))
    raise OSError("%s: %s" % (path, problem))


# The content with this hash: asked for again while nobody answers, and never another one.
def fetch(path, sha256):
    asked, pause = time.monotonic(), 1.0
    while True:
        try:
            content = get(path)
            break
        except OSError as error:
            if time.monotonic() - asked > RETRY_S:
                raise Unfit("cannot fetch %s" % error)
            say("%s; next try in %.0f s" % (error, pause))
        time.sleep(pause * random.uniform(0.7, 1.0))
        pause = min(pause * 2, 30.0 if time.monotonic() - asked > 120 else 5.0)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise Unfit("%s has SHA-256 %s: not run" % (path, found))
    return content


# Name and size of every file by its hash; a manifest that is none lists nothing.
def files_of(manifest):
    try:
        if manifest["format"] != 1:
            raise ValueError("format %r" % (manifest["format"],))
        entries = [manifest["agent"]] + [c for c in manifest["checks"] if not c["builtin"]]
        files = {entry["sha256"]: entry["size_bytes"] for entry in entries}
        if not all(re.match("[0-9a-f]{64}$", sha256) for sha256 in files):
            raise ValueError("a hash that is none")
        return files
    except (KeyError, TypeError, ValueError) as error:
        raise Unfit("the manifest cannot be understood: %r" % error)


# Put what the manifest lists, and nothing else, into the work directory.
def provide(work_dir):
    content = fetch("manifests/" + MANIFEST, MANIFEST)
    try:
        manifest = json.loads(content)
    except ValueError as error:
        raise Unfit("the manifest is not JSON: %s" % error)
    folder = os.path.join(work_dir, "files")
    os.mkdir(folder)
    listed = files_of(manifest)
    for sha256, size_bytes in listed.items():
        content_of_file = fetch("files/" + sha256, sha256)
        if len(content_of_file) != size_bytes:
            raise Unfit("files/%s has %d bytes: not run" % (sha256, len(content_of_file)))
        with open(os.path.join(folder, sha256), "wb") as target:
            target.write(content_of_file)
    if set(os.listdir(folder)) != set(listed):
        raise Unfit("there are files that the manifest does not list: not run")
    with open(os.path.join(work_dir, "manifest.json"), "wb") as target:
        target.write(content)
    program = os.path.join(work_dir, "agent.pyz")
    os.rename(os.path.join(folder, manifest["agent"]["sha256"]), program)
    return program


# Tell the server, and keep the slot a while: the next pilot would fare no better here.
def give_up(pilot, secret, reason):
    say("unfit: " + reason)
    body = json.dumps({"pilot": pilot, "secret": secret, "reason": reason}).encode()
    headers = {"Content-Type": "application/json"}
    for pause in (1, 5, 20, 0):
        try:
            request = urllib.request.Request(SERVER + "/pilot/v1/unfit", body, headers)
            urllib.request.urlopen(request, timeout=30).close()
            break
        except urllib.error.HTTPError as error:
            say("the server did not take this: %s" % error)
            if error.code < 500:
                break
        except Exception as error:
            say("the server could not be told: %r" % error)
        time.sleep(pause * random.uniform(0.7, 1.0))
    time.sleep(max(0.0, HOLD_S - (time.monotonic() - STARTED)))
    sys.exit("pilot: unfit: " + reason)


with open(3) as given:
    pilot, _, secret = given.read().strip().partition(":")
if not secret:
    sys.exit("pilot: it was given no secret")
scratch = os.environ.get("TMPDIR") or os.getcwd()
work_dir = None
try:
    work_dir = tempfile.mkdtemp(prefix="pilotage-", dir=scratch)
    path = provide(work_dir)
except (Unfit, OSError) as error:
    if work_dir:
        shutil.rmtree(work_dir, ignore_errors=True)
    is_full = isinstance(error, OSError)
    give_up(pilot, secret, "cannot write to %s: %s" % (scratch, error) if is_full else str(error))
config = {
    "server": SERVER, "pilot": pilot, "secret": secret, "work_dir": work_dir,
    "manifest_sha256": MANIFEST, "used_s": time.monotonic() - STARTED,
}
reader, writer = os.pipe()
os.write(writer, json.dumps(config).encode())
os.close(writer)
os.dup2(reader, 0)
os.close(reader)
os.execv(sys.executable, [sys.executable, "-I", path])
END-OF-BOOTSTRAP
"""


def pilot_secret(pilot: str, secret: str) -> str:
    """Secret that the script needs to register one pilot, once, as its element passes it on."""
    return f"{pilot}:{secret}"


def render_script(
    server_url: str,
    manifest_sha256: str,
    *,
    http_proxy: str = "",
    hold_s: int = 0,
) -> str:
    """Return the script for a batch, without any secret: each pilot finds its own.

    It fetches through `http_proxy` where that answers. A pilot that finds something wrong keeps its
    slot until `hold_s` after its start. Raises ValueError for what is no address or no hash.
    """
    for url in [server_url, *filter(None, [http_proxy])]:
        if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise ValueError(f"{url!r} is not an http or https address")
    if not _SHA256.fullmatch(manifest_sha256):
        raise ValueError(f"{manifest_sha256!r} is not a SHA-256")
    # JSON lists of strings are Python literals too, on one line, without any quoting trouble.
    values = {
        "SERVER": server_url.rstrip("/"),
        "MANIFEST": manifest_sha256,
        "PROXY": http_proxy,
        "HOLD_S": hold_s,
    }
    return re.sub("@([A-Z_]+)@", lambda found: json.dumps(values[found[1]]), _SCRIPT)
