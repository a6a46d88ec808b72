"""Endpoints of actions on one object, generated from the registry of actions (`wms.actions`).

Holds the base view, and the serializer of a body made from an action's declared arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.db.models import Model
from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.base import caller, refusals
from portal.api.idempotency import IDEMPOTENCY_KEY, answered_once, created, request_key
from portal.api.shapes import NumbersByNameField, OptionsField, ReasonSerializer
from wms.actions.actions import Action, InApi
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.core.actors import Actor
from wms.core.idempotency import only_once
from wms.core.idempotency_models import MadeKind

Body = type[ReasonSerializer]


class ActionView(APIView):
    """Base view of one action on one object; each kind of objects has a subclass."""

    object_action: Action
    body_class: Body | None
    #: The shape of its answers, and their status.
    shape: type[serializers.BaseSerializer[Any]]
    status = status.HTTP_200_OK
    #: Refusals that are more than the usual ones, by status and content type.
    further_refusals: ClassVar[Mapping[tuple[int, str], Any]] = {}
    #: What a new object is; its requests may have idempotency keys.
    makes: ClassVar[tuple[MadeKind, type[Model]] | None] = None
    #: Begins the names of its operations, where these are not made of the addresses.
    operations = ""

    def named(self, request: Request, **which: Any) -> Any:
        """The object as its service names it: the one value of the address. Raises NotFound."""
        [named] = which.values()
        return named

    def check(self, request: Request, which: Any) -> None:
        """Raise NotFound for an object that the caller may not see, if the service does not."""

    def answer(self, request: Request, which: Any, done: Any) -> Any:
        """The object as it is now; `done` is what the service returned. Raises Conflict."""
        raise NotImplementedError

    def post(self, request: Request, **which: Any) -> Response:
        """Carry it out on the object that the address names."""
        given: dict[str, Any] = {"reason": ""}
        if self.body_class is not None:
            body = self.body_class(data=request.data)
            body.is_valid(raise_exception=True)
            given = dict(body.validated_data)
        named = self.named(request, **which)
        self.check(request, named)
        order = Order(Actor.person(caller(request)), given.pop("reason"), given)
        if self.makes is not None:
            return self._create(request, named, order, *self.makes)
        done = self.object_action.act(named, order)
        if _in_api(self.object_action).is_later:
            return Response(status=status.HTTP_202_ACCEPTED)
        return Response(self.answer(request, named, done), status=self.status)

    def _create(
        self, request: Request, named: Any, order: Order, kind: MadeKind, model: type[Model]
    ) -> Response:
        name = self.object_action.name
        content = {"action": name, "object": named, "arguments": order.arguments}
        with only_once(caller(request), request_key(request, kind, content)) as creation:
            if is_new := creation.found is None:
                done = self.object_action.act(named, order)
                creation.made = done.pk
            else:
                done = model._default_manager.get(pk=creation.found)
        body = self.answer(request, named, done)
        return created(body, at=self.address(done), is_new=is_new)

    def address(self, done: Any) -> str:
        """The address of what was made."""
        raise NotImplementedError


def view_of(action: Action, base: type[ActionView]) -> Callable[..., HttpResponseBase]:
    """The view of an action on one object of a kind."""
    in_api, body = _in_api(action), _body_of(action)
    is_making = in_api.makes or in_api.is_later or base.status == status.HTTP_201_CREATED
    takes_key = base.makes is not None or is_making
    members: dict[str, Any] = {"object_action": action, "body_class": body}
    if takes_key and base.makes is None:
        members["post"] = answered_once(base.post)
    view = type(base.__name__, (base,), members)
    answers = {202: None} if in_api.is_later else {base.status: base.shape}
    if base.makes:
        answers[status.HTTP_200_OK] = base.shape
    name = action.name.replace("-", "_")
    described = extend_schema(
        operation_id=f"{base.operations}_{name}" if base.operations else None,
        summary=in_api.summary,
        description=in_api.description,
        request=body,
        parameters=[IDEMPOTENCY_KEY] if takes_key else None,
        responses={
            **answers,
            **refusals(*([400] if body else []), 403, 404, 409),
            **base.further_refusals,
        },
    )
    found: Callable[..., HttpResponseBase] = extend_schema_view(post=described)(view).as_view()
    return found


def _in_api(action: Action) -> InApi:
    assert action.api is not None
    return action.api


def _body_of(action: Action) -> Body | None:
    """The body of a request: a reason if it takes one, and its arguments."""
    if not action.takes_reason:
        return None
    in_api = _in_api(action)
    arguments = (*action.arguments, *in_api.arguments)
    if not arguments:
        return ReasonSerializer
    members: dict[str, Any] = {each.key: _field_of(each) for each in arguments}
    members["__doc__"] = in_api.body
    name = in_api.body_name or action.name.capitalize()
    return type(f"{name}Serializer", (ReasonSerializer,), members)


def _field_of(argument: Argument) -> serializers.Field[Any, Any, Any, Any]:
    default = argument.for_service(argument.default)
    given: dict[str, Any] = {"help_text": argument.in_api} if argument.in_api else {}
    if not argument.is_required:
        given |= {"required": False, "default": dict if default == {} else default}
    return _FIELDS[argument.type](argument, given)


def _number(argument: Argument, given: dict[str, Any]) -> serializers.IntegerField:
    least, most = argument.for_service(argument.least), argument.for_service(argument.most)
    if least is not None and most is not None:
        message = f"must be from {least} to {most}, not %(show_value)s"
        given = {**given, "error_messages": {"min_value": message, "max_value": message}}
    return serializers.IntegerField(
        allow_null=argument.default is None, min_value=least, max_value=most, **given
    )


def _names(argument: Argument, given: dict[str, Any]) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=argument.most_characters),
        min_length=argument.least,
        max_length=argument.most,
        **given,
    )


def _texts_by_name(argument: Argument, given: dict[str, Any]) -> serializers.DictField:
    text = serializers.CharField(allow_blank=True, trim_whitespace=False)
    return serializers.DictField(child=text, **given)


def _text(argument: Argument, given: dict[str, Any]) -> serializers.CharField:
    length = argument.most_characters
    return serializers.CharField(
        allow_blank=not argument.least,
        max_length=length,
        trim_whitespace=not argument.keeps_blanks,
        **given,
    )


#: The field of an argument of each type, from the argument and what all fields are given.
_FIELDS: Mapping[ArgumentType, Callable[[Argument, dict[str, Any]], Any]] = {
    ArgumentType.YES_NO: lambda argument, given: serializers.BooleanField(**given),
    ArgumentType.WHOLE: _number,
    ArgumentType.TEXT: _text,
    ArgumentType.CHOICE: lambda argument, given: serializers.ChoiceField(argument.choices, **given),
    ArgumentType.NAMES: _names,
    ArgumentType.TEXTS_BY_NAME: _texts_by_name,
    ArgumentType.NUMBERS_BY_NAME: lambda argument, given: NumbersByNameField(**given),
    ArgumentType.OPTIONS_BY_NAME: lambda argument, given: OptionsField(**given),
}
