"""Images of containers in submit descriptions: what `container_image` and `docker_image` may name.

A path of the worker node, a file of the workspace, or what Apptainer fetches from a registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from wms.core.errors import InvalidInput
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.jobs.description.file_names import checked_name
from wms.jobs.description.renderer_inputs import CannotRender
from wms.jobs.directives import is_image_file

Texts = Mapping[str, str]

#: The commands that name an image; `universe` may ask for one.
COMMANDS = ("container_image", "docker_image")
_DOCKER = "docker://"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*:")
#: What registries call images, with a tag or digest; Apptainer is given nothing else.
_IN_REGISTRY = re.compile(r"(?:docker|oras)://[A-Za-z0-9][A-Za-z0-9._:/@-]*\Z")
_LONGEST_ADDRESS = 512
_UNIVERSES = frozenset({"container", "docker"})


def has_image(texts: Texts) -> bool:
    """Whether a job with these commands runs in a container."""
    return any(texts.get(name, "").strip() for name in COMMANDS)


def image_name(texts: Texts) -> str:
    """The image that a job runs in, empty if it needs none. Raises CannotRender."""
    given = {name: texts[name].strip() for name in COMMANDS if texts.get(name, "").strip()}
    with _errors_of(*given or ["universe"]):
        if not given:
            universe = texts.get("universe", "").strip().lower()
            if universe in _UNIVERSES:
                raise ValueError(f"universe {universe} needs a container_image")
            return ""
        if len(given) > 1:
            raise ValueError(f"both {' and '.join(given)} are given")
        ((command, name),) = given.items()
        if command == "docker_image" and not name.startswith(_DOCKER):
            name = f"{_DOCKER}{name}"
        return _checked(name)


@contextmanager
def _errors_of(*commands: str) -> Iterator[None]:
    """Tell faults by these commands, and not by all that the field is read from."""
    try:
        yield
    except (ValueError, InvalidInput) as error:
        raise CannotRender(str(error), *commands) from error


def workspace_image(texts: Texts) -> str:
    """The file of the workspace that is the image of a job; empty if it is none."""
    name = image_name(texts)
    return name if is_image_file(name) else ""


def _checked(name: str) -> str:
    if not name.isprintable():
        raise ValueError("the name of the image has control characters")
    if _SCHEME.match(name):
        return _checked_address(name)
    if not name.startswith("/"):
        if name.startswith("-"):
            raise ValueError(f"{name[:80]} is no image: its name begins like an option")
        return checked_name(name)
    if len(name.encode()) > MAX_PATH_BYTES:
        raise ValueError(f"the path of the image is longer than {MAX_PATH_BYTES} bytes")
    if ".." in name.split("/"):
        raise ValueError(f"{name[:80]} is no plain path: it has a part `..`")
    return name


def _checked_address(name: str) -> str:
    if len(name) > _LONGEST_ADDRESS:
        raise ValueError(f"the address of the image is longer than {_LONGEST_ADDRESS} characters")
    if not _IN_REGISTRY.match(name):
        raise ValueError(
            f"{name[:200]} is no image that pilots can have: name one as docker://... or "
            "oras://..., a file of the workspace, or a path of the worker node"
        )
    return name
