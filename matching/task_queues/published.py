"""Published attributes of worker nodes: their names in a pilot's ad, and what is known at a queue.

Each is named by its check and by itself, with `_` between: `cvmfs_Available`. No other attribute
of a pilot or job has a `_`, so a check can hide none, and the text of requirements shows which of
their names are those of checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Value = bool | int | float | str
#: Values by check and attribute.
Published = Mapping[str, Mapping[str, Value]]

_NAME = re.compile(r"(?!node)[a-z][a-z0-9]*_[a-z][a-z0-9]*")


def attribute_name(check: str, name: str) -> str:
    """Name of a published attribute in the ad of a pilot."""
    return f"{check}_{name}"


def is_published_name(name: str) -> bool:
    """Whether a name, in lower case, is one that a check may publish."""
    return bool(_NAME.fullmatch(name))


def ad_values(published: Published) -> dict[str, Value]:
    """Published values by their names in the ad of a pilot."""
    return {
        attribute_name(check, name): value
        for check, values in published.items()
        for name, value in values.items()
    }


@dataclass(frozen=True, slots=True)
class PublishedHere:
    """Knowledge of what pilots of a queue publish.

    `declared` are the names, in lower case, that the queue's checks may publish. `seen` are the
    different sets of values of its pilots of late; without one every declared name is open.
    """

    declared: frozenset[str] = frozenset()
    seen: tuple[Published, ...] = ()

    def sets(self) -> Iterable[tuple[Published, frozenset[str]]]:
        """Sets that a pilot may publish, each with the names that stay open in it.

        Open is what a check that did not run in that pilot declares now.
        """
        for values in self.seen or ({},):
            ran = {check.lower() for check in values}
            yield (
                values,
                frozenset(name for name in self.declared if name.partition("_")[0] not in ran),
            )
