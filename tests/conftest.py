"""Pytest configuration of all tests: options, marks, database, settings, browser, folder, cache.

`module_rows` keeps rows that fixtures of module scope make until the last test of the module.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import TransactionTestCase, override_settings
from django.test.testcases import LiveServerThread
from hypothesis import settings as hypothesis_settings
from whitenoise.middleware import WhiteNoiseMiddleware

from tests.batch_systems.fixtures import (  # noqa: F401 - fixtures for all
    fence_programs,
    own_slurm,
    slurm,
    sshd,
)
from tests.emptying import empty_tables, end_session, flush_tables, needs_reconnection
from tests.identity_provider.fixtures import (  # noqa: F401 - fixtures for all
    provider,
    running_provider,
)
from tests.live_server import ServerWithThreads, end_idle_threads
from tests.markers import _no_process_unless_marked, mark, processes  # noqa: F401 - fixtures for all
from tests.migrated import ensure_migrated
from tests.s3.fixtures import bucket, s3  # noqa: F401 - fixtures for all
from tests.servers import OWN_VARIABLE
from wms.core.storage.owners import this_installation

# No example is too slow: how long one takes is a matter of the machine and its load.
hypothesis_settings.register_profile("exploring", deadline=None)
# What is submitted is judged by what it changed, not by an example that nobody has tried before:
# the same ones each time, of which more would tell no more.
hypothesis_settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "exploring"))

#: Names of a browser that `make test` did not choose, for runs of pytest by hand.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options: other conformance cases or all of them, longer loads, all pairs, kept pictures."""
    parser.addoption(
        "--pressure-cases",
        metavar="FILE",
        help="cases in the format of tests/matching/pressure_cases.json, instead of those",
    )
    parser.addoption(
        "--load-seconds", type=int, default=60, help="how long collaborations share their sites"
    )
    parser.addoption(
        "--engine-seconds", type=int, default=20, help="how long engines are killed and cut off"
    )
    parser.addoption(
        "--any-client-seconds",
        type=int,
        default=0,
        help="how long requests are made up of the schema",
    )
    parser.addoption(
        "--every-extension",
        action="store_true",
        help="every case of the extensions with a killed engine, and each in drawn orders of ends",
    )
    parser.addoption(
        "--every-pair",
        metavar="MIB",
        type=int,
        nargs="?",
        const=64,
        help="every proof of transfers with every pair of protocols; files of 64 MiB, or so many",
    )
    parser.addoption(
        "--pictures", action="store_true", help="keep what pages look like in var/screenshots"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Order of the import of test modules, another for each worker: what one compiles, others read.

    In a fresh checkout most of the collection is to compile. Errors are told when it comes there.
    """
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if count == 1 or session.config.args != session.config.getini("testpaths"):
        return
    own = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    root = Path(__file__).parents[1]
    for file in sorted(root.glob("tests/**/test_*.py"))[own::count]:
        # A folder's configuration may say how its helpers are to be compiled.
        configured = [each / "conftest.py" for each in reversed(file.relative_to(root).parents)]
        for module in (*filter(Path.exists, map(root.joinpath, configured)), file):
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(module.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by what it needs, and put the tests into the order of `_turn`."""
    for item in items:
        mark(item)
    items.sort(key=_turn)
    computing = [item for item in items if not _waits(item)]
    waiting = [item for item in items if _waits(item)]
    # Each worker begins with a stretch of its own, all of one length: the last one waits from the
    # beginning, while others compute.
    last = len(items) - len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    items[:] = [*computing[:last], *waiting, *computing[last:]]


def _waits(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("browser", "batch", "process", "scenario")))


def _turn(item: pytest.Item) -> tuple[bool, bool]:
    """Sort key: the long tests first, so that none of them is the last one."""
    return item.get_closest_marker("scenario") is None, item.get_closest_marker("slow") is None


def pytest_collection_finish() -> None:
    """Keep modules and tests, which stay to the end, from being gone through for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Make this process's database as a copy; on a server of somebody else it is migrated."""
    if OWN_VARIABLE in os.environ:
        connection.settings_dict["TEST"]["TEMPLATE"] = ensure_migrated()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Ask once what identifies the database, in no test; leave it before it is dropped."""
    with django_db_blocker.unblock():
        this_installation()
    yield
    end_idle_threads()
    end_session()


@pytest.fixture(scope="session", autouse=True)
def _quick_and_volatile() -> Iterator[None]:
    """Nothing is waited for that only outlives a crash of this host, or empties what is empty."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda fd: None)
        patched.setattr(LiveServerThread, "server_class", ServerWithThreads)
        is_own = OWN_VARIABLE in os.environ
        patched.setattr(
            TransactionTestCase, "_fixture_teardown", empty_tables if is_own else flush_tables
        )
        if is_own:
            patched.setattr(TransactionTestCase, "_should_reload_connections", needs_reconnection)
        yield


@pytest.fixture(scope="session", autouse=True)
def _settings_for_tests() -> Iterator[None]:
    """Static files from their source folders, passwords hashed quickly, no job that pauses."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(
        STORAGES=settings.STORAGES | {"staticfiles": plain},
        WHITENOISE_USE_FINDERS=True,
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        PILOTAGE=settings.PILOTAGE | {"RESCHEDULE_PAUSES_S": []},
    ):
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_looked_up_once() -> Iterator[None]:
    """Each test client begins the application anew, and half of its time would go there."""
    look_up = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def add_files(self: WhiteNoiseMiddleware) -> None:
        if not found:
            look_up(self)
            found.update(self.files)
        self.files.update(found)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_files)
        yield


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Rows of module scope: what fixtures that take this make is there until the last test.

    Each test takes its own changes back, as always; none of the module may really commit. What a
    test is given is read anew for it, for it may change the object.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The browser named by PILOTAGE_BROWSER, else one in PATH, else the one of Playwright."""
    # The browser's driver runs an event loop in this thread, in which Django refuses queries.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    found = os.environ.get("PILOTAGE_BROWSER") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    chosen = {"executable_path": found} if found else {}
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    return {**browser_type_launch_args, **chosen, "args": flags}


@pytest.fixture
def tmp_path(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """A folder of the test's own, which stays if the test fails.

    The one that pytest brings stays always, and is named after looking at those of all tests
    before: in a whole run that costs some milliseconds each time.
    """
    failed_before = request.session.testsfailed
    path = Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))
    yield path
    if request.session.testsfailed == failed_before:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def own_cache(settings) -> None:
    """An empty cache that no other test knows: several run at once on one Redis."""
    default = settings.CACHES["default"]
    settings.CACHES = {"default": {**default, "KEY_PREFIX": f"test-{uuid.uuid4().hex}"}}
