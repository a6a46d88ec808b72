"""Commands that ask a portal elsewhere, and the endpoints that they use: all but the socket."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as DjangoClient

from portal.cli import portal_address, remote_trials, send_log
from portal.cli.client import ApiError, Client, Unreachable
from tests import factories
from tests.portal.cli.rotating import pack, rotate
from tests.wms.dags.files.samples import SAMPLES
from wms.core.actors import Actor
from wms.core.models import AuditEntry, Role, User
from wms.dags.models import Dag, FollowedLog, Trial
from wms.dags.services.dags import hold_dags, release_dags
from wms.dags.trials import runner

FILES = {
    "dags/a.dag": "JOB A a.sub\nJOB B none.sub\nSCRIPT POST A /no/such/program\nRETRY A x\n",
    "dags/a.sub": "executable = work.sh\nqueue\n",
}


@pytest.fixture(autouse=True)
def alice(db: None, settings: Any, tmp_path: Path) -> User:
    folders = {"BLOBS_DIR": str(tmp_path / "blobs"), "TRIALS_DIR": str(tmp_path / "trials")}
    settings.PILOTAGE = settings.PILOTAGE | folders
    return User.objects.create_user("alice", role=Role.USER)


@dataclass(frozen=True)
class InProcess(Client):
    """Client whose requests the portal of this process answers, unless the line is cut."""

    cuts: random.Random | None = None
    sent: list[str] = field(default_factory=list)

    def _send(self, request: Request) -> Any:
        if self.cuts and self.cuts.random() < 0.2:
            raise Unreachable("before it was sent")
        at = urlsplit(request.full_url)
        self.sent.append(f"{request.get_method()} {at.path}")
        body = request.data.read() if hasattr(request.data, "read") else request.data or b""
        headers = {name.lower(): value for name, value in request.header_items()}
        answer = DjangoClient().generic(
            request.get_method(),
            f"{at.path}?{at.query}",
            body,
            content_type=headers.get("content-type", ""),
            headers={"Authorization": f"Token {self.token}"}
            | ({"Idempotency-Key": headers[k]} if (k := "idempotency-key") in headers else {}),
        )
        if self.cuts and self.cuts.random() < 0.2:
            raise Unreachable("before the answer came")
        if answer.status_code >= 400:
            error = ApiError(answer.content.decode())
            error.status = answer.status_code
            raise error
        return answer.json()


@pytest.fixture
def client(alice: User, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    client = InProcess("http://portal.example.org", factories.token_for(alice))
    for module in (send_log, portal_address):
        monkeypatch.setattr(module, "portal_client", lambda *_: client)
    return client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "run"


@pytest.mark.process
def test_a_check_by_a_portal_has_the_result_of_the_command_and_leaves_nothing(
    client: InProcess, folder: Path, monkeypatch: Any, capsys: Any, tmp_path: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    from portal.cli.management.commands import check_dag

    monkeypatch.setattr(check_dag, "portal_client", lambda *_: client)
    monkeypatch.setattr(remote_trials.time, "sleep", lambda _: runner.run_next())
    (folder / "large").write_bytes(b"\0" * 2_000_000)
    words = ["check_dag", str(folder / "dags/a.dag"), "--root", str(folder), "--json"]

    with pytest.raises(SystemExit) as here:
        call_command(*words)
    said_here = capsys.readouterr().out
    with (
        django_capture_on_commit_callbacks(execute=True),
        pytest.raises(SystemExit) as there,
    ):
        call_command(*words, "--portal", client.url)
    told = capsys.readouterr()

    assert told.out == said_here
    assert (here.value.code, there.value.code) == (1, 1)
    assert "large" in told.err
    lines = [(each["file"], each["line"]) for each in json.loads(told.out)["errors"]]
    assert ("dags/a.dag", 2) in lines
    assert ("dags/a.dag", 4) in lines
    trial = Trial.objects.get()
    assert (trial.state, trial.exit_code) == ("done", 1)
    assert AuditEntry.objects.filter(target=f"trial {trial.pk}").count() == 1
    assert [*tmp_path.glob("blobs/trials/*"), *tmp_path.glob("trials/*")] == []


@pytest.mark.process
def test_what_plain_dagman_does_not_know_is_a_fault_for_a_portal_too(
    client: InProcess, tmp_path: Path, monkeypatch: Any, capsys: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    from portal.cli.management.commands import check_dag

    monkeypatch.setattr(check_dag, "portal_client", lambda *_: client)
    monkeypatch.setattr(remote_trials.time, "sleep", lambda _: runner.run_next())
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a.dag").write_text("JOB A a.sub\nGATE g\nPARENT A CHILD g\n")
    words = ["check_dag", str(tmp_path / "run/a.dag"), "--allow-missing", "--portal", client.url]

    codes = []
    for more in ([], ["--dagman"]):
        with (
            django_capture_on_commit_callbacks(execute=True),
            pytest.raises(SystemExit) as ended,
        ):
            call_command(*words, *more)
        codes.append(ended.value.code)

    assert codes == [0, 1]
    assert "a.dag:2: error: GATE: plain DAGMan does not know gates" in capsys.readouterr().out
    asked = Trial.objects.order_by("pk").values_list("request__is_for_dagman", flat=True)
    assert list(asked) == [False, True]


def test_a_trial_that_nobody_waits_for_is_stopped_and_a_wrong_behaviour_refused(
    client: InProcess, folder: Path, monkeypatch: Any
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(remote_trials.time, "sleep", interrupted)
    ask = {"tell": lambda _: None}
    origin = remote_trials.Origin()
    with pytest.raises(KeyboardInterrupt):
        remote_trials.remote_report(client, "dry-run", folder, ["dags/a.dag"], origin, **ask)
    assert Trial.objects.get().state == "stopped"

    hostile = {"x": "\ud800"}, {"x": "\0"}, {"A": [float("nan")]}, {"A": [10**400]}
    of_site = {"site": {"attributes": {"x": float("nan")}}}, {"duration": {"*": float("inf")}}
    for behaviour in ({"options": {"slot": 1}}, {"duration": 5}, *hostile, *of_site):
        with pytest.raises(ApiError) as refused:
            remote_trials.remote_report(
                client, "dry-run", folder, ["dags/a.dag"], origin, behaviour=behaviour, **ask
            )
        assert refused.value.status == 400
    with pytest.raises(ApiError) as refused:
        remote_trials.remote_report(client, "check", folder, ["no.dag"], origin, **ask)
    assert refused.value.status == 400
    assert Trial.objects.count() == 1


@pytest.mark.slow
def test_a_log_is_sent_through_outages_kills_and_rotations_once(
    client: InProcess, tmp_path: Path, monkeypatch: Any
) -> None:
    run = Path(shutil.copytree(SAMPLES / "recovery_and_removed", tmp_path / "there"))
    log = run / "recovery.dag.nodes.log"
    whole = log.read_bytes()
    log.write_bytes(b"")
    size, cuts = len(whole) // 15, random.Random(5)
    rest = [whole[at : at + size] for at in range(0, len(whole), size)]
    cut = InProcess(client.url, client.token, cuts=cuts)
    monkeypatch.setattr(send_log, "portal_client", lambda *_: cut)

    def write(_: float) -> None:
        if len(rest) % 5 == 0 and log.stat().st_size:
            rotate(log)
            pack(log)
        hold_and_release()
        if rest:
            with log.open("ab") as file:
                file.write(rest.pop(0))
        if cuts.random() < 0.1:
            raise KeyboardInterrupt  # the program is ended, and called again

    monkeypatch.setattr(send_log.time, "sleep", write)
    who = Actor.person(User.objects.get())
    held: list[int] = []

    def hold_and_release() -> None:
        """Somebody holds the DAG in the middle, and releases it."""
        dag = Dag.objects.filter(state__in=["running", "held"]).first()
        if dag is not None and len(rest) <= 10 and not held:
            held.append(dag.pk)
            hold_dags(held, actor=who, reason="look")
        elif held and len(rest) < 6:
            release_dags(held, actor=who)

    words = [str(run / "recovery.dag"), str(log), "--portal", client.url]
    codes = iter(lambda: send_log.main(words), None)
    code = next(code for code in codes if code != 2)

    dag = Dag.objects.get()
    assert (code, dag.state, dag.name) == (0, "completed", "recovery")
    assert held == [dag.pk]
    assert FollowedLog.objects.get().byte_offset == len(whole)
    assert FollowedLog.objects.get().event_count == 9
    assert AuditEntry.objects.filter(action="follow DAG").count() == 1


def test_a_piece_that_leaves_a_gap_or_is_too_large_is_refused(client: InProcess) -> None:
    def status(query: str, piece: bytes = b"") -> int:
        with pytest.raises(ApiError) as refused:
            client.post_bytes(f"dags/{dag}/followed-log/{query}", piece)
        return refused.value.status

    parts = [("log", "x.log"), ("dag", "a.dag")]
    with pytest.raises(ApiError) as refused:
        client.post_files("dags/follow/", [], texts=parts)
    assert refused.value.status == 400
    dag = factories.dag(User.objects.get(), node_count=1).pk

    assert status("?offset=0") == 404
    assert status("") == 400
    assert status("?offset=-1") == 400
    assert status("?offset=0", b"x" * (send_log.PIECE_BYTES + 1)) == 413


def test_without_a_token_nothing_is_sent(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.delenv("PILOTAGE_TOKEN", raising=False)
    with pytest.raises(ApiError):
        portal_address.portal_client("http://portal.example.org", None)
    with pytest.raises(ApiError):
        portal_address.portal_client("file:///etc/passwd", tmp_path)
    (tmp_path / "a.dag").write_text("")
    with pytest.raises(CommandError):
        call_command("check_dag", str(tmp_path / "a.dag"), "--portal", "http://127.0.0.1:1")
