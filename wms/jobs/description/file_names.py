"""Names of files in submit descriptions, parsed and checked: inside the workspace, never a URL.

Alone or in lists; an output whose name ends with a slash is the content of a folder.
"""

from __future__ import annotations

import re

from wms.jobs.content.paths import checked_path

#: The scheme may name whose credentials are meant: `box.token+https`.
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+._-]*://[^\s,;\"']*")


def url_fault(text: str) -> str:
    """Reason why a text with a URL cannot be a list of files; empty if it has no URL."""
    url = _URL.search(text)
    if url is None:
        return ""
    return (
        f"{url[0][:200]} is a URL, and files come from the workspace and go there only:"
        " let a DATA node bring it or take it, or the payload itself"
    )


def checked_name(name: str) -> str:
    """Checked name of a file in the workspace. Raises ValueError and InvalidInput."""
    if fault := url_fault(name):
        raise ValueError(fault)
    return checked_path(name)


def file_list(text: str) -> tuple[str, ...]:
    """Names separated by commas, each checked to stay inside the workspace."""
    return tuple(checked_name(name) for name in _words(text))


def output_list(text: str) -> tuple[str, ...]:
    """Names of outputs; one that ends with a slash is a folder whose content alone is meant."""
    return tuple(checked_name(name) + ("/" if name.endswith("/") else "") for name in _words(text))


def optional_path(text: str) -> str:
    """Optional file name, checked to stay inside the workspace."""
    return checked_name(text.strip()) if text.strip() else ""


def _words(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
