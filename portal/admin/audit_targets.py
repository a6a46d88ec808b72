"""Audit entries of a row in the administration, found by the target that names it in the trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model, QuerySet

from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Frontend, Submitter
from wms.core.audit_changes import changes_of
from wms.core.identity_models import Identity
from wms.core.models import ApiToken, AuditEntry, ServiceAccount, User
from wms.dags.models import MatchmakingPolicy, SharedLimit
from wms.factories.models import RemoteFactory
from wms.jobs.models import RunningLimit
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.services import target_of as credential_target
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.models import NodeCheck
from wms.pilots.pressure_models import PilotLimit
from wms.placement.storages.models import Storage
from wms.placement.storages.services import target_of as storage_target
from wms.sites.downtimes.models import Downtime
from wms.sites.frontends.entries import target_of
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueuePolicy

_TARGETS: dict[type[Model], Callable[[Any], str]] = {
    Site: lambda row: f"site {row.name}",
    Queue: lambda row: f"queue {row}",
    Downtime: lambda row: f"site {row.site.name}",
    Frontend: lambda row: f"frontend {row.name}",
    FrontendEntry: target_of,
    Credential: credential_target,
    RemoteFactory: lambda row: f"remote factory {row.name}",
    RemoteFrontend: lambda row: f"remote frontend {row.frontend.name}",
    AccountingGroup: lambda row: f"group {row.name}",
    Submitter: lambda row: f"submitter {row}",
    ConcurrencyLimit: lambda row: f"limit {row.name}",
    MatchmakingPolicy: lambda row: "matchmaking policy",
    TaskQueuePolicy: lambda row: "TaskQueue policy",
    SharedLimit: lambda row: f"limit of {row}"[:160],
    RunningLimit: lambda row: f"limit of {row}",
    PilotLimit: lambda row: f"limit on {row}",
    Storage: storage_target,
    NodeCheck: lambda row: f"node check {row.name}",
    User: lambda row: f"user {row.username}",
    ServiceAccount: lambda row: f"user {row.username}",
    Identity: lambda row: f"user {row.user.username}",
    ApiToken: lambda row: f"token {row.prefix}",
}


def changes_of_row(row: Model) -> QuerySet[AuditEntry]:
    """Audit entries of a row, latest first."""
    name = _TARGETS.get(type(row))
    if name is None:
        return AuditEntry.objects.none()
    entries = changes_of(name(row))
    # The trail tells of a downtime where it tells of its site.
    return entries.filter(facts__downtime=row.pk) if isinstance(row, Downtime) else entries
