"""Multipart uploads whose file names are taken as they were sent, directories included.

Django cuts directories off file names, which turns `a/x` and `b/x` into the same file. Here every
part gets a number for a name while it is read, and what it was called is kept aside: nobody writes
a file under a name that a sender chose, and `wms.jobs.content.paths` decides which names there may
be. Also the decorator of pages with such uploads, whose forms it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import IO, Any, BinaryIO, NamedTuple

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.http.multipartparser import MultiPartParser
from django.utils.datastructures import ImmutableList, MultiValueDict
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from portal.middleware.storable import faults_of_form
from portal.middleware.storable_requests import refuse_unstorable

#: A longer name is none; only its beginning is told.
_MAX_NAME = 1000


class Upload(NamedTuple):
    """A file that was sent: its name as it was sent, and its content."""

    name: str
    content: BinaryIO


class _NumberedParser(MultiPartParser):
    """Gives every file a number for a name, and remembers what it was called."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.names: dict[str, str] = {}

    def sanitize_file_name(self, file_name: str) -> str:
        """Return the number of the part."""
        number = f"part-{len(self.names)}"
        self.names[number] = file_name[:_MAX_NAME]
        return number


def keep_names(request: HttpRequest) -> None:
    """Make whoever reads the form first - the CSRF check, or the view - read it with our parser."""

    def parse_file_upload(
        meta: Mapping[str, Any], body: IO[bytes]
    ) -> tuple[QueryDict, MultiValueDict[str, UploadedFile]]:
        request.upload_handlers = ImmutableList(request.upload_handlers)
        parser = _NumberedParser(meta, body, request.upload_handlers, request.encoding)
        post, files = parser.parse()
        request.upload_names = parser.names  # type: ignore[attr-defined]
        return post, files

    request.parse_file_upload = parse_file_upload  # type: ignore[method-assign]


def keeps_names(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorator of a page whose uploads keep their names; its form is read by our parser."""
    protected = csrf_protect(view)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        keep_names(request)
        refusal = refuse_unstorable(request, faults_of_form(request))
        return refusal or protected(request, *args, **kwargs)

    wrapped.reads_its_form = True  # type: ignore[attr-defined]
    return csrf_exempt(wrapped)


def uploads(request: HttpRequest, part: str) -> list[Upload]:
    """The files of a part, in the order in which they were sent."""
    files = request.FILES.getlist(part)
    names: Mapping[str, str] = getattr(request, "upload_names", {})
    return [Upload(names.get(file.name or "", file.name or ""), file.file) for file in files]
