"""Command `why`: why a DAG, cluster, job, TaskQueue or site does not run, or failed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from ..client import Client
from ..errors import UsageError
from ..model import Cluster, Dag
from .printing import counted, say, say_json
from .targets import Target, target

_MOST = 10
#: Verdicts of the API that their reasons tell in other words.
_TOLD_BY_REASON = ("has a site", "has ended")
_WITHOUT_HOPE = ("never", "not allowed")
_KINDS = ("dag", "cluster", "job", "task_queue", "site", "node")


def why(client: Client, options: Namespace) -> int:
    """Print the portal's explanation."""
    named = target(options.target, *_KINDS)
    changes = _changes(named, options.changes)
    if named.kind == "cluster":
        answer, lines = _of_cluster(client, named, changes)
    elif named.kind == "dag":
        answer, lines = _of_dag(client, named, changes)
    elif named.kind == "node":
        answer, lines = _of_node(client, named)
    else:
        value: Any = named.name if named.kind == "site" else named.id
        answer = dict(client.explain(named.kind, value, changes))
        lines = list(explained(answer))
    if options.json:
        say_json(answer)
    else:
        for line in lines:
            say(line)
    return 0


def explained(answer: Mapping[str, Any]) -> Iterator[str]:
    """Lines of an explanation for people, what matters most first."""
    yield _verdict(answer) + str(answer["summary"])
    for miss in answer.get("misses") or ():
        old = f"{miss['attribute']} {miss['old']}".strip()
        new = miss["new"] or "without it"
        agree = "" if miss.get("is_enough", True) else " agree, but have no queue for all nodes"
        yield f"  nearest miss: {old}: {miss['before']} sites; {new}: {miss['after']} sites{agree}"
    yield from _of_expressions(answer.get("explanation") or {})
    for place in answer.get("avoided") or ():
        yield f"  {place['site']} is avoided until {place['until']}: {place['reason']}"
    for place in answer.get("sites") or ():
        if not place["accepts"]:
            yield f"  {place['site']}: {place['reason']}"
    yield from _of_queues(answer)
    if answer.get("after"):
        yield f"with these changes: {answer['after'].get('summary') or answer['after']}"


def _verdict(answer: Mapping[str, Any]) -> str:
    """Verdict before its reason, and whether waiting helps; empty where there is none."""
    verdict = str(answer.get("verdict") or "")
    if not verdict or verdict in _TOLD_BY_REASON:
        return ""
    advice = " (waiting does not help)" if verdict in _WITHOUT_HOPE else ""
    return f"{verdict[0].upper()}{verdict[1:]}{advice}: "


def _of_expressions(inside: Mapping[str, Any]) -> Iterator[str]:
    for name in inside.get("undefined") or ():
        meant = f"; {name['suggestion']} may be meant" if name["suggestion"] else ""
        yield f"  nobody defines {name['name']} (in {name['used_in']}){meant}"
    for part in inside.get("conjuncts") or ():
        if part["together"] == 0:
            yield f"  `{part['text']}`: {part['alone']} sites alone, 0 with all before it"
            break
    for refusal in inside.get("refusals") or ():
        yield f"  {_few(refusal['sites'])} refuse by `{refusal['text']}`"
    for need in inside.get("unmet") or ():
        yield f"  node {need['node']} cannot run at {_few(need['sites'])}: {need['text']}"


def _of_queues(answer: Mapping[str, Any]) -> Iterator[str]:
    for name in answer.get("unknown") or ():
        yield f"  nothing offers {name} today"
    for queue in answer.get("queues") or ():
        reason = queue["refusal"] or queue["closed"]
        pilots = f"{queue['running_pilots']} pilots run, {queue['pending_pilots']} wait"
        yield f"  {queue['site']}/{queue['queue']}: {reason or pilots}"


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return shown + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def _of_dag(
    client: Client, named: Target, changes: Mapping[str, Any] | None
) -> tuple[dict[str, Any], list[str]]:
    dag = client.dag(named.id)
    answer = dict(client.explain("dag", named.id, changes))
    lines = list(explained(answer))
    if dag.state_reason and dag.state_reason not in lines[0]:
        # An explanation of an ended DAG says no more than its state.
        lines[: 1 if dag.has_ended else 0] = [f"d{dag.id} is {dag.state}: {dag.state_reason}"]
    if dag.state == "idle":
        return answer, lines
    nodes = client.nodes(named.id, state="failed", limit=_MOST)
    if not nodes and not dag.has_ended:
        nodes = client.nodes(named.id, state="submitted", limit=_MOST)
    for node in nodes:
        job = f"  (pilotage why j{node['job']})" if node["job"] else ""
        reason = f": {node['state_reason']}" if node["state_reason"] else ""
        lines.append(f"  node {node['name']} is {node['state']}{reason}{job}")
    answer["nodes"] = nodes
    return answer, lines + list(_next_step(dag))


def _next_step(dag: Dag) -> Iterator[str]:
    if dag.state == "failed":
        yield f"To go on from where it ended: pilotage rescue d{dag.id} --reason TEXT"
    elif dag.state in ("held", "halted"):
        yield f"To let it go on: pilotage release d{dag.id}"


def _of_cluster(
    client: Client, named: Target, changes: Mapping[str, Any] | None
) -> tuple[dict[str, Any], list[str]]:
    cluster: Cluster = client.cluster(named.id)
    raw = cluster.raw
    lines = [f"c{cluster.id} is {cluster.state}: {cluster.state_reason}".rstrip(": ")]
    if raw.get("delay_reason"):
        lines.append(f"  no further jobs are made: {raw['delay_reason']}")
    for cause, count in (raw.get("failure_causes") or {}).items():
        lines.append(f"  {counted(count, 'job')} failed: {cause}")
    answer: dict[str, Any] = {"cluster": raw}
    waiting = client.jobs(cluster=named.id, state=("waiting", "received"), limit=1)
    if waiting:
        job = answer["job"] = dict(client.explain("job", waiting[0].id, changes))
        lines.append(f"j{waiting[0].id}, one of those that wait:")
        lines += explained(job)
    for failed in client.jobs(cluster=named.id, state=("failed", "held"), limit=_MOST):
        lines.append(f"  j{failed.id} is {failed.state}: {failed.state_reason}")
    return answer, lines


def _of_node(client: Client, named: Target) -> tuple[dict[str, Any], list[str]]:
    node = client.node(named.id, named.name)
    answer: dict[str, Any] = {"node": node}
    lines = [f"{named.name} is {node['state']}: {node['state_reason']}".rstrip(": ")]
    waits = node.get("waits_for")
    if waits:
        lines.append(f"  {waits if isinstance(waits, str) else _told(waits)}")
    if node["job"]:
        answer["job"] = dict(client.explain("job", node["job"]))
        lines += explained(answer["job"])
    return answer, lines


def _told(waits: Any) -> str:
    if isinstance(waits, Mapping):
        return "; ".join(f"{name}: {value}" for name, value in waits.items() if value)
    return ", ".join(map(str, waits))


def _changes(named: Target, texts: list[str]) -> dict[str, Any] | None:
    if not texts:
        return None
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--if {text}: write it as NAME=EXPRESSION.")
        pairs[name.strip()] = value.strip()
    return {"dag" if named.kind == "dag" else "needs": pairs}
