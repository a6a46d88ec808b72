"""Request parsers for bodies that are not JSON: multipart forms with files, texts, and ads.

Also the base of endpoints that are sent files, and the refusal of bodies by their announced length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from django.http import HttpRequest
from rest_framework.parsers import BaseParser, DataAndFiles, MultiPartParser
from rest_framework.request import Request
from rest_framework.views import APIView

from matching.ads.classads import MAX_AD_BYTES
from portal.middleware.storable import faults_of_form
from portal.middleware.uploads import keep_names
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput, TooLarge


class FormUpload(MultiPartParser):
    """The parser of requests that carry files; the view has called `keep_names` before."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> DataAndFiles:
        """Return what was parsed for the CSRF check, or is parsed now. Raises InvalidInput."""
        request: HttpRequest = (parser_context or {})["request"]._request
        if faults := faults_of_form(request):
            raise InvalidInput(faults)
        return DataAndFiles(request.POST, request.FILES)


class TextBody(BaseParser):
    """Parser of a body that is one text, of `most_bytes` at most; `name` names it in errors.

    `location` says where a fault is: the `file` or `field` of the finding.
    """

    name: str
    most_bytes: int
    location: Mapping[str, str]

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the text. Raises TooLarge or InvalidInput."""
        content: bytes = stream.read(self.most_bytes + 1)
        if len(content) > self.most_bytes:
            raise TooLarge(f"The {self.name} is larger than {self.most_bytes} bytes.")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise InvalidInput([Finding("is not UTF-8", line=line, **self.location)]) from error


class AdText(TextBody):
    """Parser of an ad sent as text; its format is detected from the text."""

    media_type = "text/plain"
    name = "ad"
    most_bytes = MAX_AD_BYTES
    location = {"field": "ad"}


class JsonAdText(AdText):
    """Parser of a JSON ad as text: our own reader checks repeated names and long numbers."""

    media_type = "application/json"


class TakesFiles(APIView):
    """An endpoint that is sent files under their own names."""

    parser_classes: Sequence[type[BaseParser]] = (FormUpload,)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Choose how files are read before anybody reads them."""
        keep_names(request)
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is too large by its announced length."""
        refuse_large_body(request._request, limit_bytes=conf().max_upload_bytes)
        super().initial(request, *args, **kwargs)


def refuse_large_body(request: HttpRequest, *, limit_bytes: int) -> None:
    """Raise TooLarge by the announced length, before anything of the body is read."""
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if not announced.isdigit() or int(announced) > limit_bytes:
        raise TooLarge(f"The request is larger than {limit_bytes} bytes.")
