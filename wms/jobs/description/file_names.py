"""Names of files in submit descriptions, parsed and checked to be inside the workspace.

Alone or in lists; an output whose name ends with a slash is the content of a folder. URLs are no
names, but may stand among those of inputs. Also lists of logical names.
"""

from __future__ import annotations

from collections.abc import Iterable

from wms.jobs.content.paths import checked_path
from wms.jobs.description.file_urls import (
    MOST_INPUT_DATA,
    MOST_URLS,
    checked_logical,
    has_url,
    input_of_url,
    url_fault,
)


def checked_name(name: str) -> str:
    """Checked name of a file in the workspace. Raises ValueError and InvalidInput."""
    if fault := url_fault(name):
        raise ValueError(fault)
    return checked_path(name)


def file_list(text: str) -> tuple[str, ...]:
    """Names separated by commas, URLs left out, each checked to stay inside the workspace."""
    return tuple(checked_path(name) for name in _words(text) if not has_url(name))


def url_list(texts: Iterable[str]) -> dict[str, str]:
    """URLs among names, by the names that their files get. Raises ValueError and InvalidInput."""
    words = [word for text in texts for word in _words(text)]
    names = {checked_path(word) for word in words if not has_url(word)}
    found: dict[str, str] = {}
    for url in dict.fromkeys(word for word in words if has_url(word)):
        name, checked = input_of_url(url)
        if name in names or name in found:
            raise ValueError(f"two inputs get the name {name[:80]}")
        found[name] = checked
    if len(found) > MOST_URLS:
        raise ValueError(f"a job has {MOST_URLS} URLs at most, not {len(found)}")
    return found


def logical_list(text: str) -> tuple[str, ...]:
    """Logical names of input data, each once. Raises ValueError for anything else."""
    names = tuple(dict.fromkeys(map(checked_logical, _words(text))))
    if len(names) > MOST_INPUT_DATA:
        raise ValueError(f"input_data has {MOST_INPUT_DATA} names at most, not {len(names)}")
    return names


def output_list(text: str) -> tuple[str, ...]:
    """Names of outputs; one that ends with a slash is a folder whose content alone is meant."""
    return tuple(checked_name(name) + ("/" if name.endswith("/") else "") for name in _words(text))


def optional_path(text: str) -> str:
    """Optional file name, checked to stay inside the workspace."""
    return checked_name(text.strip()) if text.strip() else ""


def _words(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
