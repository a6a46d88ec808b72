"""Middleware that sends pages and JSON compressed to clients that accept it.

What is streamed goes out as it comes, and static files lie compressed already.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

#: An ETag of them becomes a weak one: the same page, not the same bytes.
_COMPRESSED = frozenset({"text/html", "application/json", "application/problem+json"})


class CompressedPages(GZipMiddleware):
    """Django's, for whole answers of these types; it hides their length from eavesdroppers."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress the answer, unless it is streamed, a part of a file, or of another type."""
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in _COMPRESSED or "Content-Range" in response.headers:
            return response
        answer: HttpResponseBase = super().process_response(request, response)
        return answer
