from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import pytest

from portal.cli.listening import Listen
from portal.cli.state_directory import StateDirectory
from portal.cli.supervision import (
    Program,
    UnusablePath,
    portal_programs,
    supervisor_configuration,
)
from portal.config.task_routes import TASK_ROUTES
from wms.placement.feeding.running import FEED_TASK

LISTEN = Listen("127.0.0.1", 8000)
WORKERS = {"beat", "worker", "engine", "elements", "placement", "scripts"}


def _parsed(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"))
    parser.read_string(text)
    return parser


def test_users_of_a_server_stop_before_the_server():
    priorities = {program.name: program.priority for program in portal_programs(LISTEN)}

    # supervisord stops by descending priority; host pilots say good-bye to the web server.
    engine = {priorities[name] for name in WORKERS}
    assert min(engine) > priorities["host-pilots"] > priorities["web"] > priorities["migrate"]


def test_what_needs_nothing_of_each_other_is_stopped_at_the_same_time():
    text = supervisor_configuration(
        StateDirectory(Path("/var/x")), portal_programs(LISTEN), "secret"
    )

    group = _parsed(text)["group:workers"]
    assert set(group["programs"].split(",")) == WORKERS
    assert group["priority"] == _parsed(text)["program:worker"]["priority"]


def test_every_program_ends_with_its_supervisor():
    for program in portal_programs(LISTEN):
        assert program.command[:3] == ["setpriv", "--pdeathsig", "TERM"]


def test_a_command_with_blanks_and_percent_signs_survives_the_configuration():
    command = ["/a folder/python", "100%", "it's"]
    program = Program("odd", command, 1)

    text = supervisor_configuration(StateDirectory(Path("/var/x")), [program], "secret")

    written = _parsed(text)["program:odd"]["command"].replace("%%", "%")
    assert shlex.split(written) == command


def test_a_path_that_would_be_read_as_a_comment_is_refused():
    program = Program("odd", ["/a ;folder/python"], 1)

    with pytest.raises(UnusablePath, match="a ;folder"):
        supervisor_configuration(StateDirectory(Path("/var/x")), [program], "secret")


def test_the_control_socket_is_left_out_where_its_path_would_be_too_long():
    near, deep = StateDirectory(Path("/var/x")), StateDirectory(Path("/var") / ("x" * 100))

    assert "unix_http_server" in supervisor_configuration(near, [], "secret")
    assert "unix_http_server" not in supervisor_configuration(deep, [], "secret")


def test_no_command_line_carries_a_password(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hidden@db/x")
    monkeypatch.setenv("REDIS_URL", "redis://:hidden@cache/0")

    words = [word for program in portal_programs(LISTEN) for word in program.command]

    assert not any("hidden" in word for word in words)


def test_placements_and_scripts_have_places_of_their_own(monkeypatch):
    monkeypatch.setenv("PILOTAGE_PLACEMENT_CONCURRENCY", "3")
    commands = {program.name: list(program.command) for program in portal_programs(LISTEN)}

    queues = {name: commands[name][commands[name].index("--queues") + 1] for name in
              ("placement", "scripts")}  # fmt: skip
    assert queues == {"placement": "placement", "scripts": "scripts"}
    assert TASK_ROUTES["wms.placement.run"] == TASK_ROUTES[FEED_TASK] == {"queue": "placement"}
    assert commands["placement"][commands["placement"].index("--concurrency") + 1] == "3"
