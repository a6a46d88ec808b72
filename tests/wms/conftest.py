"""Fixtures of tests of the domain: folders for blobs and pilots, users by role, sites, DAGs."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.dags.models import Dag
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.sites.models import Site
from wms.sites.services import QueueSpec, SiteSpec, configure_site

SUBMIT_FILE = "executable = step.sh\narguments = $(JOB)\noutput = $(JOB).out\nqueue\n"


@pytest.fixture(autouse=True)
def _own_files(settings: Any, tmp_path: Path) -> None:
    """Blobs and host pilots of a test go into its own folder."""
    settings.PILOTAGE = django_settings.PILOTAGE | {
        "BLOBS_DIR": str(tmp_path / "blobs"),
        "HOST_PILOTS_DIR": str(tmp_path / "pilots"),
        "TRIALS_DIR": str(tmp_path / "trials"),
    }


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice", role=Role.USER)


@pytest.fixture
def charlie(db: None) -> User:
    return User.objects.create_user("charlie", role=Role.USER)


@pytest.fixture
def sam(db: None) -> User:
    return User.objects.create_user("sam", role=Role.SHIFTER)


@pytest.fixture
def olga(db: None) -> User:
    return User.objects.create_user("olga", role=Role.OPERATOR)


@pytest.fixture
def make_site(olga: User) -> Callable[..., Site]:
    def make(name: str = "site-a", *, queue: Mapping[str, Any] | None = None, **spec: Any) -> Site:
        queues = [QueueSpec(name="main", element="host", **(queue or {"max_pilots": 2}))]
        return configure_site(SiteSpec(name=name, **spec), queues, actor=Actor.person(olga))

    return make


@pytest.fixture
def submit(alice: User) -> Callable[..., Dag]:
    """Submit a DAG whose nodes all use one small submit file, `step.sub`."""

    def make(text: str, *, owner: User | None = None, **fields: Any) -> Dag:
        files = {"step.sub": SUBMIT_FILE, "step.sh": "#!/bin/sh\n"} | fields.pop("files", {})
        user = owner or alice
        return submit_dag(
            DagSubmission(
                dag_name=fields.pop("dag_name", "test.dag"),
                dag_text=text,
                files={name: io.BytesIO(content.encode()) for name, content in files.items()},
                **fields,
            ),
            owner=user,
            actor=Actor.person(user),
        )

    return make
