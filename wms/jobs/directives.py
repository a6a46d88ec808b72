"""Directives of a job: URLs, input data, stdin, output remaps, time limits, checkpoints, and more.

Values of the submit description for its run that are no needs, files or expressions; kept as JSON
with only what is given. Also the announced output (a file, or a folder) that a file belongs to, and
the name it is published under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

#: Values of `data_access`: a job runs near its input data, or fetches them from afar.
NEAR, ANYWHERE = DATA_ACCESS = ("near", "anywhere")
#: Values of `notification`, by what the owner is told of.
NOTIFICATIONS = ("never", "complete", "error", "always")


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives of one job; names of files are those in its directory.

    `input_urls` are fetched by its pilot, under these names, and outputs that `output_urls` names
    are sent there and not into the workspace. `input_data` are logical names that the payload reads
    by itself where they are. By these and by the logical names among `input_urls` the job is tied
    to sites, unless `data_access` is ANYWHERE. `output_remaps` give outputs another name there. The
    job is held when it has been with a pilot for `duration_limit_s`, or, with
    `is_held_at_wall_limit`, when its payload runs longer than its wall limit. A payload that ends
    with `checkpoint_exit_code` leaves `checkpoint_files` and is started again from them.
    `notification` tells when the owner hears of its end; `is_held` lets it begin held.
    `kill_grace_s` is the time between the polite signal and the hard one. The payload runs in a
    container of `container_image`, if there is one. With `has_token` it finds a bearer token of its
    owner (see `payload_tokens`).
    """

    stdin_name: str = ""
    input_urls: Mapping[str, str] = field(default_factory=dict)
    input_data: tuple[str, ...] = ()
    data_access: str = ""
    output_urls: Mapping[str, str] = field(default_factory=dict)
    output_remaps: Mapping[str, str] = field(default_factory=dict)
    duration_limit_s: int = 0
    is_held_at_wall_limit: bool = False
    checkpoint_exit_code: int | None = None
    checkpoint_files: tuple[str, ...] = ()
    notification: str = ""
    is_held: bool = False
    kill_grace_s: int = 0
    container_image: str = ""
    has_token: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Directives:
        """Read what is stored with a job."""
        if not stored:
            return NO_DIRECTIVES
        values = dict(stored)
        for name in ("checkpoint_files", "input_data"):
            if name in values:
                values[name] = tuple(values[name])
        return cls(**values)

    def as_json(self) -> dict[str, Any] | None:
        """What is stored with the job; None where nothing is said."""
        given = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value != getattr(NO_DIRECTIVES, name)
        }
        return given or None

    def place_of(self, output: str) -> str:
        """Name under which an output is kept, by its path or by its name without folders."""
        bare = output.rpartition("/")[2]
        return self.output_remaps.get(output) or self.output_remaps.get(bare) or output


NO_DIRECTIVES = Directives()


def is_image_file(image: str) -> bool:
    """Whether an image is a file of the workspace, not a path of the node or an address."""
    return bool(image) and not image.startswith("/") and "://" not in image


def fails_at_wall_limit(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Stored directives of a job that fails instead of being held at its wall limit."""
    return replace(Directives.of(stored), is_held_at_wall_limit=False).as_json()


def folder_of(announced: str) -> str:
    """Folder before the names of an announced folder's files; empty if there is none."""
    return f"{announced.rstrip('/')}/"


def announced_as(path: str, announced: tuple[str, ...] | list[str]) -> str:
    """Announced output that a file is, or in which it lies; empty if there is none.

    The longest one counts.
    """
    found = [name for name in announced if path == name or path.startswith(folder_of(name))]
    return max(found, key=len, default="")


def published_name(path: str, announced: tuple[str, ...] | list[str]) -> str:
    """Name of an output without the folder, where only its content was announced: `folder/`."""
    name = announced_as(path, announced)
    return path[len(name) :] if name.endswith("/") else path
