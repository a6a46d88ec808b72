"""Ends of a transfer: the storages that it uses, or hosts that are in none, by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wms.placement.addresses import host_of, scheme_of
from wms.placement.storages.endpoints import StorageMap
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import storage_map

#: The end of an address that names no host, such as a logical name that leads nowhere yet.
ELSEWHERE = "elsewhere"


class Ends:
    """Names of ends; storages are looked up when they are needed, once."""

    def __init__(self, storage_ids: Iterable[int | None] = ()) -> None:
        self._names: dict[int, str] = {}
        self._map: StorageMap | None = None
        self._learn({each for each in storage_ids if each is not None})

    def name_of(self, url: str, storage_id: int | None) -> str:
        """The end in which an address lies whose storage is known: this one, or none."""
        if storage_id is not None:
            self._learn({storage_id} - self._names.keys())
            if storage_id in self._names:
                return self._names[storage_id]
        return host_of(url) or ELSEWHERE

    def name_with_scheme(self, url: str, scheme: str, named: str, storage_id: int | None) -> str:
        """The end of an address that is used under another scheme than the one it was `named` with.

        Under another one it may lie in another storage.
        """
        if scheme == scheme_of(named):
            return self.name_of(url, storage_id)
        if self._map is None:
            self._map = storage_map()
        return self.name_of(url, self._map.storage_of(url))

    def _learn(self, ids: Collection[int]) -> None:
        if ids:
            self._names |= dict(Storage.objects.filter(pk__in=ids).values_list("pk", "name"))
