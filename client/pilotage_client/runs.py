"""Runs: what was submitted, to be waited for and looked at by the client that submitted it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, Union

from .flows import events, objects
from .model import Cluster, Dag
from .wire import Flow

T = TypeVar("T")
R = TypeVar("R", bound=Union[Dag, Cluster])


class Runner(Protocol):
    """Client that runs flows."""

    def run(self, flow: Flow[T]) -> T:
        """Result of a flow."""
        ...


class AsyncRunner(Protocol):
    """Client that runs flows, asynchronously."""

    async def run(self, flow: Flow[T]) -> T:
        """Result of a flow."""
        ...


class Run(Generic[R]):
    """A submitted DAG or cluster; `submitted` is as it was then."""

    def __init__(self, client: Runner, submitted: R) -> None:
        self._client, self.submitted = client, submitted

    @property
    def id(self) -> int:
        """Its number."""
        return self.submitted.id

    def wait(
        self, *, timeout_s: float | None = None, on_change: Callable[[R], None] | None = None
    ) -> R:
        """It, when it has ended. Raises TimedOut."""
        found: R = self._client.run(_waiting(self.submitted, timeout_s, on_change))
        return found

    def now(self) -> R:
        """It, as it is now."""
        found: R = self._client.run(_looking(self.submitted))
        return found


class AsyncRun(Generic[R]):
    """A submitted DAG or cluster; `submitted` is as it was then."""

    def __init__(self, client: AsyncRunner, submitted: R) -> None:
        self._client, self.submitted = client, submitted

    @property
    def id(self) -> int:
        """Its number."""
        return self.submitted.id

    async def wait(
        self, *, timeout_s: float | None = None, on_change: Callable[[R], None] | None = None
    ) -> R:
        """It, when it has ended. Raises TimedOut."""
        found: R = await self._client.run(_waiting(self.submitted, timeout_s, on_change))
        return found

    async def now(self) -> R:
        """It, as it is now."""
        found: R = await self._client.run(_looking(self.submitted))
        return found


def _waiting(submitted: Any, timeout_s: float | None, on_change: Any) -> Flow[Any]:
    wait = events.wait_for_dag if isinstance(submitted, Dag) else events.wait_for_cluster
    return wait(submitted.id, timeout_s=timeout_s, on_change=on_change)


def _looking(submitted: Any) -> Flow[Any]:
    return (objects.dag if isinstance(submitted, Dag) else objects.cluster)(submitted.id)
