from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = ROOT / "docker-compose.yml"
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OWN = {"migrate", "web", "worker", "scripts", "elements", "beat"}


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


def test_the_image_does_not_run_as_root():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]

    assert users
    assert users[-1] not in {"root", "0"}
