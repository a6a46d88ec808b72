"""Connections of held claims: a pilot that has hung up is noticed."""

from __future__ import annotations

import socket

from django.test import RequestFactory

from portal.pilot_api.connections import is_connected


def test_a_connection_that_the_other_end_has_closed_is_seen() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = RequestFactory().post("/", **{"gunicorn.socket": ours})
        before = is_connected(request)
        theirs.close()

        assert (before, is_connected(request)) == (True, False)


def test_where_the_server_does_not_show_it_who_asked_is_taken_to_be_there() -> None:
    assert is_connected(RequestFactory().post("/"))
