"""Commands that mend: rescue, rerun, edit."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from ..client import Client
from ..errors import PilotageError, UsageError
from .printing import say, say_json, tell
from .submission import values_of
from .targets import Target, target

_NEEDS = ("memory_mb", "site", "banned_site")
_AT_ONCE = ("max_idle", "max_materialize")
_FOR_NODES = ("var", "retries")
_LABELS = ("add_label", "remove_label")
#: What can be edited of each kind.
_EDITS: Mapping[str, tuple[str, ...]] = {
    "dag": ("priority", *_LABELS, "option"),
    "cluster": ("priority", *_LABELS, *_NEEDS, *_AT_ONCE),
    "node": ("priority", *_FOR_NODES),
}
#: Requests by the options that each is made of.
_Steps = Mapping[tuple[str, ...], Callable[[], Any]]


def rescue(client: Client, options: Namespace) -> int:
    """Run a DAG that has ended again."""
    named = target(options.target, "dag")
    run = client.rescue_dag(
        named.id,
        options.reason,
        resume=options.resume,
        save_point=options.save_point,
        options=values_of(options.option) or None,
        key=options.key,
    )
    return _say_new(client, options, run.submitted, f"d{run.id}", "dags")


def rerun(client: Client, options: Namespace) -> int:
    """Run nodes of a DAG again, or the failed jobs of a cluster as a new one."""
    named = target(options.target, "dag", "cluster")
    if named.kind == "cluster":
        run = client.rerun_cluster(
            named.id,
            options.reason,
            with_killed=options.with_killed or None,
            memory_mb=options.memory_mb,
            sites=options.site,
            banned_sites=options.banned_site,
            key=options.key,
        )
        return _say_new(client, options, run.submitted, f"c{run.id}", "clusters")
    nodes = options.nodes
    if not nodes:
        nodes = [node["name"] for node in client.nodes(named.id, state="failed", limit=None)]
    if not nodes:
        tell(f"{named.text} has no failed nodes.")
        return 1
    changed = client.rerun_nodes(
        named.id, nodes, options.reason, with_descendants=not options.alone
    )
    return _say_changed(changed, options)


def edit(client: Client, options: Namespace) -> int:
    """Change what the options name."""
    named = target(options.target, "dag", "cluster", "node")
    given = _given(named, options)
    if named.kind == "node":
        return _edit_node(client, named, options)
    steps = (_steps_of_dag if named.kind == "dag" else _steps_of_cluster)(client, named.id, options)
    changed = _carry_out({n: step for n, step in steps.items() if not given.isdisjoint(n)})
    if options.json:
        say_json(changed)
    else:
        say(f"{'d' if named.kind == 'dag' else 'c'}{named.id}: {', '.join(sorted(given))} changed")
    return 0


def _given(named: Target, options: Namespace) -> set[str]:
    """Names of the options that were given. Raises UsageError for those of something else."""
    every = {name for names in _EDITS.values() for name in names}
    given = {name for name in every if getattr(options, name) not in (None, [])}
    if not given:
        raise UsageError("Say what is to be changed, as --priority 5.")
    if useless := given.difference(_EDITS[named.kind]):
        flags = ", ".join("--" + name.replace("_", "-") for name in sorted(useless))
        raise UsageError(f"{flags} means nothing for a {named.kind}.")
    return given


def _carry_out(steps: _Steps) -> Any:
    """Answer to the last of several requests. Raises PilotageError, and tells what is done then."""
    changed = None
    for done, step in enumerate(steps.values()):
        try:
            changed = step()
        except PilotageError:
            if done:
                tell(f"{done} of {len(steps)} changes are made already; the others are not:")
            raise
    return changed


def _steps_of_dag(client: Client, dag_id: int, options: Namespace) -> _Steps:
    reason = options.reason
    return {
        ("priority",): lambda: client.prioritise_dag(dag_id, options.priority, reason).raw,
        _LABELS: lambda: (
            client.label_dag(dag_id, reason, add=options.add_label, remove=options.remove_label).raw
        ),
        ("option",): lambda: client.limit_dag(dag_id, values_of(options.option), reason),
    }


def _steps_of_cluster(client: Client, cluster_id: int, options: Namespace) -> _Steps:
    reason = options.reason
    return {
        ("priority",): lambda: client.prioritise_cluster(cluster_id, options.priority, reason).raw,
        _LABELS: lambda: (
            client.label_cluster(
                cluster_id, reason, add=options.add_label, remove=options.remove_label
            ).raw
        ),
        _NEEDS: lambda: (
            client.change_cluster(
                cluster_id,
                reason,
                memory_mb=options.memory_mb,
                sites=options.site,
                banned_sites=options.banned_site,
            ).raw
        ),
        _AT_ONCE: lambda: (
            client.limit_cluster(
                cluster_id,
                reason,
                max_idle=options.max_idle,
                max_materialize=options.max_materialize,
            ).raw
        ),
    }


def _edit_node(client: Client, named: Target, options: Namespace) -> int:
    pairs = dict(text.partition("=")[::2] for text in options.var)
    changed = client.change_nodes(
        named.id,
        [named.name],
        options.reason,
        variables=pairs or None,
        priority=options.priority,
        max_retries=options.retries,
    )
    return _say_changed(changed, options)


def _say_changed(changed: Mapping[str, Any], options: Namespace) -> int:
    if options.json:
        say_json(changed)
    else:
        say(f"{changed['changed']} changed, {changed['skipped']} skipped")
    return 0 if changed["changed"] else 1


def _say_new(client: Client, options: Namespace, made: Any, name: str, pages: str) -> int:
    if options.json:
        say_json(made.raw)
    else:
        say(f"{name}  {client.profile.url}/{pages}/{made.id}/")
    return 0
