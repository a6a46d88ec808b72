"""Addresses without their last slash: the request is sent on as it is, body and method included."""

from __future__ import annotations

from django.http import HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware


class _SentOnAsItIs(HttpResponsePermanentRedirect):
    """After a 301, clients ask again without the body: what was submitted would be lost."""

    status_code = 308


class WithSlash(CommonMiddleware):
    """Django's, which adds the slash and is the same for all methods."""

    response_redirect_class = _SentOnAsItIs
