"""Pytest plugin: one temporary PostgreSQL and Redis for the whole run.

With DATABASE_URL and REDIS_URL set, those servers are used instead. The addresses travel in the
environment, so that the workers of pytest-xdist, and every process that a test starts, find them.
Loaded by `-p tests.servers` in pyproject.toml, before pytest-django reads the settings.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from portal.embedded.temporary import TemporaryServers
from tests.batch_systems.services import run_folder

#: Tells all processes of a run that its servers are its own.
OWN_VARIABLE = "PILOTAGE_TEST_OWN_SERVERS"

_cleanup = ExitStack()


def _make_var(folder: Path) -> None:
    os.environ["PILOTAGE_VAR"] = str(folder)
    # The static files' server warns when the folder of collected files is missing.
    (folder / "static").mkdir(parents=True)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        # Each has a database of its own, and is an installation with its own contents.
        _make_var(Path(os.environ["PILOTAGE_VAR"], worker))
        return
    if early_config.known_args_namespace.help:
        return
    os.environ["PILOTAGE_SECRET_KEY"] = secrets.token_urlsafe(32)
    os.environ["PILOTAGE_CREDENTIAL_KEYS"] = secrets.token_urlsafe(32)
    os.environ["PILOTAGE_PUBLIC_URL"] = "http://127.0.0.1:8000"
    _make_var(Path(tempfile.mkdtemp(prefix="pilotage-tests-")))
    # Rates have tests of their own; all others ask as often as they like.
    for rate in ("TOKEN", "USER", "READ", "SUBMIT", "CONTROL", "SITE", "ADMIN"):
        os.environ[f"PILOTAGE_API_RATE_{rate}"] = "off"
    _cleanup.callback(shutil.rmtree, os.environ["PILOTAGE_VAR"], ignore_errors=True)
    _cleanup.enter_context(run_folder())
    if "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
        return
    servers = _cleanup.enter_context(TemporaryServers())
    if "DATABASE_URL" not in os.environ:
        os.environ[OWN_VARIABLE] = "1"
    os.environ.setdefault("DATABASE_URL", servers.database_url)
    os.environ.setdefault("REDIS_URL", servers.redis_url)


def pytest_unconfigure() -> None:
    _cleanup.close()
