"""Reader of a job's directives: HTCondor commands that become `Directives`, each with its checks.

They are URLs of inputs, input data, standard input, output remaps, time limits, checkpoints,
notification, hold, kill time, the image of a container and a token for the payload.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from matching.descriptions.output_remaps import parse_remaps
from matching.descriptions.substitution import refers_to_site
from wms.jobs.content.paths import checked_path
from wms.jobs.description import container_images
from wms.jobs.description.file_names import checked_name, logical_list, output_list, url_list
from wms.jobs.description.file_urls import MOST_URLS, has_url, url_of_output, without_secrets
from wms.jobs.description.needs import whole
from wms.jobs.directives import DATA_ACCESS, NEAR, NOTIFICATIONS, Directives, announced_as

Texts = Mapping[str, str]

_CODE = re.compile(r"[0-9]{1,3}\Z")
_TRUE, _FALSE = frozenset({"true", "yes", "t", "y", "1"}), frozenset({"false", "no", "f", "n", "0"})
#: The commands that name inputs: HTCondor fetches some once for several jobs; to a job it is all
#: the same.
INPUTS = ("transfer_input_files", "common_input_files", "public_input_files")
#: The standard input of a payload that is given none.
NO_INPUT = "/dev/null"
_LONGEST_GRACE_S = 3600
#: The one service of `use_oauth_services`.
TOKEN_SERVICE = "pilotage"


def read_directives(texts: Texts) -> dict[str, Any] | None:
    """Directives that these commands give, as they are stored. Raises ValueError, InvalidInput."""
    new_names, urls = _destinations(texts)
    return Directives(
        stdin_name=stdin_name(texts),
        input_urls=input_urls(texts),
        input_data=logical_list(texts.get("input_data", "")),
        data_access=_data_access(texts),
        output_remaps=new_names,
        output_urls=urls,
        duration_limit_s=whole(texts, "allowed_job_duration", 0),
        is_held_at_wall_limit=bool(texts.get("allowed_execute_duration", "").strip()),
        checkpoint_exit_code=_checkpoint_code(texts),
        checkpoint_files=_checkpoint_files(texts),
        notification=_notification(texts),
        is_held=flag(texts, "hold"),
        kill_grace_s=_grace_s(texts),
        container_image=container_images.image_name(texts),
        has_token=_has_token(texts),
    ).as_json()


#: The commands that are read here, and those that they refer to.
COMMANDS = (
    *INPUTS, "input", "input_data", "data_access", "transfer_output_remaps",
    "transfer_output_files", "output_destination", "allowed_job_duration",
    "allowed_execute_duration", "checkpoint_exit_code", "transfer_checkpoint_files",
    "notification", "hold", "kill_sig_timeout", "universe", "use_oauth_services",
    *container_images.COMMANDS,
)  # fmt: skip


def stdin_name(texts: Texts) -> str:
    """File that the payload reads as its standard input; empty if there is none."""
    name = texts.get("input", "").strip()
    return "" if name in ("", NO_INPUT) else checked_name(name)


def input_urls(texts: Texts) -> dict[str, str]:
    """URLs of inputs by the names of their files."""
    return url_list(texts.get(name, "") for name in INPUTS)


def _data_access(texts: Texts) -> str:
    """How input data may be reached; empty where nothing else is said than what is so anyway."""
    text = texts.get("data_access", "").strip().lower()
    if text and text not in DATA_ACCESS:
        raise ValueError(f"data_access must be one of {', '.join(DATA_ACCESS)}, not {text[:80]}")
    return "" if text == NEAR else text


def flag(texts: Texts, name: str) -> bool:
    """Boolean value of a command, false if it is not given. Raises ValueError."""
    text = texts.get(name, "").strip().lower()
    if text and text not in _TRUE | _FALSE:
        raise ValueError(f"{name} must be true or false, not {text[:80]}")
    return text in _TRUE


def _has_token(texts: Texts) -> bool:
    """Whether the payload is given a token, which is the service `pilotage`. Raises ValueError."""
    services = texts.get("use_oauth_services", "").replace(",", " ").split()
    for name in services:
        if name.lower() != TOKEN_SERVICE:
            raise ValueError(
                f"use_oauth_services: {name[:80]} is unknown; there is {TOKEN_SERVICE}, a token of "
                "this portal, and payloads get those of others by themselves"
            )
    return bool(services)


def _destinations(texts: Texts) -> tuple[dict[str, str], dict[str, str]]:
    """New names of outputs, and URLs of others."""
    outputs = output_list(texts.get("transfer_output_files", ""))
    names: dict[str, str] = {}
    urls: dict[str, str] = {}
    for name, new in parse_remaps(texts.get("transfer_output_remaps", "")).items():
        _check_remapped(name, outputs)
        if has_url(new):
            output = _output_for_url(name, outputs, urls)
            urls[output] = url_of_output(new, output)
        else:
            checked_path(new, field="transfer_output_remaps")
            names[name] = new
    urls |= _whole_destination(texts, [each for each in outputs if each not in {*urls, *names}])
    for new, count in Counter([*names.values(), *urls.values()]).items():
        if count > 1:
            told = without_secrets(new)[:80]
            raise ValueError(f"transfer_output_remaps: {count} outputs get the name {told}")
    if len(urls) > MOST_URLS:
        raise ValueError(f"a job sends {MOST_URLS} outputs to URLs at most, not {len(urls)}")
    return names, urls


def _whole_destination(texts: Texts, outputs: Sequence[str]) -> dict[str, str]:
    """URLs below the one to which all outputs go that have no other name. Raises ValueError."""
    url = texts.get("output_destination", "").strip()
    if not url:
        return {}
    if not has_url(url):
        raise ValueError(f"output_destination must be the URL of a folder, not {url[:80]}")
    if "?" in url:
        told = without_secrets(url)[:80]
        raise ValueError(f"output_destination: {told} is a folder, which has no query")
    if not texts.get("transfer_output_files", "").strip():
        raise ValueError("output_destination needs the names of outputs in transfer_output_files")
    for name in outputs:
        if name.endswith("/") or refers_to_site(name):
            raise ValueError(
                f"output_destination: {name[:80]} is a folder or a name that only the site tells, "
                "and only files go to URLs; give it a name in transfer_output_remaps"
            )
    folder = url if url.endswith("/") else f"{url}/"
    return {name: url_of_output(folder, name) for name in outputs}


def _check_remapped(name: str, outputs: Sequence[str]) -> None:
    """Raise ValueError for what gets a new name and is no output, or a folder."""
    if name in outputs and name.endswith("/"):
        raise ValueError(f"transfer_output_remaps: {name} is a folder, and only files have")
    if not (announced_as(name, tuple(outputs)) or name in _by_bare_names(outputs)):
        raise ValueError(f"transfer_output_remaps: {name[:80]} is not among transfer_output_files")


def _output_for_url(name: str, outputs: Sequence[str], urls: Mapping[str, str]) -> str:
    """The output that is meant by a name. Raises ValueError for one in a folder, and for a second
    URL of one.
    """
    output = name if name in outputs else _by_bare_names(outputs).get(name, "")
    if not output or output in urls:
        raise ValueError(
            "transfer_output_remaps: a file of transfer_output_files may go to a URL, and to one;"
            f" {name[:80]} is none"
        )
    return output


def _by_bare_names(outputs: Sequence[str]) -> Mapping[str, str]:
    """Outputs by their names without folders."""
    return {name.rpartition("/")[2]: name for name in outputs}


def _checkpoint_code(texts: Texts) -> int | None:
    text = texts.get("checkpoint_exit_code", "").strip()
    if not text:
        return None
    if not _CODE.match(text) or not 0 < int(text) < 256:
        raise ValueError(f"checkpoint_exit_code must be from 1 to 255, not {text[:80]}")
    return int(text)


def _checkpoint_files(texts: Texts) -> tuple[str, ...]:
    """Files of a checkpoint: the outputs where no others are named."""
    text = texts.get("transfer_checkpoint_files", "").strip()
    if not texts.get("checkpoint_exit_code", "").strip():
        if text:
            raise ValueError("transfer_checkpoint_files needs a checkpoint_exit_code")
        return ()
    names = output_list(text or texts.get("transfer_output_files", ""))
    if any(map(refers_to_site, names)):
        raise ValueError(
            "files of checkpoints cannot depend on the site: name them in transfer_checkpoint_files"
        )
    if not names:
        raise ValueError("checkpoint_exit_code needs files in transfer_checkpoint_files")
    return tuple(name.rstrip("/") for name in names)


def _notification(texts: Texts) -> str:
    text = texts.get("notification", "").strip().lower()
    if text and text not in NOTIFICATIONS:
        raise ValueError(f"notification must be one of {', '.join(NOTIFICATIONS)}, not {text[:80]}")
    return "" if text == "never" else text


def _grace_s(texts: Texts) -> int:
    seconds = whole(texts, "kill_sig_timeout", 0)
    if seconds > _LONGEST_GRACE_S:
        raise ValueError(f"kill_sig_timeout must be at most {_LONGEST_GRACE_S} s, not {seconds}")
    return seconds
