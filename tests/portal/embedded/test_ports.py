from __future__ import annotations

import json
import socket

from portal.embedded.ports import LOOPBACK, free_ports, kept_ports


def test_ports_stay_the_same_while_they_are_free(tmp_path):
    file = tmp_path / "ports.json"

    first = kept_ports(file, ("web", "redis"), {})

    assert kept_ports(file, ("web", "redis"), {}) == first


def test_a_port_that_someone_took_meanwhile_is_chosen_again(tmp_path):
    file = tmp_path / "ports.json"
    first = kept_ports(file, ("web", "redis"), {})

    with socket.create_server((LOOPBACK, first["web"])):
        second = kept_ports(file, ("web", "redis"), {})

    assert second["web"] != first["web"]
    assert second["redis"] == first["redis"]
    assert json.loads(file.read_text()) == second


def test_the_preferred_port_is_taken_when_it_is_free(tmp_path):
    (wanted,) = free_ports(1)

    assert kept_ports(tmp_path / "ports.json", ("web",), {"web": wanted}) == {"web": wanted}


def test_several_free_ports_are_different():
    assert len(set(free_ports(20))) == 20
