"""E-mail: what it says, and how much of it leaves at which pace."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core import mail
from django.utils import timezone

from tests import factories
from tests.wms.notices.hearing import START, channel, failed_dag, happens, hears, later
from tests.wms.notices.receivers import Sink
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.models import ControlLoop, User
from wms.dags.models import Dag
from wms.failures import grouping
from wms.notices import fanout
from wms.notices.models import Delivery, Notice
from wms.notices.selectors import own_notices
from wms.pilots.credential_models import Credential

Configured = Callable[..., None]


@pytest.fixture(autouse=True)
def _configured(configured: Configured) -> None:
    """Every test here sends."""


def test_a_mail_tells_what_happened_where_and_why(people: SimpleNamespace) -> None:
    channel(people.alice)
    dag = failed_dag(people)

    later()

    [sent] = mail.outbox
    assert sent.subject == f"[Pilotage] DAG {dag.pk}"
    assert sent.to == ["alice@example.org"]
    assert sent.from_email == "pilotage@example.org"
    assert f"DAG {dag.pk} (analysis) has failed" in sent.body
    assert "  disk full" in sent.body
    assert f"http://127.0.0.1:8000/dags/{dag.pk}/" in sent.body
    assert sent.extra_headers["X-Pilotage-Delivery"] == str(Delivery.objects.get().pk)


def test_mails_about_one_object_stay_together_and_each_has_an_id(people: SimpleNamespace) -> None:
    channel(people.alice)
    dag = failed_dag(people)
    later()
    Dag.objects.filter(pk=dag.pk).update(state="idle")
    happens("hold", dag)

    later(minutes=16)

    first, second = mail.outbox
    assert first.subject == second.subject
    assert first.extra_headers["References"] == second.extra_headers["References"]
    assert first.extra_headers["Message-ID"] != second.extra_headers["Message-ID"]


def test_a_real_mail_server_gets_a_mail(
    people: SimpleNamespace, mail_sink: Sink, configured: Configured
) -> None:
    configured(
        EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend", EMAIL_HOST="127.0.0.1",
        EMAIL_PORT=mail_sink.port, EMAIL_USE_TLS=False,
    )  # fmt: skip
    channel(people.alice)
    dag = failed_dag(people)

    later()

    [sent] = mail_sink.mails
    assert sent["Subject"] == f"[Pilotage] DAG {dag.pk}"
    assert sent["Message-ID"] == f"<{Delivery.objects.get().pk}@127.0.0.1>"
    assert sent["Auto-Submitted"] == "auto-generated"


def test_a_mail_server_that_refuses_is_tried_again_and_what_it_said_is_not_told(
    people: SimpleNamespace, mail_sink: Sink, configured: Configured
) -> None:
    configured(
        EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend", EMAIL_HOST="127.0.0.1",
        EMAIL_PORT=mail_sink.port, EMAIL_USE_TLS=False,
    )  # fmt: skip
    channel(people.alice)
    failed_dag(people)
    mail_sink.refuses = True
    later()
    waiting = Delivery.objects.get()
    mail_sink.refuses = False

    later(minutes=1)

    assert waiting.last_error.endswith(": SMTPSenderRefused")
    assert len(mail_sink.mails) == 1
    assert Delivery.objects.get().state == "sent"


@pytest.mark.slow
def test_a_flood_of_failed_dags_is_five_mails_and_a_summary(people: SimpleNamespace) -> None:
    channel(people.alice)
    hears(people.alice, "my-dags-failed")
    dags = [factories.dag(people.alice, name=f"d{number}.dag") for number in range(60)]
    happens("fail", *dags)

    for minutes in range(0, 40, 2):
        later(minutes=minutes)

    assert len(mail.outbox) == 6
    summary = mail.outbox[-1]
    assert summary.subject == "[Pilotage] Summary"
    assert "55 notices:" in summary.body
    assert "5 more: http://127.0.0.1:8000/notices/" in summary.body
    assert Notice.objects.count() == 60


@pytest.mark.slow
def test_a_dag_whose_nodes_keep_failing_is_told_at_once_and_then_in_sums(
    people: SimpleNamespace,
) -> None:
    channel(people.alice)
    hears(people.alice, "my-dags-failed")
    dag = factories.running_dag(people.alice, node_count=9)
    worker = factories.pilot()

    for minutes in range(0, 18, 2):
        factories.run_job(worker, exit_code=1)
        factories.turn()
        grouping.run_cycle(timezone.now())
        later(minutes=minutes)

    assert [sent.subject for sent in mail.outbox] == [f"[Pilotage] DAG {dag.pk}"] * 2
    assert "1 failed" in mail.outbox[0].body
    assert "8 failed" in mail.outbox[1].body


@pytest.mark.parametrize(
    ("pace", "before", "due"),
    [("hourly", 39, 40), ("daily", 18 * 60 + 39, 18 * 60 + 40)],
)
def test_a_digest_leaves_at_its_time(
    people: SimpleNamespace, pace: str, before: int, due: int
) -> None:
    channel(people.alice, pace=pace)
    first, second = failed_dag(people), failed_dag(people)

    later()
    later(minutes=before)
    assert mail.outbox == []
    later(minutes=due)

    [digest] = mail.outbox
    assert digest.subject == "[Pilotage] Digest"
    assert "2 notices:" in digest.body
    assert all(f"DAG {dag.pk} " in digest.body for dag in (first, second))


def test_what_one_may_not_see_any_more_is_not_sent(people: SimpleNamespace) -> None:
    channel(people.olga, pace="hourly")
    hears(people.olga, "loops")
    ControlLoop.objects.create(name="director", period_s=2, started_at=START, error="broken")
    later()
    later(minutes=1)
    assert Notice.objects.filter(user=people.olga).count() == 1
    User.objects.filter(pk=people.olga.pk).update(role="user")

    later(minutes=41)

    assert mail.outbox == []
    assert Delivery.objects.get().state == "dropped"


def test_the_end_of_a_credential_is_mailed_to_its_frontends_people_before_and_at_it_once_each(
    people: SimpleNamespace,
) -> None:
    queue = factories.site().queues.get()
    atlas, lsst = (Frontend.objects.create(name=name) for name in ("atlas", "lsst"))
    for frontend, member in ((atlas, people.alice), (lsst, people.bob)):
        AccountingGroup.objects.create(name=frontend.name, frontend=frontend).members.add(member)
        channel(member)
        hears(member, "credentials")
    made = Credential.objects.create(
        name="login", frontend=atlas, queue=queue, kind="ssh-key", account="a", directory="/a",
        sealed="x", replaced_at=START - timedelta(days=99), expires_at=START + timedelta(days=3),
    )  # fmt: skip

    for hours in (1, 2, 73, 74, 99):
        later(hours=hours)

    assert [each.to for each in mail.outbox] == [[people.alice.email]] * 2
    assert {each.subject for each in mail.outbox} == {"[Pilotage] frontend atlas"}
    assert ["/frontends/atlas/" in each.body for each in mail.outbox] == [True, True]
    told = Notice.objects.order_by("pk").values_list("kind", "user")
    alice = people.alice.pk
    assert list(told) == [("credential-ends", alice), ("credential-ended", alice)]
    # A new end is news again; one that is switched off, or of long ago, is not.
    Credential.objects.filter(pk=made.pk).update(expires_at=START + timedelta(days=9))
    later(hours=100)
    assert Notice.objects.filter(kind="credential-ends").count() == 2
    Credential.objects.filter(pk=made.pk).update(is_enabled=False)
    later(days=10)
    Credential.objects.filter(pk=made.pk).update(is_enabled=True)
    later(days=20)
    assert Notice.objects.count() == 3
    # Who leaves the frontend sees no more of it.
    AccountingGroup.objects.get(name="atlas").members.clear()
    assert not own_notices(people.alice).exists()


def test_notices_that_have_still_to_be_sent_are_kept(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "MAX_KEPT", 2)
    channel(people.alice, pace="hourly")

    first = [failed_dag(people) for _ in range(4)]
    later()
    waiting = Notice.objects.count()
    later(minutes=40)
    failed_dag(people)
    later(minutes=41)

    assert waiting == 4
    assert all(f"DAG {dag.pk} " in mail.outbox[0].body for dag in first)
    assert Notice.objects.count() == 2
