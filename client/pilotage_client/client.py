"""Clients of a portal: `Client`, and `AsyncClient` with the same methods to be awaited.

from pilotage_client import Client

with Client() as client:
    dag = client.submit_dag("analysis.dag").wait()
"""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .calls import Calls, R
from .flows import objects
from .model import Dag
from .profiles import Profile, find_profile
from .wire import Answer, Flow, Pause, Step

if TYPE_CHECKING:
    from .sending import AsyncSender, Sender

T = TypeVar("T")


class _Settings(Calls):
    """What both clients have: the profile, and how far the clocks are apart."""

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        profile: str = "",
        ca_file: str = "",
        transport: Any = None,
    ) -> None:
        """Speak to a portal: to `url` with `token`, else as the profile or the environment says."""
        self.profile: Profile = find_profile(url=url, token=token, name=profile, ca_file=ca_file)
        self._transport = transport
        #: Seconds that the clock of this host is ahead of the portal's, as the last answer told.
        self.clock_skew_s = 0.0

    def _saw(self, answer: Answer) -> None:
        try:
            told = parsedate_to_datetime(answer.headers["date"])
        except (KeyError, TypeError, ValueError):
            return
        self.clock_skew_s = time.time() - told.timestamp()


class Client(_Settings):
    """Speaks with a portal; every method returns when it is done."""

    _sender: Sender | None = None

    def run(self, flow: Flow[T]) -> T:
        """Result of a flow."""
        try:
            step = next(flow)
            while True:
                try:
                    outcome = self._do(step)
                except BaseException as error:  # noqa: BLE001 - the flow raises it again
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    def submission(self, flow: Flow[R]) -> Run[R]:
        """Run of what a flow submits."""
        return Run(self, self.run(flow))

    def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        if self._sender is None:
            from .sending import Sender

            self._sender = Sender(self.profile, self._transport)
        outcome = self._sender.send(step)
        if isinstance(outcome, Answer):
            self._saw(outcome)
        return outcome

    def close(self) -> None:
        """Close the connections."""
        if self._sender is not None:
            self._sender.close()

    def __enter__(self) -> Client:
        """The client, closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self.close()


class AsyncClient(_Settings):
    """Speaks with a portal; every method has to be awaited."""

    _sender: AsyncSender | None = None

    async def run(self, flow: Flow[T]) -> T:
        """Result of a flow."""
        try:
            step = next(flow)
            while True:
                try:
                    outcome = await self._do(step)
                except BaseException as error:  # noqa: BLE001 - the flow raises it again
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result

    async def submission(self, flow: Flow[R]) -> AsyncRun[R]:
        """Run of what a flow submits."""
        return AsyncRun(self, await self.run(flow))

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            import asyncio

            await asyncio.sleep(step.seconds)
            return None
        if self._sender is None:
            from .sending import AsyncSender

            self._sender = AsyncSender(self.profile, self._transport)
        outcome = await self._sender.send(step)
        if isinstance(outcome, Answer):
            self._saw(outcome)
        return outcome

    async def close(self) -> None:
        """Close the connections."""
        if self._sender is not None:
            await self._sender.close()

    async def __aenter__(self) -> AsyncClient:
        """The client, closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.close()


class Run(Generic[R]):
    """A submitted DAG or cluster; `submitted` is as it was then."""

    def __init__(self, client: Client, submitted: R) -> None:
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

    def __init__(self, client: AsyncClient, submitted: R) -> None:
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
    wait = objects.wait_for_dag if isinstance(submitted, Dag) else objects.wait_for_cluster
    return wait(submitted.id, timeout_s=timeout_s, on_change=on_change)


def _looking(submitted: Any) -> Flow[Any]:
    return (objects.dag if isinstance(submitted, Dag) else objects.cluster)(submitted.id)
