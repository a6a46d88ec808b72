"""The order of lists: each row once and in its place, whatever is equal or missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.lists.base_filter import ListFilter
from portal.lists.job_filter import JobFilter
from portal.lists.registry import LISTS, find_list
from portal.lists.sorting import Border, Order
from tests import factories
from wms.dags.models import Dag
from wms.jobs.models import Job, Workspace
from wms.jobs.states import JobState

START = datetime(2026, 11, 20, tzinfo=UTC)
#: Few values for many rows: most are equal to others.
_few = st.integers(0, 2)
_small = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


def at(hour: int | None) -> datetime | None:
    return None if hour is None else START + timedelta(hours=hour)


def asked(name: str, people: SimpleNamespace, query: str) -> Any:
    found = find_list(name).filter_of(QueryDict(query), people.vera)
    assert found.is_valid(), found.form.errors
    return found


def walked(found: ListFilter, size: int, *, is_back: bool = False) -> list[Any]:
    """All rows page by page, each from the border of the last one as an address has it."""
    rows: list[Any] = []
    border: Border | None = None
    while page := found.some(border, size, is_back=is_back):
        rows += page
        border = found.order.parse(str(found.order.border_of(rows[-1])))
        assert border is not None
    return rows


def in_order(rows: Sequence[Any], order: Order, value: Callable[[Any], Any]) -> list[int]:
    """The ids in the order as it is told: those without a value last, equal ones by their ids."""
    there = [(value(row), row.pk) for row in rows if value(row) is not None]
    missing = [row.pk for row in rows if value(row) is None]
    falls = order.is_falling
    return [pk for _, pk in sorted(there, reverse=falls)] + sorted(missing, reverse=falls)


@pytest.mark.slow
@_small
@given(
    made=st.lists(st.tuples(_few, st.none() | _few, st.sampled_from("aB_")), max_size=12),
    size=st.integers(1, 5),
    sort=st.sampled_from(["id", "name", "failed", "nodes", "since", "ended"]),
    down=st.booleans(),
)
def test_dags_are_walked_in_order_each_once_forth_and_back(
    people: SimpleNamespace, made: list[Any], size: int, sort: str, down: bool
) -> None:
    Dag.objects.all().delete()
    space = Workspace.objects.create(owner=people.alice)
    rows = Dag.objects.bulk_create(
        Dag(
            name=name, owner=people.alice, workspace=space, state="completed",
            state_since=at(number), failed_count=number, node_count=2 - number, ended_at=at(ended),
        )
        for number, ended, name in made
    )  # fmt: skip

    found = asked("dags", people, f"sort={'-' * down}{sort}")

    column = found.order.sort.field
    expected = in_order(rows, found.order, lambda row: getattr(row, column))
    assert [row.pk for row in walked(found, size)] == expected
    assert [row.pk for row in walked(found, size, is_back=True)] == expected[::-1]


@pytest.mark.slow
@_small
@given(
    made=st.lists(
        st.tuples(_few, _few, st.sampled_from(["waiting", "running", "failed"])), max_size=12
    ),
    size=st.integers(1, 5),
    sort=st.sampled_from(["id", "since", "priority", "attempt", "name"]),
    down=st.booleans(),
    states=st.sampled_from(["", "state=failed", "state=!failed", "state=failed,waiting"]),
    other=st.sampled_from(["", "&owner=alice", "&since=2026-11-20"]),
)
def test_jobs_are_walked_in_order_each_once_forth_and_back(
    people: SimpleNamespace, made: list[Any], size: int, sort: str, down: bool, states: str,
    other: str,
) -> None:  # fmt: skip
    Job.objects.all().delete()
    space = Workspace.objects.create(owner=people.alice)
    jobs = Job.objects.bulk_create(
        factories.job_row(
            name=f"job{number}", owner=people.alice, workspace=space, executable="x", needs={},
            state=state, state_since=at(hour), priority=number, attempt_number=1 + number,
            wall_limit_s=1,
        )
        for hour, number, state in made
    )  # fmt: skip

    found = asked("jobs", people, f"sort={'-' * down}{sort}&{states}{other}")

    wanted = {
        "": {*JobState.values},
        "state=failed": {"failed"},
        "state=!failed": {"waiting", "running"},
        "state=failed,waiting": {"failed", "waiting"},
    }[states]
    column = found.order.sort.field
    rows = [job for job in jobs if job.state in wanted]
    expected = in_order(rows, found.order, lambda row: getattr(row, column))
    assert [row.pk for row in walked(found, size)] == expected
    assert [row.pk for row in walked(found, size, is_back=True)] == expected[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LISTS))
def test_every_order_of_every_list_can_be_asked_for_from_any_border(
    people: SimpleNamespace, name: str
) -> None:
    kind = find_list(name)
    factories.running_dag(people.alice)

    for text in kind.filter_class().form.fields["sort"].orders:
        found = asked(name, people, f"sort={text}")
        list(kind.walk(kind, found, people.vera))
        if found.order.sort.field and name not in {"sites", "task-queues"}:
            borders = ["999999999999999999=5", "-1=5", "_5", "2026-11-20T00:00:00+00:00=5", "x=y=5"]
            for border in filter(None, map(found.order.parse, [*borders, "5"])):
                for is_back in (False, True):
                    found.some(border, 2, is_back=is_back)


@pytest.mark.parametrize(
    ("sort", "text"),
    [
        ("id", "x"), ("id", "-1"), ("id", "1234567890123456789"),
        ("priority", "5"), ("priority", "_5"), ("priority", "a=5"), ("priority", "1=x"),
        ("priority", "1=-5"), ("name", "a\0=5"), ("name", "a" * 256 + "=5"), ("name", "_5"),
        ("since", "2026-02-30T00:00Z=1"), ("since", "2026-11-21T10:00:00=1"),
        ("since", "0001-01-01T00:00:00+23:59=1"), ("since", "=1"),
    ],
)  # fmt: skip
def test_a_made_up_border_is_none(sort: str, text: str) -> None:
    assert JobFilter(QueryDict(f"sort={sort}")).order.parse(text) is None


def test_the_order_of_a_list_is_kept_with_a_filter_and_chooses_no_rows(
    people: SimpleNamespace,
) -> None:
    jobs = find_list("jobs")

    assert jobs.kept(QueryDict("sort=since&state=held")) == {"state": ["held"], "sort": ["since"]}
    assert jobs.kept(QueryDict("sort=-id&state=held")) == {"state": ["held"]}
    assert jobs.normalised(QueryDict("sort=since&state=held")) == {"state": ["held"]}


def test_what_no_index_has_in_order_is_sorted_among_the_latest(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.lists.base_filter.EXACT_UP_TO", 2)
    factories.running_dag(people.alice, node_count=4)
    oldest, *_, late, latest = Job.objects.order_by("pk")
    Job.objects.filter(pk__in=[oldest.pk, late.pk]).update(priority=9)

    def ids(query: str) -> list[int]:
        return [job.pk for job in asked("jobs", people, query).some(None, 9)]

    assert ids("sort=-priority") == [late.pk, latest.pk]
    assert ids("sort=id&owner=alice") == [late.pk, latest.pk]
    assert len(ids("sort=id&state=waiting")) == len(ids("sort=since&state=waiting")) == 4


@pytest.mark.slow
def test_jobs_of_all_states_by_their_last_change_are_read_from_one_end_of_an_index(
    people: SimpleNamespace,
) -> None:
    space = Workspace.objects.create(owner=people.alice)
    Job.objects.bulk_create(
        factories.job_row(
            name="x", owner=people.alice, workspace=space, executable="x", needs={},
            state=("waiting", "failed")[n % 2], state_since=START + timedelta(seconds=n),
            wall_limit_s=1,
        )
        for n in range(3000)
    )  # fmt: skip
    found = asked("jobs", people, "sort=since")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobs_job")

    with CaptureQueriesContext(connection) as queries:
        rows = found.some(Border(START + timedelta(seconds=1000), 0), 5)

    assert [row.state_since.minute for row in rows] == [16] * 5
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries.captured_queries[0]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert plan.count("job_by_last_change") == len(JobState.values)
    assert "Sort" not in plan


def test_names_that_begin_so_are_found_however_old_their_jobs_are(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.lists.job_filter.SEARCHED_JOBS", 1)
    old = factories.job(people.alice, name="fit_1%")
    factories.job(people.alice, name="fit_10")
    factories.job(people.alice, name="afit_1%")

    found = asked("jobs", people, "begins=fit_1%25")
    contained = asked("jobs", people, "name=fit_1%25&sort=since")

    assert ([job.pk for job in found.qs], found.notes()) == ([old.pk], [])
    assert old.pk not in {job.pk for job in contained.qs}
    [(words, way)] = contained.wider()
    assert "fit_1%," in words.split()
    assert way == {"begins": ["fit_1%"]}


def test_a_beginning_that_many_names_have_is_looked_for_in_the_latest_jobs_and_that_is_said(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.lists.job_filter.SEARCHED_JOBS", 2)
    monkeypatch.setattr("portal.lists.job_filter.BEGINNINGS", 2)
    dag = factories.running_dag(people.alice, node_count=3)

    found = asked("jobs", people, "begins=A")

    assert found.qs.count() == 2
    assert "2" in found.notes()[0].split()
    assert asked("jobs", people, f"begins=A&dag={dag.pk}").qs.count() == 3
