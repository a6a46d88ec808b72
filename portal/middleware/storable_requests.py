"""Middleware that refuses values which PostgreSQL cannot store, in addresses, headers and forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase

from portal.middleware.errors import OTHER_FACES, not_found, refused
from portal.middleware.storable import faults_of_form, faults_of_headers, faults_of_query
from wms.core.errors import Finding

_View = Callable[[HttpRequest], HttpResponseBase]


class StorableAddresses:
    """Middleware that refuses addresses that nothing in the database can be like."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer 404 for a null character in the path, 400 with the names of faulty parameters."""
        if "\0" in request.path:
            return not_found(request, Http404())
        faults = [*faults_of_headers(request), *faults_of_query(request.META["QUERY_STRING"])]
        return refuse_unstorable(request, faults) or self._get_response(request)


class StorableForms:
    """Middleware that refuses forms of pages with fields that cannot be stored."""

    def __init__(self, get_response: _View) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as usual."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: object
    ) -> HttpResponse | None:
        """Refuse a faulty form, unless the view reads it in its own way and checks it itself."""
        if request.path.startswith(OTHER_FACES) or getattr(view, "reads_its_form", False):
            return None
        return refuse_unstorable(request, faults_of_form(request))


def refuse_unstorable(request: HttpRequest, faults: Iterable[Finding]) -> HttpResponse | None:
    """Refusal of a request with such faults, or None where there are none."""
    findings = list(faults)
    if not findings:
        return None
    detail = "; ".join(map(str, findings))
    return refused(request, HTTPStatus.BAD_REQUEST, detail, findings=findings)
