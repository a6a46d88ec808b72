"""Every command once, against the portal itself; the fields of its answers are asserted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests import factories
from tests.client.conftest import URL, Portal, Ran
from tests.portal.furnishing import ended_cluster
from wms.dags.lifecycle import apply_to_dags
from wms.dags.models import Dag, Trial
from wms.dags.trials import operations
from wms.jobs.clusters.materialiser import Turn, advance
from wms.jobs.models import Cluster, Job
from wms.pilots.models import Pilot

Command = Callable[..., Ran]
SUBMIT = "executable = run.sh\narguments = $(JOB)\noutput = $(JOB).out\nerror = $(JOB).err\nqueue\n"


@pytest.fixture
def dag_file(own_place: Path) -> Path:
    folder = own_place / "dags"
    folder.mkdir()
    (folder / "x.dag").write_text("JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n")
    (folder / "a.sub").write_text(SUBMIT)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    return folder / "x.dag"


@pytest.fixture
def running(people: SimpleNamespace) -> Dag:
    """A running DAG of Alice, of two nodes."""
    return factories.running_dag(people.alice)


@pytest.fixture
def ended(running: Dag) -> Dag:
    return factories.finish(running)


def made_jobs(cluster: Cluster) -> list[Job]:
    while advance(cluster.pk) is Turn.MORE:
        pass
    return list(Job.objects.filter(cluster_id=cluster.pk).order_by("process"))


def test_login_keeps_a_token_that_the_portal_takes_and_logout_forgets_it(
    bare_pilotage: Command, people: SimpleNamespace, monkeypatch: Any, tmp_path: Path
) -> None:
    token, kept = tmp_path / "token", tmp_path / "config" / "client.toml"
    token.write_text("plt_wrong")
    refused = bare_pilotage("login", URL, "--token-file", token)
    is_kept = kept.exists()
    token.write_text(factories.token_for(people.alice))

    taken = bare_pilotage("login", URL, "--token-file", token, "--json")
    told = bare_pilotage("token", "--json")
    forgotten = bare_pilotage("logout")
    without = bare_pilotage("token")

    assert (refused.code, is_kept) == (3, False)
    assert (taken.code, json.loads(taken.out)["url"]) == (0, URL)
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    assert json.loads(told.out)["source"] == str(kept)
    assert token.read_text() not in told.out
    assert (forgotten.code, without.code) == (0, 3)
    assert "token" not in kept.read_text()


def test_submit_sends_a_dag_with_what_it_names(pilotage: Command, dag_file: Path) -> None:
    told = pilotage("submit", dag_file, "--label", "a=b", "--priority", 3, "--option", "max_jobs=5")

    dag = Dag.objects.get()
    assert told.code == 0
    assert told.lines == [f"d{dag.pk} {URL}/dags/{dag.pk}/"]
    assert (dag.labels, dag.priority, dag.owner.username) == (["a=b"], 3, "alice")
    assert dag.options["max_jobs"] == 5


def test_submit_sends_a_sweep_and_a_program(pilotage: Command, own_place: Path) -> None:
    (own_place / "run.sh").write_text("#!/bin/sh\n")
    (own_place / "t.csv").write_text("1\n2\n3\n")
    (own_place / "s.sub").write_text("executable = run.sh\nqueue x from t.csv\n")

    sweep = pilotage("submit", "s.sub", "--name", "masses", "--json")
    program = pilotage("submit", "--queue", 2, "--json", "--", "./run.sh", "a b", "it's", '"')

    assert (sweep.code, json.loads(sweep.out)["size"]) == (0, 3)
    assert json.loads(sweep.out)["name"] == "masses"
    assert (program.code, json.loads(program.out)["size"]) == (0, 2)
    made = made_jobs(Cluster.objects.latest("pk"))
    assert [job.arguments for job in made] == [["a b", "it's", '"']] * 2


def test_submit_tells_faults_with_the_paths_of_this_host(pilotage: Command, dag_file: Path) -> None:
    dag_file.write_text("JOB A none.sub\nJOB B\n")

    told = pilotage("submit", dag_file)

    assert (told.code, told.out) == (1, "")
    assert [line.partition(": ")[0] for line in told.err.splitlines()[:2]] == [
        "dags/x.dag:1", "dags/x.dag:2",
    ]  # fmt: skip
    assert not Dag.objects.exists()


def test_check_has_an_exit_code_for_each_verdict(pilotage: Command, dag_file: Path) -> None:
    well = pilotage("check", dag_file)
    dag_file.write_text("JOB A none.sub\n")
    faulty, as_json = pilotage("check", dag_file), pilotage("check", dag_file, "--json")
    neither = pilotage("check", dag_file.with_name("none.dag"))
    (dag_file.with_name("j.sub")).write_text("executable = none\nqueue\n")
    jobs = pilotage("check", dag_file.with_name("j.sub"))

    assert [each.code for each in (well, faulty, as_json, neither, jobs)] == [0, 1, 1, 2, 1]
    assert jobs.lines[0].startswith("dags/j.sub:1: ")
    assert faulty.lines[0].startswith("dags/x.dag:1: ")
    assert json.loads(as_json.out)["findings"][0]["line"] == 1
    assert not Dag.objects.exists()


def test_simulate_waits_for_the_report_of_a_trial(
    pilotage: Command, dag_file: Path, portal: Portal
) -> None:
    def work(request: httpx.Request) -> None:
        trial = Trial.objects.filter(state="waiting").first()
        if request.method == "GET" and trial is not None:
            taken = operations.take_trial(trial.created_at)
            report = operations.Report(1, '{"errors": []}', "2 nodes, not well")
            operations.end_trial(taken, report, now=trial.created_at)

    portal.before = work
    told = pilotage("simulate", dag_file)

    assert (told.code, told.lines) == (1, ["2 nodes, not well"])
    assert Trial.objects.get().kind == "dry_run"


@pytest.mark.slow
def test_q_and_history_list_dags_and_clusters(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    cluster = ended_cluster(people.alice)

    table = pilotage("q")
    columns = pilotage("q", "-af", "ref", "state", "nodes.total", "no.such")
    heads = pilotage("q", "-af:h", "id")
    chosen = pilotage("q", "--constraint", 'state == "RUNNING" && counts.total > 2')
    past = pilotage("history", "--json")
    jobs = pilotage("q", running.pk, "--jobs", "-af", "kind", "state")

    assert table.lines[0].split()[:4] == ["ID", "OWNER", "NAME", "STATE"]
    assert table.lines[1].split()[:4] == [f"d{running.pk}", "alice", "analysis", "running"]
    assert columns.lines == [f"d{running.pk} running 2 undefined"]
    assert heads.lines == ["id", str(running.pk)]
    assert (chosen.code, chosen.out) == (0, "")
    assert [(row["ref"], row["state"]) for row in json.loads(past.out)] == [
        (f"c{cluster.pk}", "removed")
    ]
    assert jobs.lines == ["job waiting", "job waiting"]


def test_sites_and_pilots_are_listed(pilotage: Command, people: SimpleNamespace) -> None:
    pilot = factories.pilot(factories.site().queues.get())

    sites, pilots = pilotage("sites"), pilotage("pilots", "-af", "uuid", "state", "site")

    assert sites.lines[1].split()[:3] == ["UW", "open", "short"]
    assert pilots.lines == [f"{pilot.uuid} running UW"]


def test_watch_ends_with_what_is_watched_or_when_told(
    pilotage: Command, people: SimpleNamespace, running: Dag, portal: Portal
) -> None:
    met = pilotage("watch", f"d{running.pk}", "--exit", "running,any,4")
    in_vain = pilotage("watch", running.pk, "--timeout", 0)
    factories.finish(running)
    over = pilotage("watch", running.pk)

    assert [each.code for each in (met, in_vain, over)] == [4, 7, 0]
    assert f"d{running.pk} is running" in in_vain.err
    assert over.lines == [
        f"d{running.pk} analysis completed at UW: 2 of 2 done, 0 under way, 0 failed"
    ]
    assert pilotage("watch", running.pk, "--exit", "running").code == 2


def test_why_tells_once_that_a_dag_has_failed(pilotage: Command, running: Dag) -> None:
    apply_to_dags("fail", [running.pk], actor=factories.SYSTEM, reason="disk full")

    told = pilotage("why", f"d{running.pk}")

    assert told.out.splitlines()[0] == f"d{running.pk} is failed: disk full"
    assert told.out.count(" is failed") == 1


@pytest.mark.slow
def test_why_explains_each_kind(pilotage: Command, people: SimpleNamespace, running: Dag) -> None:
    job = Job.objects.first()
    assert job is not None
    node = running.nodes.first()
    assert node is not None
    cluster = ended_cluster(people.alice)

    dag = pilotage("why", running.pk, "--json")
    others = [
        pilotage("why", name)
        for name in (f"j{job.pk}", f"c{cluster.pk}", f"d{running.pk}/{node.name}", "s:UW")
    ]

    answer = json.loads(dag.out)
    assert answer["verdict"] == "has a site"
    assert [each["state"] for each in answer["nodes"]] == ["submitted", "submitted"]
    assert [each.code for each in others] == [0, 0, 0, 0]
    assert all(each.out for each in others)
    assert pilotage("why", f"d{running.pk}/none").code == 5


@pytest.mark.slow
def test_dags_are_held_released_halted_rematched_and_removed(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    def steer(command: str, *more: object) -> tuple[int, str]:
        told = pilotage(command, running.pk, *more)
        running.refresh_from_db()
        return told.code, running.state

    assert steer("hold", "--reason", "look") == (0, "held")
    assert steer("release") == (0, "running")
    assert steer("rematch", "--reason", "full", "--avoid", 60) == (0, "idle")
    assert steer("halt", "--reason", "enough") == (0, "halted")
    assert steer("rm", "--reason", "enough") == (0, "removed")
    assert steer("hold", "--reason", "late") == (1, "removed")
    assert steer("hold") == (2, "removed")


def test_what_is_refused_does_not_keep_the_others_from_being_steered(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    told = pilotage("rm", "d999999", running.pk, "--reason", "enough")

    assert told.code == 5
    assert told.lines == [f"d{running.pk} is removed: enough"]


def test_jobs_clusters_and_pilots_are_ended(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    job = Job.objects.first()
    assert job is not None
    pilot = factories.pilot(running.site.queues.get())
    own = json.loads(pilotage("submit", "--json", "--", "/bin/true").out)["id"]

    ended = pilotage("rm", f"j{job.pk}", f"c{own}", "--reason", "enough")
    refused = pilotage("rm", pilot.uuid, "--reason", "old")
    done = pilotage("rm", pilot.uuid, "--reason", "old", user=people.sam)

    job.refresh_from_db()
    assert (ended.code, job.state, Cluster.objects.get(pk=own).state) == (0, "killed", "removed")
    assert (refused.code, done.code) == (4, 0)
    assert Pilot.objects.get().state == "removed"


def test_an_ended_dag_is_rescued_once_for_a_key(pilotage: Command, running: Dag) -> None:
    pilotage("rm", running.pk, "--reason", "enough")

    words = ("rescue", running.pk, "--reason", "again", "--key", "k1")
    first, second = pilotage(*words), pilotage(*words)

    made = Dag.objects.exclude(pk=running.pk).get()
    assert (first.code, second.code) == (0, 0)
    assert first.lines == second.lines == [f"d{made.pk} {URL}/dags/{made.pk}/"]


@pytest.mark.slow
def test_failed_nodes_and_jobs_are_run_again(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    factories.run_job(factories.pilot(running.site.queues.get()), exit_code=1)
    factories.turn()
    cluster = ended_cluster(people.alice)

    nodes = pilotage("rerun", running.pk, "--reason", "again")
    nothing = pilotage("rerun", running.pk, "--reason", "again")
    jobs = pilotage("rerun", f"c{cluster.pk}", "--reason", "again", "--memory-mb", 900)

    assert (nodes.code, nodes.lines) == (0, ["1 changed, 0 skipped"])
    assert nothing.code == 1
    made = Cluster.objects.latest("pk")
    assert jobs.lines == [f"c{made.pk} {URL}/clusters/{made.pk}/"]
    assert made.previous_id == cluster.pk


@pytest.mark.slow
def test_dags_clusters_and_nodes_are_edited(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    waiting = factories.dag(people.alice, is_chain=True)
    own = json.loads(pilotage("submit", "--json", "--queue", 2, "--", "/bin/true").out)["id"]

    dag = pilotage(
        "edit", running.pk, "--priority", 7, "--add-label", "x", "--option", "max_jobs=4",
        "--reason", "soon",
    )  # fmt: skip
    cluster = pilotage(
        "edit", f"c{own}", "--priority", 5, "--max-idle", 9, "--add-label", "y", "--memory-mb", 300,
        "--reason", "soon",
    )  # fmt: skip
    node = pilotage("edit", f"d{waiting.pk}/A2", "--var", "number=9", "--reason", "soon")
    useless = pilotage("edit", running.pk, "--max-idle", 3, "--reason", "soon")

    running.refresh_from_db()
    assert (dag.code, running.priority, running.labels) == (0, 7, ["x"])
    assert running.options["max_jobs"] == 4
    found = Cluster.objects.get(pk=own)
    assert (cluster.code, found.max_idle, found.labels) == (0, 9, ["y"])
    assert (node.code, node.lines) == (0, ["1 changed, 0 skipped"])
    assert useless.code == 2


def test_bulk_previews_and_begins_what_was_confirmed(pilotage: Command, running: Dag) -> None:
    words = ("bulk", "dags", "hold", "owner=alice&state=running", "--reason", "disk")

    preview = pilotage(*words, "--json")
    wrong = pilotage(*words, "--confirm", 2)
    begun = pilotage(*words, "--confirm", 1)

    assert (preview.code, json.loads(preview.out)["total"]) == (0, 1)
    assert (wrong.code, begun.code) == (1, 0)


def test_tail_prints_what_a_job_printed(
    pilotage: Command, people: SimpleNamespace, running: Dag
) -> None:
    job = factories.run_job(factories.pilot(running.site.queues.get()), stdout=b"one\ntwo\n")
    assert job is not None
    factories.turn()

    by_job = pilotage("tail", f"j{job.pk}", "-c", 4)
    by_node = pilotage("tail", "-f", f"d{running.pk}/{job.name}")

    assert (by_job.code, by_job.out) == (0, "two\n")
    assert by_node.out == "one\ntwo\n"
    assert pilotage("tail", "j999999").code == 5


@pytest.mark.slow
def test_fetch_takes_outputs_whole_and_only_once(
    pilotage: Command, people: SimpleNamespace, ended: Dag, portal: Portal, own_place: Path
) -> None:
    job = Job.objects.first()
    assert job is not None

    told = pilotage("fetch", ended.pk, "--to", "out", "--only", "*.out")
    again = len(portal.requests)
    pilotage("fetch", ended.pk, "--to", "out", "--only", "*.out")
    of_job = pilotage("fetch", f"j{job.pk}", "--to", "jobs", "--json")
    nothing = pilotage("fetch", ended.pk, "--only", "*.none")

    assert (told.code, told.lines) == (0, ["out/A1.out", "out/A2.out"])
    digest = hashlib.sha256((own_place / "out" / "A1.out").read_bytes()).hexdigest()
    assert digest == hashlib.sha256(b"hello\n").hexdigest()
    assert [r.url.path for r in portal.requests[again:] if "/files/A" in r.url.path] == []
    assert sorted(json.loads(of_job.out))
    assert nothing.code == 1


@pytest.mark.slow
def test_fetch_unpacks_the_outputs_of_a_cluster(
    pilotage: Command, people: SimpleNamespace, own_place: Path
) -> None:
    pilotage("submit", "--queue", 2, "--", "/bin/true")
    cluster = Cluster.objects.get()
    made_jobs(cluster)
    worker = factories.pilot(factories.site().queues.get())
    assert factories.run_job(worker, stdout=b"1\n")
    assert factories.run_job(worker, stdout=b"1\n")

    told = pilotage("fetch", f"c{cluster.pk}", "--to", "out", "--only", "*.out")

    assert told.code == 0
    assert [path.read_bytes() for path in (own_place / "out").rglob("*.out")] == [b"1\n"] * 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_names_every_command(bare_pilotage: Command, shell: str) -> None:
    told = bare_pilotage("completion", shell)

    assert told.code == 0
    assert {"submit", "rematch", "why"} <= set(re.split(r"[^a-z]+", told.out))
