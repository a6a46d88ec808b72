"""Download slots: a streamed response holds a slot of its user until all of it is sent.

Slots are few: without a free one the download is refused (Busy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from django.http import StreamingHttpResponse

from wms.core.heavy import Work, heavy_place
from wms.core.models import User


class _Held:
    """Parts of an answer; the slot is released when it is closed or all of it was read."""

    def __init__(self, parts: Iterator[Any], place: ExitStack) -> None:
        self._parts, self._place = parts, place

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._parts)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._place.close()


def sent_from_a_slot(
    user: User, make: Callable[[], StreamingHttpResponse]
) -> StreamingHttpResponse:
    """Answer made by `make`, with a slot held until all of it is sent. Raises Busy."""
    with ExitStack() as place:
        place.enter_context(heavy_place(user, Work.DOWNLOAD))
        response = make()
        response.streaming_content = _Held(iter(response.streaming_content), place.pop_all())
    return response
