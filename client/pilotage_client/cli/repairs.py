"""Commands that mend: rescue, rerun, edit."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from ..client import Client
from ..errors import UsageError
from .printing import say, say_json, tell
from .submission import _values
from .targets import Target, target

_FOR_CLUSTERS = ("memory_mb", "site", "banned_site", "max_idle", "max_materialize")
_FOR_NODES = ("var", "retries")
_LABELS = ("add_label", "remove_label")
#: What can be edited of each kind.
_EDITS: Mapping[str, tuple[str, ...]] = {
    "dag": ("priority", *_LABELS, "option"),
    "cluster": ("priority", *_LABELS, *_FOR_CLUSTERS),
    "node": ("priority", *_FOR_NODES),
}


def rescue(client: Client, options: Namespace) -> int:
    """Run a DAG that has ended again."""
    named = target(options.target, "dag")
    run = client.rescue_dag(
        named.id,
        options.reason,
        resume=options.resume,
        save_point=options.save_point,
        options=_values(options.option) or None,
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
    every = dict.fromkeys(name for names in _EDITS.values() for name in names)
    given = [name for name in every if getattr(options, name) not in (None, [])]
    if not given:
        raise UsageError("Say what is to be changed, as --priority 5.")
    useless = [name for name in given if name not in _EDITS[named.kind]]
    if useless:
        flags = ", ".join("--" + name.replace("_", "-") for name in useless)
        raise UsageError(f"{flags} means nothing for a {named.kind}.")
    if named.kind == "node":
        return _edit_node(client, named, options)
    edited = _edit_dag if named.kind == "dag" else _edit_cluster
    changed = edited(client, named, options, given)
    if options.json:
        say_json(changed)
    else:
        letter = "d" if named.kind == "dag" else "c"
        say(f"{letter}{named.id}: {', '.join(given)} changed")
    return 0


def _edit_dag(client: Client, named: Target, options: Namespace, given: list[str]) -> Any:
    changed: Any = None
    if "priority" in given:
        changed = client.prioritise_dag(named.id, options.priority, options.reason).raw
    if not set(_LABELS).isdisjoint(given):
        changed = client.label_dag(
            named.id, options.reason, add=options.add_label, remove=options.remove_label
        ).raw
    if "option" in given:
        changed = client.limit_dag(named.id, _values(options.option), options.reason)
    return changed


def _edit_cluster(client: Client, named: Target, options: Namespace, given: list[str]) -> Any:
    changed: Any = None
    if "priority" in given:
        changed = client.prioritise_cluster(named.id, options.priority, options.reason).raw
    if not set(_LABELS).isdisjoint(given):
        changed = client.label_cluster(
            named.id, options.reason, add=options.add_label, remove=options.remove_label
        ).raw
    if not {"memory_mb", "site", "banned_site"}.isdisjoint(given):
        changed = client.change_cluster(
            named.id,
            options.reason,
            memory_mb=options.memory_mb,
            sites=options.site,
            banned_sites=options.banned_site,
        ).raw
    if not {"max_idle", "max_materialize"}.isdisjoint(given):
        changed = client.limit_cluster(
            named.id,
            options.reason,
            max_idle=options.max_idle,
            max_materialize=options.max_materialize,
        ).raw
    return changed


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
