"""Configuration of the demo: sites of the example production, its operator account and API token.

What exists is left as it is, so that a change made in the portal survives the next demo. Password
and token are kept in private files of the state directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from portal.cli.state_directory import StateDirectory
from portal.embedded.private import kept_secret, write_private
from wms.core.accounts import ensure_account
from wms.core.actors import Actor
from wms.core.errors import NotAuthenticated
from wms.core.models import Role, User
from wms.core.tokens import authenticate_token, create_token
from wms.sites.models import Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site

SITES = ("T2-North", "T2-South", "T2-West")
SLOTS = 2
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Operator:
    """The demo's account: what a person types in, and what a program sends."""

    username: str
    password: str
    token: str


def prepare_sites(state_dir: StateDirectory, *, actor: Actor) -> None:
    """Configure the sites that do not exist yet; each has one queue of processes on this host."""
    existing = set(Site.objects.filter(name__in=SITES).values_list("name", flat=True))
    for name in SITES:
        if name not in existing:
            areas = state_dir.var / "sites" / name
            configure_site(_site(name, areas), [_queue(areas)], actor=actor)


def prepare_operator(state_dir: StateDirectory, *, actor: Actor) -> Operator:
    """Make the account and a token that works; both are kept in files for their owner only."""
    password = kept_secret(state_dir.run / "operator.password", length_bytes=12)
    user = ensure_account(OPERATOR, password=password, role=Role.OPERATOR, actor=actor)
    return Operator(OPERATOR, password, _working_token(state_dir, user, actor))


def _site(name: str, areas: Path) -> SiteSpec:
    working, export = areas / "work", areas / "export"
    for area in (working, export):
        area.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Under root payloads have accounts of their own; the folder above keeps others out.
        area.chmod(0o1777 if os.geteuid() == 0 else 0o700)
    return SiteSpec(
        name=name,
        max_matches=2,
        requirements="TARGET.WANT_USCMS_MATCHMAKER =?= True && CurMatches < MaxMatches",
        attributes="Is_USCMS_Site = True",
        environment=f"SiteName={name}\nSiteWorkingArea={working}\nSiteExportDir={export}",
    )


def _queue(areas: Path) -> QueueSpec:
    shared = [{"path": str(areas / name), "is_writable": True} for name in ("work", "export")]
    return QueueSpec(
        name="local",
        element="host",
        shared_folders=shared,
        max_pilots=SLOTS,
        max_queued_pilots=SLOTS,
        memory_mb=1000,
        wall_time_s=3600,
    )


def _working_token(state_dir: StateDirectory, user: User, actor: Actor) -> str:
    file = state_dir.run / "operator.token"
    if file.is_file():
        text = file.read_text(encoding="utf-8").strip()
        try:
            authenticate_token(text, now=timezone.now())
            return text
        except NotAuthenticated:
            file.unlink()
    text = create_token(user, name="demo", actor=actor)
    write_private(file, text + "\n")
    return text
