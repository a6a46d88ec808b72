"""Command that has a portal elsewhere follow a DAG: it sends the DAG's files, then its log.

    python3 -m portal.cli.send_log DAG_FILE LOG --portal URL --token-file FILE

For the host on which HTCondor's DAGMan runs: it needs Python and this source tree, nothing else of
Pilotage. It goes on through rotations of the log and through outages of portal and network; called
again after it was killed, it goes on where the portal is.

Exit code 0: the DAG has ended well, or with `--once` all was sent; 1: it ended otherwise; 2: the
log cannot be followed.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from portal.cli.client import ApiError, Client, Part, Unreachable
from portal.cli.folder_archive import pack_folder
from portal.cli.portal_address import add_portal_arguments, portal_client
from portal.cli.rotated_log import LogLost, RotatedLog

#: What a portal takes at once.
PIECE_BYTES = 1024 * 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_NOT_WELL, _FAILED = 1, 2
_CONFLICT = 409


def main(arguments: Sequence[str]) -> int:
    """Follow the DAG as the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        sender = LogSender(portal_client(options.portal, options.token_file), options)
        return sender.run()
    except (ApiError, LogLost, OSError, ValueError) as error:
        sys.stderr.write(f"send_log: {error}\n")
        return _FAILED
    except KeyboardInterrupt:
        return _FAILED


class LogSender:
    """Sends the log of one DAG, piece by piece, from where the portal is."""

    def __init__(self, client: Client, options: Namespace) -> None:
        self._client, self._options = client, options
        path: Path = options.log
        self._state = options.state or path.with_name(path.name + ".pilotage.json")
        self._log = RotatedLog(path, self._state)
        #: The last conflict that was told.
        self._told = ""

    def run(self) -> int:
        """Send until the DAG has ended, or once; the exit code."""
        place = f"dags/{self._dag()}/followed-log/"
        status = self._patiently(lambda: self._client.get(place))
        sent: tuple[int, int] | None = None
        while not status["is_over"]:
            offset = status["offset"]
            self._log.look(offset)
            piece = self._log.read(offset, PIECE_BYTES)
            if (offset, len(piece)) == sent:
                # An event that is not whole yet, or nothing new.
                if self._options.once:
                    return 0
                time.sleep(self._options.every)
                continue
            sent = offset, len(piece)
            try:
                status = self._patiently(lambda o=offset, p=piece: self._send(place, o, p))
            except ApiError as error:
                if error.status != _CONFLICT or self._options.once:
                    raise
                status, sent = self._after_conflict(place, str(error)), None
        self._say(f"DAG {status['dag']} is {status['dag_state']} {status['fault']}".rstrip())
        return 0 if status["dag_state"] == "completed" else _NOT_WELL

    def _send(self, place: str, offset: int, piece: bytes) -> Any:
        return self._client.post_bytes(f"{place}?offset={offset}", piece)

    def _after_conflict(self, place: str, answer: str) -> Any:
        """Progress as the portal has it: somebody else sends the log too, or the DAG is held."""
        if answer != self._told:
            self._say(answer)
            self._told = answer
        time.sleep(self._options.every)
        return self._patiently(lambda: self._client.get(place))

    def _dag(self) -> int:
        """The DAG that was begun before, or is begun now, once for a state file."""
        facts = self._log.facts
        if self._options.dag is not None:
            facts["dag"] = self._options.dag
        if "dag" not in facts:
            # Written first: an answer that is lost must not make two DAGs.
            facts.setdefault("key", secrets.token_hex(16))
            self._log.keep()
            facts["dag"] = self._patiently(self._begin)["dag"]
        self._log.keep()
        self._say(f"DAG {facts['dag']} is followed by {self._options.log}")
        return int(facts["dag"])

    def _begin(self) -> Any:
        options = self._options
        first: Path = options.dag_file
        directory = Path(options.directory or first.parent)
        top = Path(options.root or directory)
        names = [os.path.relpath(file, top) for file in (first, *options.more)]
        texts = [("dag", name) for name in names] + [("log", str(options.log))]
        if options.directory or not options.usedagdir:
            texts.append(("directory", os.path.relpath(directory, top)))
        texts += [("root", os.path.abspath(options.root))] if options.root else []
        texts += [("use_dag_dir", "true")] if options.usedagdir else []
        texts += [("rescue_number", str(options.rescue))] if options.rescue else []
        texts += [("allow_events", str(options.allow_events))] if options.allow_events else []
        texts += [("time_zone", options.time_zone)] if options.time_zone else []
        with tempfile.TemporaryDirectory(prefix="pilotage-") as folder:
            archive = Path(folder, "files.tar.gz")
            own = {options.log.resolve(), self._state.resolve()}
            for name in pack_folder(archive, top, names, without=own)[:20]:
                self._say(f"{name} is large, and told by its name only")
            key = self._log.facts["key"]
            return self._client.post_files(
                "dags/follow/", [Part("archive", archive)], key=key, texts=texts
            )

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """The answer, however long the portal is away; with `--once` for a minute."""
        pause_s, until_s = _FIRST_PAUSE_S, time.monotonic() + _LONGEST_PAUSE_S
        while True:
            try:
                return ask()
            except Unreachable as error:
                if self._options.once and time.monotonic() >= until_s:
                    raise
                self._say(f"{error}; once more in {pause_s:g} s")
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="send_log", description="Have a portal follow a DAG of HTCondor's DAGMan by its log."
    )
    parser.add_argument("dag_file", type=Path, metavar="DAG_FILE")
    parser.add_argument("log", type=Path, metavar="LOG", help="the job event log (*.nodes.log)")
    add_portal_arguments(parser, is_needed=True)
    parser.add_argument(
        "--and", action="append", default=[], type=Path, dest="more", metavar="DAG_FILE",
        help="a further DAG file that runs together with the first",
    )  # fmt: skip
    parser.add_argument("--rescue", type=int, metavar="N", help="the rescue that it began from")
    parser.add_argument("--dag", type=int, metavar="ID", help="a DAG that is followed already")
    parser.add_argument("--directory", metavar="DIR", help="where condor_submit_dag was called")
    parser.add_argument("--root", metavar="DIR", help="the folder that is sent, with it inside")
    parser.add_argument("--usedagdir", action="store_true", help="as condor_submit_dag -UseDagDir")
    parser.add_argument("--once", action="store_true", help="send what there is, and end")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--time-zone", help="of times that tell none; by default UTC")
    parser.add_argument("--allow-events", type=int, help="as DAGMAN_ALLOW_EVENTS")
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="what is kept; by default LOG.pilotage.json"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
