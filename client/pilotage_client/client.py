"""Clients of a portal: `Client`, and `AsyncClient` with the same methods to be awaited.

    from pilotage_client import Client

    with Client() as client:
        dag = client.submit_dag("analysis.dag").wait()

Each call of the API is a flow, of which both clients have a method: that of `Client` returns the
result, that of `AsyncClient` something to await.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import wraps
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

from .flows import contents, events, objects, shift_log, steering, submitting, uploading
from .light_httpx import httpx_without_its_command
from .model import Cluster, Dag, Event
from .profiles import Profile, find_profile
from .runs import AsyncRun, Run
from .wire import Answer, Flow, Pause, Step

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:
    from typing_extensions import ParamSpec

if TYPE_CHECKING:
    from .sending import AsyncSender, Sender

P = ParamSpec("P")
T = TypeVar("T")
#: What is submitted, and can be waited for.
R = TypeVar("R", bound=Union[Dag, Cluster])


class Call(Generic[P, T]):
    """Method of both clients that runs a flow."""

    def __init__(self, flow: Callable[P, Flow[T]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, client: None, owner: Any = None) -> Call[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: Any = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: Any = None) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: Any = None) -> Any:
        """The flow's function, whose flow the client runs."""
        if client is None:
            return self

        @wraps(self._flow)
        def call(*args: P.args, **named: P.kwargs) -> Any:
            return client.run(self._flow(*args, **named))

        return call


class Submission(Generic[P, R]):
    """Method of both clients that submits something; what it returns can be waited for."""

    def __init__(self, flow: Callable[P, Flow[R]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, client: None, owner: Any = None) -> Submission[P, R]: ...
    @overload
    def __get__(self, client: Client, owner: Any = None) -> Callable[P, Run[R]]: ...
    @overload
    def __get__(
        self, client: AsyncClient, owner: Any = None
    ) -> Callable[P, Awaitable[AsyncRun[R]]]: ...
    def __get__(self, client: Any, owner: Any = None) -> Any:
        """The flow's function, whose flow the client runs."""
        if client is None:
            return self

        @wraps(self._flow)
        def call(*args: P.args, **named: P.kwargs) -> Any:
            return client.submission(self._flow(*args, **named))

        return call


class Calls:
    """All calls of the API."""

    username = Call(objects.username)
    dag = Call(objects.dag)
    dags = Call(objects.dags)
    cluster = Call(objects.cluster)
    clusters = Call(objects.clusters)
    job = Call(objects.job)
    jobs = Call(objects.jobs)
    site = Call(objects.site)
    sites = Call(objects.sites)
    pilot = Call(objects.pilot)
    pilots = Call(objects.pilots)
    nodes = Call(objects.nodes)
    node = Call(objects.node)
    explain = Call(objects.explain)
    wait_for_dag = Call(events.wait_for_dag)
    wait_for_cluster = Call(events.wait_for_cluster)
    wait_for_job = Call(events.wait_for_job)
    events = Call(events.events)

    submit_dag = Submission(submitting.submit_dag)
    send_dag = Submission(submitting.send_dag)
    submit_jobs = Submission(submitting.submit_jobs)
    check_dag = Call(submitting.check_dag)
    check_jobs = Call(submitting.check_jobs)
    upload = Call(uploading.upload)
    trial = Call(submitting.trial)
    follow_dag = Call(submitting.follow_dag)
    followed_log = Call(submitting.followed_log)
    send_log = Call(submitting.send_log)

    hold_dag = Call(steering.hold_dag)
    release_dag = Call(steering.release_dag)
    halt_dag = Call(steering.halt_dag)
    remove_dag = Call(steering.remove_dag)
    rematch_dag = Call(steering.rematch_dag)
    rescue_dag = Submission(steering.rescue_dag)
    rerun_nodes = Call(steering.rerun_nodes)
    change_nodes = Call(steering.change_nodes)
    prioritise_dag = Call(steering.prioritise_dag)
    label_dag = Call(steering.label_dag)
    limit_dag = Call(steering.limit_dag)
    hold_cluster = Call(steering.hold_cluster)
    release_cluster = Call(steering.release_cluster)
    remove_cluster = Call(steering.remove_cluster)
    rerun_cluster = Submission(steering.rerun_cluster)
    change_cluster = Call(steering.change_cluster)
    prioritise_cluster = Call(steering.prioritise_cluster)
    label_cluster = Call(steering.label_cluster)
    limit_cluster = Call(steering.limit_cluster)
    kill_job = Call(steering.kill_job)
    drain_pilot = Call(steering.drain_pilot)
    remove_pilot = Call(steering.remove_pilot)
    preview_bulk = Call(steering.preview_bulk)
    begin_bulk = Call(steering.begin_bulk)
    bulk_operations = Call(steering.bulk_operations)

    remarks = Call(shift_log.remarks)
    note = Call(shift_log.note)
    write_log = Call(shift_log.write_log)

    log_part = Call(contents.log_part)
    job_log = Call(contents.job_log)
    pilot_log = Call(contents.pilot_log)
    peek = Call(contents.peek)
    job_outputs = Call(contents.job_outputs)
    dag_file_list = Call(contents.dag_file_list)
    download = Call(contents.download)


class _Settings(Calls):
    """Base of both clients: the profile, and how far the clocks are apart."""

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
        #: Told why a request has to be sent again later.
        self.on_delay: Callable[[str], None] = lambda reason: None

    def _delay(self, pause: Pause) -> None:
        if pause.reason:
            self.on_delay(pause.reason)

    def _is_due(self) -> bool:
        """Whether the token is one of a login, and ends soon."""
        return self.profile.login is not None and self.profile.login.is_due

    def _renew(self, transport: Any) -> None:
        """Take another token, if this one ends soon."""
        if not self._is_due():
            return
        with httpx_without_its_command():
            from .openid import renewed

        self.profile = renewed(self.profile, transport)

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

    def follow_events(self, after: str = "", **filters: object) -> Iterator[Event]:
        """Events as they happen, without an end; from a cursor on, or from now."""
        place = after or self.run(events.events()).cursor
        while True:
            batch = self.run(events.next_events(place, **filters))
            yield from batch.events
            place = batch.cursor

    def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            self._delay(step)
            sleep(step.seconds)
            return None
        if self._is_due() and self._sender is not None:
            self._sender.close()
            self._sender = None
        if self._sender is None:
            self._renew(self._transport)
            with httpx_without_its_command():
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

    async def follow_events(self, after: str = "", **filters: object) -> AsyncIterator[Event]:
        """Events as they happen, without an end; from a cursor on, or from now."""
        place = after or (await self.run(events.events())).cursor
        while True:
            batch = await self.run(events.next_events(place, **filters))
            for event in batch.events:
                yield event
            place = batch.cursor

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            import asyncio

            self._delay(step)
            await asyncio.sleep(step.seconds)
            return None
        outcome = await (await self._ready_sender()).send(step)
        if isinstance(outcome, Answer):
            self._saw(outcome)
        return outcome

    async def _ready_sender(self) -> AsyncSender:
        """The sender with a token that is good for a while; several flows may ask at once."""
        if self._is_due():
            import asyncio

            # The few requests of a renewal are synchronous ones.
            await asyncio.get_running_loop().run_in_executor(None, self._renew, None)
            before = self._sender
            if before is not None and before.token != self.profile.token:
                self._sender = None
                # Other flows may be waiting for its answers.
                await before.close_when_idle()
        if self._sender is None:
            with httpx_without_its_command():
                from .sending import AsyncSender

            self._sender = AsyncSender(self.profile, self._transport)
        return self._sender

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
