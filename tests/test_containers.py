from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import redis
import yaml

from portal.embedded.readiness import wait_for_redis
from portal.embedded.redis import COMMANDS, LIMITS, choose_program

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = ROOT / "docker-compose.yml"
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OWN = {"migrate", "web", "worker", "engine", "scripts", "placement", "elements", "beat"}


def _has_compose() -> bool:
    try:
        done = subprocess.run(["docker", "compose", "version"], capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0


@pytest.mark.skipif(not _has_compose(), reason="this host has no docker client with compose")
def test_docker_accepts_the_compose_file():
    secrets = {name: "x" for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "PILOTAGE_SECRET_KEY")}

    done = subprocess.run(
        ["docker", "compose", "-f", COMPOSE, "config", "--quiet"],
        env=os.environ | secrets, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_all_programs_of_the_portal_are_services():
    assert set(SERVICES) == {"postgres", "redis"} | OWN


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_every_lasting_service_has_a_health_check(name):
    assert SERVICES[name]["healthcheck"]["test"]


def test_own_services_share_image_and_settings():
    images = {SERVICES[name]["image"] for name in OWN}
    settings = [SERVICES[name]["environment"] for name in OWN]

    assert images == {"pilotage"}
    assert all(each == settings[0] for each in settings)
    assert {"DATABASE_URL", "REDIS_URL", "PILOTAGE_SECRET_KEY"} <= set(settings[0])


def test_own_services_wait_for_the_migration():
    for name in OWN - {"migrate"}:
        condition = SERVICES[name]["depends_on"]["migrate"]["condition"]
        assert condition == "service_completed_successfully"


def test_no_password_is_written_in_the_compose_file():
    environment = SERVICES["web"]["environment"] | SERVICES["postgres"]["environment"]

    for name in ("DATABASE_URL", "PILOTAGE_SECRET_KEY", "POSTGRES_PASSWORD"):
        assert ":?" in environment[name], f"{name} must come from the environment"


def test_only_the_service_of_scripts_is_let_out_of_the_engines_confinement():
    assert {name for name in SERVICES if "security_opt" in SERVICES[name]} == {"scripts"}


def test_every_image_is_pinned_by_version_and_digest():
    pulled = [SERVICES[name]["image"] for name in set(SERVICES) - OWN]
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    pulled += [line.split()[1] for line in lines if line.startswith("FROM ")]

    assert len(pulled) == 3
    for image in pulled:
        assert re.fullmatch(r"[a-z/]+:[0-9][\w.-]*@sha256:[0-9a-f]{64}", image), image


@pytest.mark.process
def test_the_broker_lets_its_account_do_what_the_embedded_one_does(tmp_path):
    *_, script = SERVICES["redis"]["command"]
    socket = tmp_path / "redis.sock"
    (tmp_path / "valkey-server").symlink_to(choose_program(names=()).path)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REDISCLI_AUTH": "secret"}
    here = script.replace("$$", "$").replace("<<END\n", f"<<END\nport 0\nunixsocket {socket}\n")

    with subprocess.Popen(["sh", "-c", here], env=environment, cwd=tmp_path) as server:
        try:
            wait_for_redis(f"unix://pilotage:secret@{socket}")
            with redis.Redis(
                unix_socket_path=str(socket), username="pilotage", password="secret"
            ) as client:
                assert client.lpush("celery", "x") == 1
                for command in ("EVAL x 0", "CONFIG GET x", "FLUSHALL", "KEYS *", "SHUTDOWN"):
                    assert "no permissions" in _answer(client, command)
            with redis.Redis(unix_socket_path=str(socket)) as stranger:
                assert "authenticated" in _answer(stranger, "PING")
        finally:
            server.terminate()

    assert {word[1:] for word in script.split() if word.startswith("+")} == set(COMMANDS)
    assert [line for line in LIMITS if line not in script] == []


def _answer(client, command):
    try:
        return str(client.execute_command(*command.split()))
    except redis.RedisError as error:
        return str(error)


@pytest.mark.process
def test_the_image_does_not_run_as_root():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]

    assert users
    assert users[-1] not in {"root", "0"}
