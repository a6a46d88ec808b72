"""Command `follow`: has the portal follow a DAG that HTCondor's DAGMan runs, by its log.

It goes on through rotations of the log and through outages; called again after it was killed, it
goes on where the portal is.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from time import sleep
from typing import Callable

from ..client import Client
from ..errors import Conflict, NoAnswer
from ..files.found import dag_files
from ..files.rotated_log import RotatedLog
from ..flows.asking import new_key
from ..model import FollowedLog
from .printing import say, say_json, tell

#: What a portal takes at once.
_PIECE_BYTES = 1024 * 1024
_NOT_WELL = 1


def follow(client: Client, options: Namespace) -> int:
    """Send the DAG's files, then its log, until the DAG has ended; 1 if it ended badly."""
    return _Sender(client, options).run()


class _Sender:
    """Sends the log of one DAG, piece by piece, from where the portal is."""

    def __init__(self, client: Client, options: Namespace) -> None:
        self._client, self._options = client, options
        path = Path(options.log)
        state = (
            Path(options.state) if options.state else path.with_name(f"{path.name}.pilotage.json")
        )
        self._log = RotatedLog(path, state)
        #: The last conflict that was told.
        self._told = ""

    def run(self) -> int:
        dag_id = self._dag()
        status = self._patiently(lambda: self._client.followed_log(dag_id))
        sent: tuple[int, int] | None = None
        while not status.is_over:
            self._log.look(status.offset)
            piece = self._log.read(status.offset, _PIECE_BYTES)
            if (status.offset, len(piece)) == sent:
                # An event that is not whole yet, or nothing new.
                if self._options.once:
                    return self._end(status, 0)
                sleep(self._options.every)
                continue
            offset, sent = status.offset, (status.offset, len(piece))
            try:
                status = self._patiently(
                    lambda o=offset, p=piece: self._client.send_log(dag_id, o, p)  # type: ignore[misc]
                )
            except Conflict as error:
                if self._options.once:
                    raise
                status, sent = self._after_conflict(dag_id, str(error)), None
        return self._end(status, 0 if status.dag_state == "completed" else _NOT_WELL)

    def _end(self, status: FollowedLog, code: int) -> int:
        if self._options.json:
            say_json(status.raw)
        else:
            say(f"d{status.dag} is {status.dag_state} {status.fault}".rstrip())
        return code

    def _after_conflict(self, dag_id: int, answer: str) -> FollowedLog:
        """Progress as the portal has it: somebody else sends the log too, or the DAG is held."""
        if answer != self._told:
            tell(answer)
            self._told = answer
        sleep(self._options.every)
        return self._patiently(lambda: self._client.followed_log(dag_id))

    def _dag(self) -> int:
        """The DAG that was begun before, or is begun now, once for a state file."""
        facts = self._log.facts
        if self._options.dag is not None:
            facts["dag"] = self._options.dag
        if "dag" not in facts:
            # Written first: an answer that is lost must not make two DAGs.
            facts.setdefault("key", new_key())
            self._log.keep()
            facts["dag"] = self._patiently(self._begin).dag
        self._log.keep()
        tell(f"d{facts['dag']} is followed by {self._options.log}")
        return int(facts["dag"])

    def _begin(self) -> FollowedLog:
        options = self._options
        found = dag_files(
            [options.dag_file, *options.more],
            directory=options.directory,
            root=options.root,
            uses_dag_dir=options.usedagdir,
        )
        texts = {
            "log": options.log,
            "rescue_number": str(options.rescue or ""),
            "allow_events": "" if options.allow_events is None else str(options.allow_events),
            "time_zone": options.time_zone,
        }
        return self._client.follow_dag(found, texts, self._log.facts["key"])

    def _patiently(self, ask: Callable[[], FollowedLog]) -> FollowedLog:
        """The answer, however long the portal is away."""
        while True:
            try:
                return ask()
            except NoAnswer as error:
                if self._options.once:
                    raise
                tell(f"{error} It is asked again.")
                sleep(self._options.every)
