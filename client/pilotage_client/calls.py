"""Calls of the API, once for both clients: each flow becomes a method that runs it.

On `Client` a method returns the result, on `AsyncClient` something to await.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

from .flows import contents, objects, steering, submitting
from .model import Cluster, Dag
from .wire import Flow

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:
    from typing_extensions import ParamSpec

if TYPE_CHECKING:
    from .client import AsyncClient, AsyncRun, Client, Run

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
    wait_for_dag = Call(objects.wait_for_dag)
    wait_for_cluster = Call(objects.wait_for_cluster)
    wait_for_job = Call(objects.wait_for_job)

    submit_dag = Submission(submitting.submit_dag)
    send_dag = Submission(submitting.send_dag)
    submit_jobs = Submission(submitting.submit_jobs)
    check_dag = Call(submitting.check_dag)
    check_jobs = Call(submitting.check_jobs)
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

    log_part = Call(contents.log_part)
    job_log = Call(contents.job_log)
    pilot_log = Call(contents.pilot_log)
    peek = Call(contents.peek)
    job_outputs = Call(contents.job_outputs)
    dag_file_list = Call(contents.dag_file_list)
    download = Call(contents.download)
