"""Commands that steer: hold, release, halt, rm, rematch, and bulk for many at once."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from ..client import Client
from ..errors import PilotageError, UsageError
from ..model import Cluster, Dag, Job, Pilot
from .printing import say, say_json, tell
from .targets import Target, target

Steered = Callable[[Client, Target, Namespace], Any]


def hold(client: Client, options: Namespace) -> int:
    """Hold DAGs and clusters."""
    return _each(
        client,
        options,
        {
            "dag": lambda c, t, o: c.hold_dag(t.id, o.reason),
            "cluster": lambda c, t, o: c.hold_cluster(t.id, o.reason),
        },
    )


def release(client: Client, options: Namespace) -> int:
    """Release DAGs and clusters."""
    return _each(
        client,
        options,
        {
            "dag": lambda c, t, o: c.release_dag(t.id, o.reason),
            "cluster": lambda c, t, o: c.release_cluster(t.id, o.reason),
        },
    )


def halt(client: Client, options: Namespace) -> int:
    """Halt of DAGs: what is submitted ends, nothing new starts."""
    return _each(client, options, {"dag": lambda c, t, o: c.halt_dag(t.id, o.reason)})


def rm(client: Client, options: Namespace) -> int:
    """End DAGs, clusters, jobs and pilots."""
    return _each(
        client,
        options,
        {
            "dag": lambda c, t, o: c.remove_dag(t.id, o.reason),
            "cluster": lambda c, t, o: c.remove_cluster(t.id, o.reason),
            "job": lambda c, t, o: c.kill_job(t.id, o.reason),
            "pilot": lambda c, t, o: c.remove_pilot(t.name, o.reason),
        },
    )


def rematch(client: Client, options: Namespace) -> int:
    """Take DAGs from their sites."""

    def take(c: Client, named: Target, o: Namespace) -> Dag:
        return c.rematch_dag(named.id, o.reason, lets_finish=o.lets_finish or None, avoid_s=o.avoid)

    return _each(client, options, {"dag": take})


def bulk(client: Client, options: Namespace) -> int:
    """Preview of acting on many objects; with --confirm it is begun."""
    chosen: dict[str, list[str]] = {}
    for name, value in parse_qsl(options.filter, keep_blank_values=True):
        chosen.setdefault(name, []).append(value)
    if not chosen:
        raise UsageError(
            f"`{options.filter}` chooses nothing: write it as 'owner=alice&state=idle'."
        )
    preview = client.preview_bulk(
        options.list,
        options.action,
        options.reason,
        filters=chosen,
        arguments=dict(map(_argument, options.arguments)),
    )
    if options.confirm is None:
        _say_preview(preview, options)
        return 0
    operation = client.begin_bulk(preview["operation_token"], options.confirm)
    if options.json:
        say_json(operation)
    else:
        say(f"Operation {operation['id']} is {operation['state']}: "
            f"{client.profile.url}/bulk/{operation['id']}/")  # fmt: skip
    return 0


def _say_preview(preview: Mapping[str, Any], options: Namespace) -> None:
    if options.json:
        say_json(preview)
        return
    total, fitting = preview["total"], preview["fitting"]
    say(f"{options.action}: {total} {options.list}, {fitting} of them can be changed now")
    for name in ("states", "groups", "skipped"):
        for each in preview[name]:
            say(f"  {each['count']:>7} {each['name']}")
    for effect in preview["effects"]:
        say(f"  {effect}")
    say(f"Nothing was done: --confirm {total} does it.")


def _argument(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    words: dict[str, Any] = {"true": True, "false": False}
    return name, words.get(value, int(value) if value.isdigit() else value)


def _each(client: Client, options: Namespace, of: Mapping[str, Steered]) -> int:
    """Steer each object; what is refused is told, and the others are steered all the same."""
    named = [target(text, *of) for text in options.targets]
    done, code = [], 0
    for each in named:
        try:
            changed = of[each.kind](client, each, options)
        except PilotageError as error:
            tell(f"pilotage: {each.text}: {error}")
            code = max(code, error.exit_code)
            continue
        done.append(changed.raw)
        if not options.json:
            say(f"{_ref(changed)} is {_told(changed)}")
    if options.json:
        say_json(done)
    return code


def _ref(changed: Dag | Cluster | Job | Pilot) -> str:
    if isinstance(changed, Pilot):
        return changed.uuid
    letter = {Dag: "d", Cluster: "c", Job: "j"}[type(changed)]
    return f"{letter}{changed.id}"


def _told(changed: Dag | Cluster | Job | Pilot) -> str:
    return changed.state + (f": {changed.state_reason}" if changed.state_reason else "")
