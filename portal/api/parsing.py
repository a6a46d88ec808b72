"""JSON parser of request bodies that rejects values which the database cannot store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import JSONParser

from portal.middleware.storable import faults_of_json
from wms.core.errors import InvalidInput


class StorableJson(JSONParser):
    """JSON whose texts and numbers the database can store."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what was sent. Raises InvalidInput with the place of each fault."""
        data = super().parse(stream, media_type, dict(parser_context or {}))
        if faults := faults_of_json(data):
            raise InvalidInput(faults)
        return data
