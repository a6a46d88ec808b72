"""Endpoints of the actions on one object, made of what the actions say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.shapes import ReasonSerializer
from wms.actions.actions import Action, InApi
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.core.actors import Actor

Body = type[ReasonSerializer]


class ActionView(APIView):
    """One action on one object. A kind of objects has a view that says how it answers."""

    action: Action
    body_class: Body | None
    #: The shape of its answers.
    shape: type[serializers.BaseSerializer[Any]]
    #: The bodies of actions that take more than arguments, by their names.
    bodies: ClassVar[Mapping[str, Body]] = {}
    #: Begins the names of its operations, where these are not made of the addresses.
    operations = ""

    def answer(self, request: Request, which: Any, done: Any) -> Any:
        """The object as it is now; `done` is what the service returned. Raises Conflict."""
        raise NotImplementedError

    def post(self, request: Request, **which: Any) -> Response:
        """Carry it out; the one value of the address names the object."""
        given: dict[str, Any] = {"reason": ""}
        if self.body_class is not None:
            body = self.body_class(data=request.data)
            body.is_valid(raise_exception=True)
            given = dict(body.validated_data)
        [named] = which.values()
        order = Order(Actor.person(caller(request)), given.pop("reason"), given)
        done = self.action.act(named, order)
        if _told(self.action).is_later:
            return Response(status=status.HTTP_202_ACCEPTED)
        return Response(self.answer(request, named, done))


def view_of(action: Action, base: type[ActionView]) -> Callable[..., HttpResponseBase]:
    """The view of an action on one object of a kind."""
    told, body = _told(action), base.bodies.get(action.name) or _body_of(action)
    view = type(base.__name__, (base,), {"action": action, "body_class": body})
    answers = {202: None} if told.is_later else {200: base.shape}
    described = extend_schema(
        operation_id=f"{base.operations}_{action.name}" if base.operations else None,
        summary=told.summary,
        description=told.description,
        request=body,
        responses={**answers, **refusals(*([400] if body else []), 403, 404, 409)},
    )
    found: Callable[..., HttpResponseBase] = extend_schema_view(post=described)(view).as_view()
    return found


def _told(action: Action) -> InApi:
    assert action.api is not None
    return action.api


def _body_of(action: Action) -> Body | None:
    """The body of a request: a reason if it takes one, and its arguments."""
    if not action.takes_reason:
        return None
    if not action.arguments:
        return ReasonSerializer
    members: dict[str, Any] = {each.key: _field_of(each) for each in action.arguments}
    members["__doc__"] = _told(action).body
    return type(f"{action.name.capitalize()}Serializer", (ReasonSerializer,), members)


def _field_of(argument: Argument) -> serializers.Field[Any, Any, Any, Any]:
    default, help_text = argument.for_service(argument.default), argument.in_api
    if argument.type == ArgumentType.YES_NO:
        return serializers.BooleanField(required=False, default=default, help_text=help_text)
    return serializers.IntegerField(
        required=False,
        default=default,
        allow_null=default is None,
        min_value=argument.for_service(argument.least),
        max_value=argument.for_service(argument.most),
        help_text=help_text,
    )
