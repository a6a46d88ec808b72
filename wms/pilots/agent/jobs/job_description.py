"""Job as the server describes it in the answer to a claim, parsed; its inputs and paths.

Also a claim that is sent with a report, and its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..control import Attempt
from ..node import Share
from ..server.client import parsing
from ..transfers.rules import Source, TransferRules


@dataclass(frozen=True)
class Input:
    """A file of the input sandbox; of one with `sources` the server has no content."""

    path: str
    sha256: str
    sources: tuple[Source, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Input:
        """Read the server's description; call it within `parsing`."""
        sources = tuple(Source.from_json(each) for each in data.get("sources", ()))
        return cls(str(data["path"]), str(data["sha256"]), sources)


@dataclass(frozen=True)
class Checkpoint:
    """Exit code with which a payload tells that it has written a checkpoint, and the files of it.

    Without a code there are none.
    """

    exit_code: int | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Checkpoint:
        """Read the server's description; call it within `parsing`."""
        return cls(int(data["exit_code"]), tuple(str(each) for each in data["files"]))


@dataclass(frozen=True)
class BearerToken:
    """Token of a payload for the portal, and how long it is good from now on."""

    text: str = field(repr=False)
    lifetime_s: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BearerToken:
        """Read the server's description; call it within `parsing`."""
        return cls(str(data["text"]), float(data["lifetime_s"]))


@dataclass(frozen=True)
class Job:
    """A job as the server handed it out."""

    job: int
    attempt: int
    name: str
    owner: str
    owner_group: str
    executable: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    wall_limit_s: float | None
    share: Share
    cpu_time_s: float | None = None
    #: The file that it reads as its standard input; empty: nothing.
    stdin: str = ""
    #: From the polite signal to the hard one; 0: as its queue has it.
    kill_grace_s: float = 0.0
    checkpoint: Checkpoint = Checkpoint()
    #: Image of the container that it runs in: a path of the node, an input, or an address.
    image: str = ""
    #: The credential for messages about this attempt alone; empty: the pilot's own is used.
    token: str = field(default="", repr=False)
    #: What its payload may call the portal with; None where it did not ask for that.
    bearer: BearerToken | None = field(default=None, repr=False)
    #: Of what is moved from and to URLs; None where nothing is.
    transfer_rules: TransferRules | None = None
    #: Where outputs go that do not go to the server, after a success.
    output_urls: Mapping[str, Source] = field(default_factory=dict)
    #: The exit code of a success.
    success_code: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Read the server's description; call it within `parsing`."""
        wall_s, cpu_s = data.get("wall_limit_s"), data.get("cpu_time_s")
        return cls(
            job=int(data["job"]),
            attempt=int(data["attempt"]),
            name=str(data.get("name", "")),
            owner=str(data.get("owner", "")),
            owner_group=str(data.get("owner_group", "")),
            executable=str(data["executable"]),
            arguments=tuple(str(each) for each in data.get("arguments", ())),
            environment={str(k): str(v) for k, v in data.get("environment", {}).items()},
            inputs=tuple(Input.from_json(each) for each in data.get("inputs", ())),
            outputs=tuple(str(each) for each in data.get("outputs", ())),
            wall_limit_s=None if wall_s is None else float(wall_s),
            share=Share(
                cores=int(data["cores"]),
                memory_mb=int(data["memory_mb"]),
                gpus=int(data["gpus"]),
                disk_mb=int(data.get("disk_mb") or 0),
            ),
            cpu_time_s=None if cpu_s is None else float(cpu_s),
            stdin=str(data.get("stdin") or ""),
            kill_grace_s=float(data.get("kill_grace_s") or 0),
            checkpoint=(
                Checkpoint.from_json(data["checkpoint"]) if data.get("checkpoint") else Checkpoint()
            ),
            image=str(data.get("image") or ""),
            token=str(data.get("token") or ""),
            bearer=BearerToken.from_json(data["bearer"]) if data.get("bearer") else None,
            transfer_rules=(
                TransferRules.from_json(data["transfer_rules"])
                if data.get("transfer_rules")
                else None
            ),
            output_urls={
                str(each["path"]): Source.from_json(each) for each in data.get("output_urls", ())
            },
            success_code=int(data.get("success_code") or 0),
        )

    @property
    def key(self) -> Attempt:
        """Job and attempt: every message about it names both."""
        return (self.job, self.attempt)

    @property
    def path(self) -> str:
        """Prefix of this attempt's addresses."""
        return f"jobs/{self.job}/{self.attempt}"


@dataclass(frozen=True)
class AttachedClaim:
    """Claim that was sent with a report, and the server's answer if there was one."""

    claim: dict[str, Any]
    answer: dict[str, Any] | None

    def has_job(self) -> bool:
        """Tell whether a job came with the answer."""
        return bool(self.answer and self.answer.get("job"))

    def job(self) -> Job:
        """The job of the answer. Raises BadAnswer."""
        with parsing("claim"):
            return Job.from_json((self.answer or {})["job"])
