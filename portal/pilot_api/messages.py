"""What pilots send and receive, between JSON and the values of the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from matching.needs import MOST
from matching.resources import NODE_NUMBERS, NODE_TEXTS, Resource
from portal.pilot_api.bodies import MAX_AMOUNT, Fields
from wms.jobs.attempts import PayloadEnd
from wms.pilots.models import Pilot
from wms.pilots.services import AttemptRef, ClaimAnswer, HeartbeatAnswer
from wms.sites.selectors import queue_offer, with_identity


def read_node(fields: Fields) -> dict[str, Any]:
    """The facts of a worker node; unknown ones are dropped."""
    return {
        **{name: fields.text(name, max_length=255) for name in NODE_TEXTS},
        **{name: fields.integer(name, maximum=MAX_AMOUNT) for name in NODE_NUMBERS},
    }


def read_attempts(fields: Fields) -> list[AttemptRef]:
    """The attempts that a pilot says it has."""
    return [
        AttemptRef(each.integer("job", maximum=2**63 - 1), each.integer("attempt"))
        for each in fields.objects("jobs")
    ]


def read_attributes(fields: Fields) -> dict[AttemptRef, dict[str, int | str]]:
    """What payloads tell of their jobs, of those that tell something new."""
    return {
        attempt: each.object("attributes").attributes()
        for attempt, each in zip(read_attempts(fields), fields.objects("jobs"), strict=True)
        if each.has("attributes")
    }


def read_claim_key(fields: Fields) -> str:
    """The pilot's own name for its claim, under which it may repeat it."""
    return fields.text("claim", pattern="[0-9a-f]{32}")


def read_resource(fields: Fields, pilot: Pilot) -> Resource:
    """What the pilot offers now: never more than its queue does.

    Whoever holds a pilot's token cannot draw jobs that the queue was not made for, nor those of
    another identity than the pilot was submitted with. Only the name of the platform is the node's,
    where the queue leaves it open; and a pilot may take fewer jobs, by requiring more tags.
    """
    offer = queue_offer(pilot.queue)
    said = _read_amounts(fields)
    platform = fields.text("platform", max_length=64)
    fields.texts("tags")
    required = {*offer.required_tags, *fields.texts("required_tags")}
    mine = replace(
        offer,
        **{name: min(said[name], getattr(offer, name)) for name in said},
        platform=offer.platform or platform,
        required_tags=tuple(sorted(required)),
    )
    return with_identity(mine, pilot.owner, pilot.owner_group)


def _read_amounts(fields: Fields) -> dict[str, int]:
    """What is free of the pilot's slot, and the time that is left."""
    fields.amount("disk_mb")
    return {
        "cpu_time_s": fields.amount("cpu_time_s"),
        "cores": fields.integer("cores", maximum=MOST["cores"]),
        "memory_mb": fields.amount("memory_mb"),
        "gpus": fields.integer("gpus", maximum=MOST["gpus"]),
    }


def read_end(fields: Fields) -> PayloadEnd:
    """How a payload ended."""
    return PayloadEnd(
        exit_code=fields.integer("exit_code", maximum=255) if fields.has("exit_code") else None,
        signal=fields.integer("signal", maximum=255) if fields.has("signal") else None,
        wall_s=fields.number("wall_s"),
        cpu_s=fields.number("cpu_s"),
        max_rss_mb=fields.number("max_rss_mb"),
        reason=fields.text("reason"),
        missing_outputs=fields.texts("missing_outputs"),
    )


def heartbeat_json(answer: HeartbeatAnswer) -> dict[str, Any]:
    """The commands that travel back to a pilot."""
    commands: list[dict[str, Any]] = [
        {"command": "kill", "job": ref.job_id, "attempt": ref.number} for ref in answer.kill
    ]
    if answer.is_drained:
        commands.append({"command": "drain"})
    return {"commands": commands}


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
    return {
        "job": {
            "job": work.attempt.job_id,
            "attempt": work.attempt.number,
            "name": job.name,
            "executable": job.executable,
            "arguments": job.arguments,
            "environment": job.environment,
            "inputs": inputs,
            "outputs": job.output_files,
            "wall_limit_s": job.wall_limit_s,
            "cores": work.cores,
            "memory_mb": work.memory_mb,
            "gpus": work.gpus,
        }
    }
