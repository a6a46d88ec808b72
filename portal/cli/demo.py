"""`manage.py demo`: start the portal, run the example production on it, and show how it goes.

Afterwards the portal stays up until Ctrl-C; with --once it stops, and the exit code tells whether
every node was completed. A changed copy of the example is run by --example.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.cli.child import ChildPortal, PortalDidNotStart
from portal.cli.client import ApiError, Client, Part, Unreachable
from portal.cli.self_test import lines_of
from portal.cli.state_directory import BASE, StateDirectory
from portal.cli.steps import ProgressTimeout, Stalled

EXAMPLE = BASE / "examples" / "montecarlo"
DAG_FILE = "montecarlo.dag"
#: Files of the example that are not part of the production.
NOT_SENT = {"README.md"}
POLL_S = 2
ENDS = {"completed", "failed", "removed"}
#: A production in which nothing changes for so long has no chance to end by itself.
LIMIT_S = 10 * 60


class DemoFailed(Exception):
    """The example production did not complete; the text says why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a production."""

    dag: dict[str, Any]
    seconds: float


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="manage.py demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end when the production has ended")
    parser.add_argument(
        "--example", type=_folder, default=EXAMPLE, metavar="FOLDER",
        help="run the example as it is in this folder, a copy of examples/montecarlo",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    state_dir = StateDirectory.from_environment()
    # A demonstration is not for waiting: a job that loses its pilot is tried again soon.
    os.environ.setdefault("PILOTAGE_RESCHEDULE_PAUSES_S", "1,2,5")
    # Both ways of ending leave the block below in order, which stops the portal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _say("Starting the portal ...")
    try:
        with ChildPortal(state_dir, tell=_say_when) as portal:
            client = _prepare(state_dir, portal)
            ended = follow(client, submit_example(client, options.example), portal.check)
            conclude(client, ended, None if options.once else lambda: _stay(portal))
    except KeyboardInterrupt:
        _say("Stopped.")
        return 0 if not options.once else 130
    except (PortalDidNotStart, ApiError, DemoFailed) as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    return 0


def submit_example(client: Client, folder: Path) -> int:
    """Send the example's files as a new production; the id of its DAG."""
    answer = client.post_files("dags/", example_parts(folder), key=secrets.token_hex(16))
    return int(answer["id"])


def example_parts(folder: Path) -> list[Part]:
    """The upload: the DAG, its description as a whole, and all other files of the folder."""
    whole = {DAG_FILE: "dag", "montecarlo.sub": "description"}
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [Part(whole.get(f.name, "file"), f) for f in files if f.name not in NOT_SENT]


def follow(client: Client, dag_id: int, check: Callable[[], None]) -> Ended:
    """Print a line whenever something changed, until the DAG has ended.

    The web server may be away for a while; `check` raises when it will not come back.
    """
    began = time.monotonic()
    timeout = ProgressTimeout(LIMIT_S, _say_when)
    while True:
        check()
        try:
            dag = client.get(f"dags/{dag_id}/")
            lines = [*first_pilots(client), progress_line(dag)]
            timeout.saw(lines)
            if dag["state"] in ENDS:
                return Ended(dag, time.monotonic() - began)
            timeout.check()
        except Unreachable:
            pass
        except Stalled as error:
            raise DemoFailed(str(error)) from error
        time.sleep(POLL_S)


def conclude(client: Client, ended: Ended, stay: Callable[[], None] | None) -> None:
    """Print how the production ended, and `stay`; without that raise DemoFailed if it failed."""
    _say(summary(client, ended))
    is_completed = ended.dag["state"] == "completed"
    if stay is not None:
        if not is_completed:
            _say(reason_of(client, ended.dag))
        _say("The portal stays up; Ctrl-C stops it.")
        stay()
    elif not is_completed:
        raise DemoFailed(reason_of(client, ended.dag))


def first_pilots(client: Client) -> list[str]:
    """A line for each site on which a pilot works."""
    running = client.get("pilots/?state=running")["results"]
    return [f"a pilot works at {site}" for site in sorted({each["site"] for each in running})]


def progress_line(dag: dict[str, Any]) -> str:
    """One line: state, site, and how many nodes are in which state."""
    counts = dict(dag["nodes"])
    total, done = counts.pop("total"), counts.pop("done")
    others = "".join(f", {count} {state}" for state, count in counts.items() if count)
    where = f" at {dag['site']}" if dag["site"] else ""
    why = dag["state_reason"] or dag["unmatched_reason"]
    reason = f" ({why})" if why else ""
    return f"{dag['name']} {dag['state']}{where}{reason}: {done} of {total} nodes done{others}"


def summary(client: Client, ended: Ended) -> str:
    """Summary of a production for the terminal: duration and the result of the physics."""
    dag = ended.dag
    text = f"The production is {dag['state']} after {ended.seconds:.0f} s."
    if dag["state"] != "completed":
        return text
    found = client.get(f"dags/{dag['id']}/files/summary.json")
    return (
        f"{text}\n{found['entries']} muon pairs of {found['jobs']} jobs, "
        f"peak at {found['peak_gev']:.3f} +- {found['peak_error_gev']:.3f} GeV."
    )


def reason_of(client: Client, dag: dict[str, Any]) -> str:
    """Reason why a production did not complete, with the nodes that failed."""
    failed = client.get(f"dags/{dag['id']}/nodes/?state=failed")["results"]
    reasons = [f"{node['name']}: {node['state_reason'] or 'failed'}" for node in failed]
    reasons = [dag["state_reason"], *reasons] if dag["state_reason"] else reasons
    return f"the production is {dag['state']}: {'; '.join(reasons) or 'no reason is known'}"


def _folder(told: str) -> Path:
    folder = Path(told)
    if not (folder / DAG_FILE).is_file():
        raise argparse.ArgumentTypeError(f"{told} has no file {DAG_FILE}")
    return folder


def _prepare(state_dir: StateDirectory, portal: ChildPortal) -> Client:
    """Set the example's surroundings up, print where and how to log in, and return a client."""
    os.environ["PILOTAGE_VAR"] = str(state_dir.var)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    from django.db import connections

    from portal.cli.demo_site import prepare_operator, prepare_sites
    from portal.selftest.registry import run_all
    from wms.core.actors import Actor

    actor = Actor.system("demo")
    prepare_sites(state_dir, actor=actor)
    operator = prepare_operator(state_dir, actor=actor)
    for line in lines_of(run_all()):
        _say(line)
    connections.close_all()
    _say(f"Portal:  {portal.url}\nLogin:   {operator.username}\nPassword: {operator.password}")
    _say(f"Token for the API: {state_dir.run / 'operator.token'}; logs: {state_dir.log}")
    return Client(portal.local_url, operator.token)


def _stay(portal: ChildPortal) -> None:
    while True:
        portal.check()
        time.sleep(1)


def _say_when(line: str) -> None:
    _say(f"{time.strftime('%H:%M:%S')}  {line}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
