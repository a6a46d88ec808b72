"""Fields that a site, queue or limit has in YAML documents, by kind of row (`RowKind`).

The kinds are site, queue, running limit, pilot limit and shared limit. The export writes these
fields, and the import reads no others. Also the name and version of the format, and which fields
name a user or a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from django.db import models

from wms.dags.models import SharedLimit
from wms.jobs.models import RunningLimit
from wms.pilots.pressure_models import PilotLimit
from wms.sites.models import Queue, Site
from wms.sites.services import QueueSpec, SiteSpec

FORMAT = "pilotage-sites"
VERSION = 1
#: Fields that refer to people and groups, which are written by name.
NAMES_OF = {"owner": "username", "owner_group": "name"}


@dataclass(frozen=True, slots=True)
class RowKind:
    """A kind of rows. `keys` tell them apart within their site; `key` is where they are listed.

    `related` is Django's name of a site's rows of this kind.
    """

    word: str
    model: type[models.Model]
    key: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    related: str = ""


SITE = RowKind("site", Site, "sites", ("name",), tuple(field.name for field in fields(SiteSpec)))
QUEUE = RowKind(
    "queue",
    Queue,
    "queues",
    ("name",),
    tuple(field.name for field in fields(QueueSpec)),
    "queues",
)
RUNNING_LIMIT = RowKind(
    "running limit",
    RunningLimit,
    "running_limits",
    ("job_type", "owner_group"),
    ("job_type", "owner_group", "maximum", "min_interval_s", "note"),
    "running_limits",
)
PILOT_LIMIT = RowKind(
    "pilot limit",
    PilotLimit,
    "pilot_limits",
    (),
    ("max_pilots", "curb_pilots", "max_cores", "max_idle_pilots", "curb_idle_pilots"),
    "pilot_limits",
)
SHARED_LIMIT = RowKind(
    "shared limit",
    SharedLimit,
    "shared_limits",
    ("owner", "category"),
    ("owner", "category", "max_jobs", "note"),
    "dag_limits",
)
#: What is listed below a site, in the order in which it is written and stored.
BELOW = (QUEUE, RUNNING_LIMIT, PILOT_LIMIT, SHARED_LIMIT)
_BY_KEY: Mapping[str, RowKind] = {kind.key: kind for kind in BELOW}


def kind_below(key: str) -> RowKind | None:
    """The kind of rows that a site lists under this key."""
    return _BY_KEY.get(key)


def names_account(kind: RowKind, name: str) -> bool:
    """True for a field that names a person or a group."""
    return kind.model._meta.get_field(name).is_relation
