"""Scripts as real processes, behind each fence that works on this host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from django.utils import timezone

from tests.wms.dags.scripts.conftest import done, files_of, put, said, skip_unless_works
from wms.core.models import InboxEntry
from wms.dags.models import ScriptRun
from wms.dags.scripts import fences
from wms.dags.scripts.fences import Sandbox

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_script_runs_in_the_directory_of_its_node_with_its_arguments(any_fence, ask, dag):
    put(dag, "sub/in.txt", "given\n")

    run = done(ask('cat in.txt; echo "$1|$2"; pwd; echo oops >&2', "a b", "", directory="sub"))

    assert (run.state, run.exit_code, run.failure) == ("ended", 0, "")
    lines = said(run).splitlines()
    assert lines[:2] == ["given", "a b|"]
    assert lines[2].endswith("/sub")
    assert "oops" in lines
    assert run.started_at is not None
    assert run.ended_at >= run.started_at


def test_its_end_is_announced_once(works, ask, dag):
    run = done(ask("exit 3"))

    assert run.exit_code == 3
    entry = InboxEntry.objects.get()
    assert (entry.topic, entry.key, entry.subject_id) == ("dag-scripts", dag.pk, run.pk)


def test_a_signal_is_told_from_an_exit_code(any_fence, ask):
    assert done(ask("kill -9 $$")).exit_code == -9
    assert done(ask("exit 137")).exit_code == 137


def test_files_that_it_makes_changes_and_removes_do_so_in_the_workspace(any_fence, ask, dag):
    put(dag, "kept", "kept")
    put(dag, "changed", "before")
    put(dag, "removed", "away")

    done(ask("echo new >new; mkdir -p d/e; echo deep >d/e/f; echo after >changed; rm removed"))

    assert files_of(dag) == {
        "kept": "kept",
        "new": "new\n",
        "changed": "after\n",
        "d/e/f": "deep\n",
    }


def test_the_next_script_finds_what_the_last_left_and_what_came_meanwhile(any_fence, ask, dag):
    done(ask("echo one >first"))
    put(dag, "second", "two\n")
    put(dag, "first", "uno\n")

    run = done(ask("cat first second"))

    assert said(run) == "uno\ntwo\n"


def test_a_failed_script_leaves_its_files_too(works, ask, dag):
    run = done(ask("echo half >part; exit 1"))

    assert run.exit_code == 1
    assert files_of(dag) == {"part": "half\n"}


def test_a_program_of_the_system_may_be_a_script(any_fence, ask):
    by_path = done(ask("", "hello", executable="/bin/echo"))
    by_name = done(ask("", "there", executable="echo"))

    assert said(by_path) == "hello\n"
    assert said(by_name) == "there\n"


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("", "missing.sh", "missing.sh is not there"),
        ("#!/no/such/interpreter\n", "odd.sh", "the interpreter that the first line"),
        ("#!/bin/sh\r\necho\r\n", "dos.sh", "carriage return"),
        ("just text\n", "text.sh", "does not begin with #!"),
        ("", "/no/such/program", "/no/such/program is not there"),
    ],
)
def test_one_that_cannot_be_started_ends_with_1_and_the_reason(
    any_fence, ask, dag, text, name, why
):
    if text:
        put(dag, name, text)

    run = done(ask(executable=name))

    assert run.exit_code == 1
    assert why in run.failure


def test_it_sees_the_environment_of_the_dag_and_nothing_of_the_server(
    any_fence, ask, dag, monkeypatch
):
    monkeypatch.setenv("A_SECRET_OF_THE_SERVER", "hidden")
    dag.script_environment = {"MODE": "fast lane"}
    dag.save()

    words = said(done(ask("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")))

    assert "MODE=fast lane" in words
    assert f"PILOTAGE_DAG_ID={dag.pk}" in words
    assert "PATH=" in words
    if any_fence != "none":
        assert "hidden" not in words
        assert "PILOTAGE_SECRET_KEY" not in words


def test_behind_a_fence_it_reads_nothing_of_the_portal(real_fence, ask, tmp_path, slot):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    secret.chmod(0o600)
    other = slot.folder / "workspace-0"
    other.mkdir(mode=0o700)
    (other / "x").write_text("hidden")

    run = done(ask(f"cat {secret} {other}/x; ls {tmp_path}; echo ran"))

    assert "hidden" not in said(run)
    assert "ran" in said(run)


def test_behind_a_fence_it_writes_nowhere_else(real_fence, ask, tmp_path):
    targets = [str(tmp_path / "x"), "/etc/x", "/usr/x", "/x", "/var/x"]

    done(ask("".join(f"echo x >{target}\n" for target in targets)))

    assert [target for target in targets if Path(target).exists()] == []


def test_further_folders_may_be_read_but_never_the_portals_own(ask, configure, folder):
    var = folder / "var"
    var.mkdir()
    for place in (folder, var):
        (place / "text").write_text(f"of {place.name}\n")
    skip_unless_works(configure(FENCES=["bwrap"], READABLE=[str(folder)], VAR=str(var)))

    run = done(ask(f"cat {folder}/text {var}/text; echo x >{folder}/new"))

    assert f"of {folder.name}" in said(run)
    assert "of var" not in said(run)
    assert not (folder / "new").exists()


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local", "/opt/python"])
def test_the_systems_folders_are_there_wherever_the_interpreter_is(
    configure, slot, monkeypatch, prefix
):
    monkeypatch.setattr(sys, "base_prefix", prefix)
    monkeypatch.setattr(os.path, "isdir", lambda _: True)

    words = fences.bwrap_fence(configure(), Sandbox(slot.tmp, slot.tmp, slot.shm, None)).prefix

    shown = [words[place + 1] for place, word in enumerate(words) if word == "--ro-bind"]
    assert "/usr" in shown
    assert shown.count(prefix) == (prefix != "/usr/local")


def test_behind_a_fence_there_is_no_network(real_fence, ask):
    run = done(ask("grep -c : /proc/net/dev; grep -v lo: /proc/net/dev | grep -c : || true"))

    assert said(run).split() == ["1", "0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives scripts accounts of their own")
def test_under_root_it_is_not_root_and_cannot_become_it(real_fence, ask):
    run = done(ask("id -u; grep -E 'NoNewPrivs|CapEff' /proc/self/status"))

    words = said(run).split()
    assert int(words[0]) >= 60_600
    assert words[1:] == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1"]


def test_behind_a_fence_it_has_no_rights_and_the_kernels_edges_are_closed(real_fence, ask):
    run = done(
        ask(
            "#!/bin/sh\ngrep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status\n"
            "unshare -U true 2>/dev/null && echo in\n"
            "cat /proc/keys | grep -c _uid\nexit 0\n"
        )
    )

    lines = said(run).splitlines()
    facts = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert {facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert facts["CapBnd"] == "0" * 16 or os.geteuid()
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert lines[-1] == "0"
    assert "in" not in lines


def test_what_is_no_file_is_not_kept(any_fence, ask, dag):
    run = done(ask("ln -s /etc/passwd link; mkfifo pipe; echo x >file; ln -s / dir"))

    assert files_of(dag) == {"file": "x\n"}
    for name in ("link", "pipe", "dir"):
        assert f"['{name}' " in said(run)


def test_a_link_that_a_script_left_is_not_followed_when_a_file_comes(any_fence, ask, dag, tmp_path):
    target = tmp_path / "outside"
    target.mkdir()
    done(ask(f"ln -s {target} results"))
    put(dag, "results/x", "inside")

    run = done(ask("cat results/x"))

    assert said(run) == "inside"
    assert list(target.iterdir()) == []


def test_folders_that_it_closes_are_opened_again(any_fence, ask, dag):
    done(ask("mkdir d; echo x >d/f; chmod 0 d/f; chmod 0 d"))
    run = done(ask("cat d/f"))

    assert said(run) == "x\n"
    assert files_of(dag)["d/f"] == "x\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for i in $(seq 30); do echo $i >f$i; done", "more than 20 new files"),
        ("for i in 1 2 3; do head -c 500000 /dev/zero >f$i; done", "more than 1048576 bytes"),
    ],
)
def test_one_that_leaves_too_much_has_failed_and_leaves_nothing(works, ask, dag, text, why):
    run = done(ask(text))

    assert run.exit_code == 1
    assert why in run.failure
    assert files_of(dag) == {}
    listing = done(ask("ls f* 2>/dev/null; echo clean"))
    assert said(listing) == "clean\n"


def test_a_workspace_that_is_too_large_is_told(works, ask, dag, configure):
    configure(FENCES=["account", "none"], WORKSPACE_BYTES=100)
    put(dag, "large", "x" * 1000)

    run = done(ask("echo"))

    assert run.exit_code == 1
    assert "at most 100" in run.failure


def test_only_what_changed_is_copied_for_the_next_run(works, ask, dag):
    put(dag, "same", "same")
    inode_of_same = "stat -c %i same"
    first = said(done(ask(inode_of_same)))
    put(dag, "other", "other")

    assert said(done(ask(inode_of_same))) == first


def test_without_a_fence_nothing_is_run_and_the_reason_told(ask, configure, folder):
    configure(FENCES=["bwrap"], BWRAP="/no/such/bwrap")

    run = done(ask("touch /var/tmp/was-run"))

    assert run.exit_code == 1
    assert "bwrap: /no/such/bwrap:" in run.failure
    assert run.started_at is None


def test_debug_adds_what_was_written_under_a_banner(works, ask, dag):
    put(dag, "logs/pre.log", "before\n")
    script = {"debug_file": "pre.log", "debug_stream": "STDERR"}

    run = done(ask("echo out; echo err >&2; exit 2", "a b", directory="logs", script=script))

    before, banner, err = files_of(dag)["logs/pre.log"].splitlines()
    assert (before, err) == ("before", "err")
    assert banner.startswith(f"*** Node={run.node.name} Type=PRE Status=2 Ended=2")
    assert banner.endswith(f"Command={run.executable} 'a b'")
    assert sorted(said(run).split()) == ["err", "out"]


def test_debug_of_both_streams_has_all_output(works, ask, dag):
    done(ask("echo out; echo err >&2", script={"debug_file": "log", "debug_stream": "ALL"}))

    assert files_of(dag)["log"].splitlines()[1:] == ["out", "err"]


def test_runs_are_carried_out_one_after_the_other_until_none_is_left(works, ask):
    runs = [ask(f"echo {number}") for number in range(3)]

    done(runs[0])

    assert [said(run) for run in ScriptRun.objects.order_by("pk")] == ["0\n", "1\n", "2\n"]


def test_what_is_not_granted_or_not_due_is_left(works, ask):
    waiting = ask("echo", state="waiting")
    later = ask("echo", due_at=timezone.now() + timezone.timedelta(hours=1))

    done(waiting)

    assert ScriptRun.objects.filter(pk__in=[waiting.pk, later.pk], ended_at=None).count() == 2
