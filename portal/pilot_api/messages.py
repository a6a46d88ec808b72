"""Messages of the pilot API: node facts, heartbeats, claims and ends read from JSON; answers.

What a claim offers is bounded by what the pilot's queue offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from matching.task_queues.needs import CONTAINER_TAG, MOST
from matching.task_queues.resources import NODE_NUMBERS, NODE_TEXTS, Resource
from portal.pilot_api.bodies import MAX_AMOUNT, Fields
from wms.jobs.attempts.ending import PayloadEnd
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.directives import Directives
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobCause
from wms.pilots.models import Pilot
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.protocol.claims import ClaimAnswer
from wms.pilots.protocol.heartbeats import HeartbeatAnswer, HeartbeatMessage
from wms.sites.cpu_power import power_of
from wms.sites.selectors import queue_offer, with_identity

#: What a payload uses, as far as its pilot can tell; in seconds and MB.
_USAGE = (
    "wall_s", "cpu_s", "memory_mb", "disk_mb", "files", "processes", "read_mb", "written_mb",
    "network_mb", "fetched_mb", "sent_mb",
)  # fmt: skip
_LOAD = ("load_1min", "disk_free_mb", "memory_free_mb")
_NETWORKS = ("node", "open", "portal", "none")
_TIME_SOURCES = ("slurm", "htcondor")
_FENCES = ("bwrap", "apptainer", "sudo", "none")
_TOTALS = ("cores", "lifetime_s", "validation_s")


def read_node(fields: Fields, now: datetime) -> dict[str, Any]:
    """The facts of a worker node; unknown ones are dropped. The fence may be left out."""
    fence = {"fence": fields.choice("fence", *_FENCES)} if fields.has("fence") else {}
    told = read_told_time(fields, now)
    return {
        **{name: fields.text(name, max_length=255) for name in NODE_TEXTS},
        **{name: fields.integer(name, maximum=MAX_AMOUNT) for name in NODE_NUMBERS},
        **fence,
        **told,
    }


def read_told_time(fields: Fields, now: datetime) -> dict[str, Any]:
    """Time that the batch system leaves to the pilot: who told it, and the end in Unix time.

    The end is None without a limit; nothing where the pilot was told nothing.
    """
    if not fields.has("time_source"):
        return {}
    source = fields.choice("time_source", *_TIME_SOURCES)
    left_s = fields.amount("time_left_s") if fields.has("time_left_s") else None
    ends_at = None if left_s is None else int(now.timestamp()) + left_s
    return {"time_source": source, "ends_at": ends_at}


def read_beat(fields: Fields, now: datetime) -> HeartbeatMessage:
    """A heartbeat: the attempts at hand, and what their payloads tell and use."""
    attempts = [(_read_attempt(each), each) for each in fields.objects("jobs")]
    totals = _numbers(fields, "totals", _TOTALS)
    return HeartbeatMessage(
        running=tuple(ref for ref, _ in attempts),
        attributes={
            ref: each.object("attributes").attributes()
            for ref, each in attempts
            if each.has("attributes")
        },
        usage={ref: _numbers(each, "usage", _USAGE) for ref, each in attempts if each.has("usage")},
        load=_numbers(fields, "load", _LOAD) if fields.has("load") else None,
        is_draining=fields.has("is_draining") and fields.flag("is_draining"),
        sequence=fields.integer("sequence", maximum=2**63 - 1) if fields.has("sequence") else 0,
        validation_s=totals.get("validation_s"),
        facts=_read_facts(fields, now),
        wants_token=tuple(
            ref for ref, each in attempts if each.has("wants_token") and each.flag("wants_token")
        ),
    )


def _read_facts(fields: Fields, now: datetime) -> dict[str, Any]:
    """Facts of the node that are known only after the registration, or change."""
    network = {"network": fields.choice("network", *_NETWORKS)} if fields.has("network") else {}
    return {**network, **read_told_time(fields, now)}


def _read_attempt(fields: Fields) -> AttemptRef:
    return AttemptRef(fields.integer("job", maximum=2**63 - 1), fields.integer("attempt"))


def _numbers(fields: Fields, name: str, known: Sequence[str]) -> dict[str, float]:
    """Known numbers that an object has; nothing without an object."""
    if not fields.has(name):
        return {}
    values = fields.object(name)
    return {each: values.number(each) for each in known if values.has(each)}


def read_totals(fields: Fields) -> dict[str, float]:
    """Totals that a pilot reports at its end; empty if it does not."""
    return _numbers(fields, "totals", _TOTALS)


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim: offered resources, its key, under which it may be repeated, the attempts
    that are over there and whose reports still wait, and how long it waits for a job.
    """

    resource: Resource
    key: str
    unreported: frozenset[AttemptRef]
    wait_s: float


def read_claim(fields: Fields, pilot: Pilot) -> Claim:
    """Claim of a pilot, read from its message."""
    key = fields.text("claim", pattern="[0-9a-f]{32}")
    waiting = fields.objects("unreported") if fields.has("unreported") else []
    wait_s = fields.number("wait_s") if fields.has("wait_s") else 0.0
    unreported = frozenset(map(_read_attempt, waiting))
    return Claim(_read_resource(fields, pilot), key, unreported, wait_s)


def _read_resource(fields: Fields, pilot: Pilot) -> Resource:
    """Resources that the pilot offers now: never more than its queue.

    Whoever holds a pilot's token cannot draw jobs that the queue was not made for, nor those of
    another identity than the pilot was submitted with. Only the name of the platform is the node's,
    where the queue leaves it open; and a pilot may take fewer jobs, by requiring more tags, and
    takes those with images only where it says that it starts containers.
    """
    offer = queue_offer(pilot.queue)
    power = power_of(pilot.queue, pilot.published)
    offered = _read_amounts(fields)
    platform = fields.text("platform", max_length=64)
    # What only a pilot can know of its node: whether it starts containers.
    unproved = {CONTAINER_TAG}.difference(fields.texts("tags"))
    required = {*offer.required_tags, *fields.texts("required_tags")}
    # A pilot tells the time of the clock that it has left; what it can do in it is judged here.
    left_s = min(fields.amount("cpu_time_s"), pilot.queue.wall_time_s)
    mine = replace(
        offer,
        **{name: min(offered[name], getattr(offer, name)) for name in offered},
        cpu_time_s=min(int(left_s * power), MOST["cpu_time_s"]),
        cpu_power=power,
        platform=offer.platform or platform,
        tags=tuple(tag for tag in offer.tags if tag not in unproved),
        required_tags=tuple(sorted(required)),
        refused_owners=_words(fields, "refused_owners"),
        refused_groups=_words(fields, "refused_groups"),
    )
    return with_identity(mine, pilot.owner, pilot.owner_group)


def _words(fields: Fields, name: str) -> tuple[str, ...]:
    return fields.texts(name) if fields.has(name) else ()


def _read_amounts(fields: Fields) -> dict[str, int]:
    """Free amounts of the pilot's slot."""
    return {
        "disk_mb": fields.amount("disk_mb"),
        "cores": fields.integer("cores", maximum=MOST["cores"]),
        "memory_mb": fields.amount("memory_mb"),
        "gpus": fields.integer("gpus", maximum=MOST["gpus"]),
    }


def read_end(fields: Fields) -> PayloadEnd:
    """End of a payload, as its pilot reports it."""
    return PayloadEnd(
        exit_code=fields.integer("exit_code", maximum=255) if fields.has("exit_code") else None,
        signal=fields.integer("signal", maximum=255) if fields.has("signal") else None,
        wall_s=fields.number("wall_s"),
        cpu_s=fields.number("cpu_s"),
        max_rss_mb=fields.number("max_rss_mb"),
        reason=fields.text("reason"),
        missing_outputs=fields.texts("missing_outputs"),
        stopped_by=read_stopped_by(fields),
        usage=_numbers(fields, "usage", _USAGE),
        folders=_read_folders(fields),
        is_image_at_fault=fields.has("is_image_at_fault") and fields.flag("is_image_at_fault"),
        failed_transfer=read_failed_transfer(fields),
        sent_to_urls=fields.integer("sent_to_urls") if fields.has("sent_to_urls") else 0,
    )


def _read_folders(fields: Fields) -> dict[str, int]:
    """Announced outputs that are folders, with the number of files in each."""
    if not fields.has("folders"):
        return {}
    return {
        each.text("name", max_length=MAX_PATH_BYTES): each.integer("files", maximum=MAX_AMOUNT)
        for each in fields.objects("folders")
    }


def read_stopped_by(fields: Fields) -> str:
    """Cause that stopped the payload; empty when nothing did or the message does not say."""
    if not fields.has("stopped_by"):
        return ""
    return fields.choice("stopped_by", "", *Attempt.StoppedBy.values)


def read_failed_transfer(fields: Fields) -> str:
    """The cause of an end by a URL, an input's or an output's; empty for others."""
    if not fields.has("failed_transfer"):
        return ""
    return fields.choice("failed_transfer", JobCause.FETCH.value, JobCause.SEND.value)


def heartbeat_json(answer: HeartbeatAnswer) -> dict[str, Any]:
    """The commands that travel back to a pilot."""
    commands = [
        {"command": "kill", **_named(ref), **_reason(answer.kill_reasons.get(ref, ""))}
        for ref in answer.kill
    ]
    commands += [{"command": "peek", **_named(ref)} for ref in answer.peek]
    commands += [
        {"command": "token", **_named(ref), **asdict(token)} for ref, token in answer.tokens.items()
    ]
    if answer.is_drained:
        commands.append({"command": "drain", **_reason(answer.drain_reason)})
    return {"commands": commands}


def _named(ref: AttemptRef) -> dict[str, Any]:
    return {"job": ref.job_id, "attempt": ref.number}


def _reason(text: str) -> dict[str, Any]:
    return {"reason": text} if text else {}


def claim_json(answer: ClaimAnswer) -> dict[str, Any]:
    """A claimed job, or why there is none."""
    work = answer.work
    if work is None:
        return {"job": None, "reason": answer.reason}
    job = work.job
    inputs = [
        {"path": path, "sha256": blob.sha256, "size_bytes": blob.size_bytes}
        for path, blob in work.inputs.items()
    ]
    rules: dict[str, Any] = {}
    if work.transfers is not None:
        # A pilot of a release that knows no sources asks the portal for the file, is told that
        # there is none, and gives the job back.
        inputs += [
            {"path": name, **asdict(fetched)}
            for name, fetched in work.transfers.inputs.items()
            # Not what its checkpoint has.
            if name not in work.inputs
        ]
        rules["transfer_rules"] = asdict(work.transfers.rules)
        if work.transfers.outputs:
            rules["success_code"] = work.transfers.success_code
            rules["output_urls"] = [
                {"path": name, **asdict(target)} for name, target in work.transfers.outputs.items()
            ]
    return {
        "job": {
            "job": work.attempt.job_id,
            "attempt": work.attempt.number,
            "name": job.name,
            "owner": job.needs["owner"],
            "owner_group": job.needs.get("owner_group", ""),
            "executable": job.executable,
            "arguments": job.arguments,
            "environment": job.environment,
            "inputs": inputs,
            **rules,
            "outputs": job.output_files,
            **_directives_json(job),
            "wall_limit_s": job.wall_limit_s,
            "cores": work.cores,
            "memory_mb": work.memory_mb,
            "gpus": work.gpus,
            "cpu_time_s": work.cpu_time_s,
            "disk_mb": job.needs["disk_mb"],
            "token": work.token,
            **({"bearer": asdict(work.bearer)} if work.bearer else {}),
        }
    }


def _directives_json(job: Job) -> dict[str, Any]:
    """Directives of a job that its pilot has to know; nothing of most jobs."""
    directives = Directives.of(job.directives)
    checkpoint = {
        "exit_code": directives.checkpoint_exit_code,
        "files": list(directives.checkpoint_files),
    }
    return {
        **({"stdin": directives.stdin_name} if directives.stdin_name else {}),
        **({"kill_grace_s": directives.kill_grace_s} if directives.kill_grace_s else {}),
        **({"image": directives.container_image} if directives.container_image else {}),
        **({"checkpoint": checkpoint} if directives.checkpoint_exit_code is not None else {}),
    }
