"""Writer of sites with their queues and limits as YAML; to import that again changes nothing.

Also the export of the sites that an actor may configure, and the value of a single field as it is
written, by which the import compares rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from django.db.models import Model, Prefetch, QuerySet

from wms.core.actors import Actor
from wms.exchange.fields import BELOW, FORMAT, NAMES_OF, SITE, VERSION, RowKind, names_account
from wms.exchange.scalars import needs_quotes
from wms.sites.models import Queue, Site
from wms.sites.policy import configurable_sites, require_configuring_some

_HEAD = """\
# Sites of Pilotage with their queues and limits. What is not named here is left as it is when this
# is read again, and nothing is deleted. It holds no credentials: settings name files that do.
"""


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes texts of several lines as blocks, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def export_sites(actor: Actor, names: Iterable[str] = ()) -> str:
    """The sites that the actor may configure, or those of these names, as YAML.

    Raises NotPermitted for who may configure none.
    """
    require_configuring_some(actor, "export sites")
    sites = Site.objects.all() if actor.user is None else configurable_sites(actor.user)
    chosen = list(names)
    if chosen:
        sites = sites.filter(name__in=chosen)
    return write_document(sites)


def write_document(sites: QuerySet[Site]) -> str:
    """The document of these sites, by name: six queries, however many there are."""
    found = sites.order_by("name").prefetch_related(
        Prefetch("queues", Queue.objects.select_related("owner", "owner_group").order_by("name")),
        "running_limits",
        "pilot_limits",
        "dag_limits__owner",
    )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "sites": [_site(site) for site in found],
    }
    text = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100,
        default_flow_style=False,
    )  # fmt: skip
    return f"{_HEAD}{text}"


def _site(site: Site) -> dict[str, Any]:
    values = _row(SITE, site)
    for kind in BELOW:
        rows = [_row(kind, row) for row in getattr(site, kind.related).all()]
        if rows:
            values[kind.key] = rows
    return values


def _row(kind: RowKind, row: Model) -> dict[str, Any]:
    return {name: written(kind, row, name) for name in kind.names}


def written(kind: RowKind, row: Model, name: str) -> Any:
    """A field of a row as it is written: of people and groups the name, or nothing."""
    value = getattr(row, name)
    if names_account(kind, name):
        return None if value is None else getattr(value, NAMES_OF[name])
    return value
