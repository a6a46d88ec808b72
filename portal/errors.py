"""Requests that no view answers: pages for people, problem details below `/api/`."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from portal.api.problems import problem_without_view

API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The request cannot be read, or is for another host."""
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.BAD_REQUEST, "The request cannot be read.")
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The address names nothing."""
    if request.path.startswith(API):
        return problem_without_view(HTTPStatus.NOT_FOUND, "There is no such address.")
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours."""
    if request.path.startswith(API):
        detail = "Something went wrong on our side."
        return problem_without_view(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    return defaults.server_error(request)
