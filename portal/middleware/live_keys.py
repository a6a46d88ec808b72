"""Middleware that follows the files of the secret key, so that it changes without a stop."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from portal.config.live_keys import follow_files


class LiveKeys:
    """Middleware that answers each request by the keys that are in force at its beginning."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        follow_files()
        return self._get_response(request)
