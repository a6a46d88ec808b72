"""Quotas: what is counted for whom, what is refused, and two submissions at once."""

from __future__ import annotations

import io
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import connection, transaction

from tests import factories
from tests.wms.taskqueues.claiming import in_threads, put
from wms.accounting.models import AccountingGroup, Quota
from wms.accounting.services import delete_quota, save_quota
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, QuotaExceeded
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Blob, StoredBytes, Workspace, WorkspaceFile
from wms.jobs.operations import create_workspace
from wms.jobs.quotas import (
    Holder,
    Usage,
    check_quota,
    fold_stored_bytes,
    quotas_of,
    usage_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


SUBMIT_FILE = b"executable = /bin/true\nqueue\n"


def quota(user: User | None = None, group: AccountingGroup | None = None, **limits: int) -> Quota:
    row = Quota(user=user, group=group, **limits)
    save_quota(row, actor=factories.SYSTEM)
    return row


def group_of(name: str, *members: User) -> AccountingGroup:
    group = AccountingGroup.objects.create(name=name)
    group.members.set(members)
    return group


def dag_of(owner: User, nodes: int = 1, *, group: str = "", key: str | None = None) -> Dag:
    return submit_dag(
        DagSubmission(
            dag_name="a.dag",
            dag_text="".join(f"JOB n{n} x.sub\n" for n in range(nodes)),
            files={"x.sub": io.BytesIO(SUBMIT_FILE)},
            description_name="a.sub" if group else "",
            description_text=f"accounting_group = {group}\n" if group else "",
            idempotency_key=key,
        ),
        owner=owner,
        actor=Actor.person(owner),
    )


def asks(owner: User, group: AccountingGroup | None = None, **more: int) -> QuotaExceeded | None:
    try:
        with transaction.atomic():
            check_quota(owner=owner, group=group, **more)
    except QuotaExceeded as error:
        return error
    return None


def test_without_a_quota_everything_is_allowed(alice: User) -> None:
    assert asks(alice, jobs=10**15, clusters=10**15, size_bytes=10**15) is None


def test_a_refusal_names_the_quota_what_is_used_and_what_was_asked_for(alice: User) -> None:
    quota(alice, max_waiting_jobs=5)
    put(1, 3, owner="alice")

    assert asks(alice, jobs=2) is None
    refused = asks(alice, jobs=3)

    assert refused is not None
    assert (refused.quota, refused.whose) == ("waiting_jobs", "user alice")
    assert (refused.limit, refused.used, refused.asked) == (5, 3, 3)
    assert refused.status == 409


def test_a_users_own_quota_stands_in_place_of_that_of_every_user(people: SimpleNamespace) -> None:
    quota(max_clusters=1)
    quota(people.alice, max_clusters=3)

    assert asks(people.alice, clusters=3) is None
    assert asks(people.bob, clusters=1) is None
    assert asks(people.bob, clusters=2) is not None


def test_an_own_quota_without_limits_frees_its_user(alice: User) -> None:
    quota(max_clusters=0, max_waiting_jobs=0, max_bytes=0)
    quota(alice)

    assert asks(alice, jobs=9, clusters=9, size_bytes=9) is None


def test_members_share_the_quota_of_their_group_and_of_the_one_above(
    people: SimpleNamespace,
) -> None:
    physics = group_of("physics", people.alice)
    higgs = group_of("physics.higgs", people.alice, people.bob)
    quota(group=physics, max_waiting_jobs=4)
    put(101, 3, owner="bob", owner_group="physics.higgs")
    put(201, 9, owner="bob")

    assert asks(people.alice, jobs=9) is None
    assert asks(people.alice, higgs, jobs=1) is None
    refused = asks(people.alice, higgs, jobs=2)

    assert refused is not None
    assert (refused.whose, refused.used) == ("group physics", 3)


def test_a_group_whose_name_begins_alike_is_another_group(people: SimpleNamespace) -> None:
    quota(group=group_of("phys", people.alice), max_waiting_jobs=0)

    assert asks(people.alice, group_of("physics", people.alice), jobs=1) is None


def test_a_dag_counts_its_nodes_that_have_no_jobs_yet(alice: User) -> None:
    dag = dag_of(alice, 7)

    assert usage_of(Holder(alice)).waiting_jobs == 7
    assert usage_of(Holder(alice)).clusters == 1

    Dag.objects.filter(pk=dag.pk).update(done_count=2, submitted_count=1)
    assert usage_of(Holder(alice)).waiting_jobs == 4

    remove_dags([dag.pk], actor=Actor.person(alice), reason="enough")
    assert usage_of(Holder(alice)) == Usage(size_bytes=usage_of(Holder(alice)).size_bytes)


def test_a_dag_above_the_quota_of_jobs_is_refused_and_nothing_of_it_is_stored(alice: User) -> None:
    quota(alice, max_waiting_jobs=10)
    dag_of(alice, 6)

    with pytest.raises(QuotaExceeded) as refused:
        dag_of(alice, 5)

    assert (refused.value.used, refused.value.asked) == (6, 5)
    assert Dag.objects.count() == Workspace.objects.count() == 1


def test_dags_in_the_name_of_a_group_count_for_it(people: SimpleNamespace) -> None:
    physics = group_of("physics", people.alice)

    dag_of(people.alice, 2, group="physics")
    dag_of(people.alice, 5)

    used = usage_of(Holder(group=physics))
    assert (used.waiting_jobs, used.clusters) == (2, 1)
    assert 0 < used.size_bytes < usage_of(Holder(people.alice)).size_bytes


def test_bytes_count_every_stored_file_as_often_as_a_workspace_has_it(alice: User) -> None:
    blob = store_bytes(b"12345")

    create_workspace(alice, {"a": blob, "b": blob})
    create_workspace(alice, {"a": blob})

    assert usage_of(Holder(alice)).size_bytes == 15


def test_a_file_that_is_replaced_or_deleted_counts_no_more(alice: User) -> None:
    workspace = create_workspace(alice, {"a": store_bytes(b"12345"), "b": store_bytes(b"1")})

    WorkspaceFile.objects.bulk_create(
        [
            WorkspaceFile(workspace=workspace, path="a", blob=store_bytes(b"12")),
            WorkspaceFile(workspace=workspace, path="c", blob=store_bytes(b"1234")),
        ],
        update_conflicts=True,
        unique_fields=["workspace", "path"],
        update_fields=["blob"],
    )
    assert usage_of(Holder(alice)).size_bytes == 2 + 1 + 4

    WorkspaceFile.objects.filter(path="c").delete()
    assert usage_of(Holder(alice)).size_bytes == 3

    Workspace.objects.all().delete()
    assert usage_of(Holder(alice)).size_bytes == 0


def test_entries_are_folded_without_a_change_of_the_sum(people: SimpleNamespace) -> None:
    for size in range(1, 5):
        create_workspace(people.alice, {"a": store_bytes(b"x" * size)})
        create_workspace(people.bob, {"a": store_bytes(b"x" * size)}, owner_group="physics")

    fold_stored_bytes()

    assert StoredBytes.objects.count() == 2
    assert usage_of(Holder(people.alice)).size_bytes == 10
    assert usage_of(Holder(people.bob)).size_bytes == 10
    assert fold_stored_bytes() == 0


@pytest.mark.slow
def test_one_file_is_counted_by_a_look_into_indexes_after_many_were(alice: User) -> None:
    """The plan of a trigger is made once in a session, here for many files."""
    blobs = {f"f{n}": store_bytes(str(n).encode()) for n in range(3)}
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_blob (sha256, size_bytes)"
            " SELECT 'b' || n, 1 FROM generate_series(1, 20000) AS n"
        )
        cursor.execute("ANALYZE jobs_blob")
        cursor.execute("DISCARD PLANS")
    many = Blob.objects.filter(sha256__startswith="b").order_by("sha256")[:5000]
    create_workspace(alice, {blob.sha256: blob for blob in many})

    with connection.cursor() as cursor:
        cursor.execute("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'jobs_blob'")
        before = cursor.fetchone()[0]
        create_workspace(alice, blobs)
        cursor.execute("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'jobs_blob'")
        assert cursor.fetchone()[0] == before


def test_who_is_beyond_the_quota_of_bytes_by_outputs_begins_nothing_new(alice: User) -> None:
    quota(alice, max_bytes=3)
    create_workspace(alice, {"out": store_bytes(b"12345")})

    refused = asks(alice, jobs=1)

    assert refused is not None
    assert (refused.quota, refused.used, refused.asked) == ("size_bytes", 5, 0)


def test_who_is_beyond_a_lowered_quota_of_jobs_may_store_files(alice: User) -> None:
    put(1, 3, owner="alice")
    quota(alice, max_waiting_jobs=1, max_bytes=100)

    assert asks(alice, size_bytes=1) is None


def test_users_see_the_quotas_that_hold_for_them(people: SimpleNamespace) -> None:
    physics = group_of("physics", people.alice)
    quota(max_clusters=5)
    quota(group=physics, max_waiting_jobs=7)
    quota(people.bob, max_clusters=1)
    put(1, 2, owner="alice", owner_group="physics")

    found = [(str(use.holder), use.used.waiting_jobs) for use in quotas_of(people.alice)]

    assert found == [("user alice", 2), ("group physics", 2)]


@pytest.mark.django_db(transaction=True)
def test_two_submissions_at_once_do_not_both_take_the_last_place(alice: User) -> None:
    quota(alice, max_clusters=3, max_waiting_jobs=30)
    refused: list[QuotaExceeded] = []

    def submit() -> None:
        try:
            dag_of(alice, 10)
        except QuotaExceeded as error:
            refused.append(error)

    in_threads(*[submit] * 6)

    assert Dag.objects.count() == 3
    assert len(refused) == 3


@pytest.mark.django_db(transaction=True)
def test_members_of_groups_in_any_order_do_not_wait_for_each_other_in_a_circle(
    people: SimpleNamespace,
) -> None:
    members = [people.alice, people.bob]
    group_of("physics", *members)
    groups = ["physics", group_of("physics.a", *members).name, group_of("physics.b", *members).name]
    for name in groups:
        quota(group=AccountingGroup.objects.get(name=name), max_clusters=100)
    quota(max_clusters=100)

    in_threads(*[partial(dag_of, user, 1, group=name) for user in members for name in groups])

    assert Dag.objects.count() == 6


def test_only_operators_set_quotas_and_each_change_is_audited(people: SimpleNamespace) -> None:
    row = Quota(user=people.bob, max_bytes=5)
    with pytest.raises(NotPermitted):
        save_quota(row, actor=Actor.person(people.alice))

    save_quota(row, actor=Actor.person(people.olga), reason="tidy")
    delete_quota(row, actor=Actor.person(people.olga))

    actions = list(AuditEntry.objects.filter(target="quota of user bob").order_by("pk"))
    assert [each.action for each in actions] == ["create quota", "delete quota"]
    assert actions[0].facts["max_bytes"] == [None, 5]


@pytest.mark.parametrize("field", ["max_waiting_jobs", "max_clusters", "max_bytes"])
def test_a_negative_limit_is_refused_with_its_field(alice: User, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quota(alice, **{field: -1})

    assert [finding.field for finding in refused.value.findings] == [field]


def test_there_is_one_quota_of_a_holder_and_none_of_user_and_group(people: SimpleNamespace) -> None:
    physics = group_of("physics", people.alice)
    quota(people.alice)
    quota()

    for user, group in ((people.alice, None), (None, None), (people.alice, physics)):
        with pytest.raises(InvalidInput):
            quota(user, group)


@pytest.mark.django_db(transaction=True)
def test_one_dag_that_is_sent_twice_at_once_takes_the_last_place_once() -> None:
    alice = factories.people().alice
    quota(alice, max_clusters=1)

    in_threads(*[partial(dag_of, alice, key="k")] * 3)

    assert Dag.objects.count() == 1
