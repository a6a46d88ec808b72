"""Command `watch`: a bar for each DAG and cluster, until what is waited for is so."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import Any, Union

from ..client import Client
from ..errors import NoAnswer, TimedOut, UsageError
from ..flows.events import News, patient
from ..model import Cluster, Dag
from .lists import cluster_row, dag_row
from .printing import Row, is_terminal, say, say_json, tell
from .targets import target

_PAUSE_S = 10.0
_MOST_TOLD = 5
#: Objects of a kind that the portal follows at once.
_MOST_FOLLOWED = 100
_ACTIVE = {"dag": ("idle", "running", "held", "halted"), "cluster": ("active", "held")}
_GROUPS: Mapping[str, Callable[[Sequence[bool]], bool]] = {
    "all": all,
    "any": any,
    "none": lambda found: not any(found),
}
_ENDED, _NOT_WELL = "ended", 1
Run = Union[Dag, Cluster]
Show = Callable[[Sequence[Run]], None]


@dataclass(frozen=True)
class Exit:
    """End of watching: when all, any or none of the objects are in a state; with a code."""

    state: str
    group: str
    code: int | None

    def is_met(self, runs: Sequence[Run]) -> bool:
        """Whether it is so now."""
        return _GROUPS[self.group]([_is_in(run, self.state) for run in runs])


def watch(client: Client, options: Namespace) -> int:
    """Show progress until all have ended, or an --exit is met; 1 if one ended badly."""
    exits = [*map(read_exit, options.exit), Exit(_ENDED, "all", None)]
    chosen = _chosen(client, options)
    if not any(chosen.values()):
        tell("Nothing of yours is under way.")
        return 0
    until = None if options.timeout is None else time.monotonic() + options.timeout
    news = _news(chosen)
    client.run(patient(news.begin))
    with _shown(options) as show:
        while True:
            runs = _looked_up(client, chosen)
            show(runs)
            met = next((each for each in exits if each.is_met(runs)), None)
            if met is not None:
                break
            left_s = None if until is None else until - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimedOut(f"{options.timeout:g} s are over, and {_states(runs)}.")
            client.run(news.wait(left_s))
    if options.json:
        say_json([dict(_row(run)) for run in runs])
    if met.code is not None:
        return met.code
    return _NOT_WELL if any(run.has_ended and not run.is_well for run in runs) else 0


def read_exit(text: str) -> Exit:
    """End that is written as STATE,WHICH[,CODE], the first two in any order. Raises UsageError."""
    words = [word.strip().lower() for word in text.split(",")]
    code = words.pop() if len(words) == 3 else ""
    groups = [word for word in words if word in _GROUPS]
    states = [word for word in words if word not in _GROUPS]
    if len(groups) != 1 or len(states) != 1 or (code and not code.isdigit()):
        raise UsageError(
            f"--exit {text}: write STATE,WHICH or STATE,WHICH,CODE; WHICH is all, any or none, "
            "STATE is active, idle, running, held, done, failed, removed or ended."
        )
    return Exit(states[0], groups[0], int(code) if code else None)


def _is_in(run: Run, state: str) -> bool:
    if state == "active":
        return not run.has_ended
    if state == _ENDED:
        return run.has_ended
    if state in ("done", "completed"):
        return run.is_well
    if state == "failed" and isinstance(run, Cluster):
        return run.has_ended and not run.is_well
    return run.state == state


def _chosen(client: Client, options: Namespace) -> dict[str, list[int]]:
    """Numbers of DAGs and clusters that are watched."""
    if options.targets:
        named = [target(text, "dag", "cluster") for text in options.targets]
        return {kind: [each.id for each in named if each.kind == kind] for kind in _ACTIVE}
    owner = client.username()
    if not owner:
        raise UsageError("This portal does not tell who you are: name what is to be watched.")
    return {
        "dag": [dag.id for dag in client.dags(owner=owner, state=_ACTIVE["dag"])],
        "cluster": [c.id for c in client.clusters(owner=owner, state=_ACTIVE["cluster"])],
    }


def _news(chosen: Mapping[str, list[int]]) -> News:
    """Events of the objects; of more than one question may name, only that a while is over."""
    is_few = all(len(ids) <= _MOST_FOLLOWED for ids in chosen.values())
    return News({kind: ids or None for kind, ids in chosen.items()} if is_few else None)


def _looked_up(client: Client, chosen: Mapping[str, list[int]]) -> list[Run]:
    """The objects as they are now; one that nobody finds is asked for alone, and tells so."""
    runs: list[Run] = []
    while True:
        try:
            if ids := chosen["dag"]:
                found = {dag.id: dag for dag in client.dags(id=ids, limit=len(ids))}
                runs += [found.get(each) or client.dag(each) for each in ids]
            if ids := chosen["cluster"]:
                known = {each.id: each for each in client.clusters(id=ids, limit=len(ids))}
                runs += [known.get(each) or client.cluster(each) for each in ids]
        except NoAnswer as error:
            tell(f"{error} It is asked again.")
            runs.clear()
            sleep(_PAUSE_S)
        else:
            return runs


def _states(runs: Sequence[Run]) -> str:
    """States of the first objects that have not ended, or of the first of all."""
    rows = [_row(run) for run in runs if not run.has_ended] or [*map(_row, runs)]
    told = [f"{row['ref']} is {row['state']}" for row in rows[:_MOST_TOLD]]
    more = f", and {len(rows) - len(told)} more" if len(rows) > len(told) else ""
    return ", ".join(told) + more


def _row(run: Run) -> Row:
    return dag_row(run) if isinstance(run, Dag) else cluster_row(run)


@contextmanager
def _shown(options: Namespace) -> Iterator[Show]:
    if options.json:
        yield lambda runs: None
    elif is_terminal():
        with _bars() as show:
            yield show
    else:
        yield _Lines().show


class _Lines:
    """A line whenever something has changed."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def show(self, runs: Sequence[Run]) -> None:
        for run in runs:
            row = _row(run)
            line = f"{row['ref']} {row['name']} {_progress(row)}"
            if self._told.get(row["ref"]) != line:
                self._told[row["ref"]] = line
                say(line)


def _progress(row: Row) -> str:
    counts = row["counts"]
    where = f" at {row['site']}" if row.get("site") else ""
    why = row.get("unmatched_reason") or row.get("state_reason") or ""
    return (
        f"{row['state']}{where}: {counts['done']} of {counts['total']} done, "
        f"{counts['under_way']} under way, {counts['failed']} failed" + (f" ({why})" if why else "")
    )


@contextmanager
def _bars() -> Iterator[Show]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.fields[ref]} {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns) as progress:
        tasks: dict[str, Any] = {}

        def show(runs: Sequence[Run]) -> None:
            for run in runs:
                row = _row(run)
                counts, ref = row["counts"], row["ref"]
                if ref not in tasks:
                    tasks[ref] = progress.add_task(row["name"], ref=ref, told="")
                told = f"{row['state']}, {counts['under_way']} under way"
                told += f", [red]{counts['failed']} failed[/red]" if counts["failed"] else ""
                progress.update(
                    tasks[ref], completed=counts["done"], total=counts["total"], told=told
                )

        yield show
