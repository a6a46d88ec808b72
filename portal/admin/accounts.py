"""Admin pages of accounts, of people and of services, and of API tokens.

Tokens are made, shown once, and revoked with a reason.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.password_validation import validate_password
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from portal.admin.accounting import deletion_reason
from portal.admin.forms import CheckedForm, date_and_time
from portal.admin.identities import identities_of_account
from portal.admin.roles import RoleAdmin, actor_of, role_of
from wms.accounting.limited_tokens import issue_limited_token, limits_for
from wms.accounting.models import AccountingGroup
from wms.accounting.service_accounts import (
    check_service_account,
    save_service_account,
    visible_service_accounts,
)
from wms.core.accounts import check_account, save_account
from wms.core.errors import ReasonRequired
from wms.core.models import ApiToken, Role, Scope, ServiceAccount, TokenKind, User
from wms.core.tokens import revoke_tokens


class AccountForm(CheckedForm):
    """An account; a new one needs a password."""

    check = staticmethod(check_account)
    new_password = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Leave empty to keep the password.",
    )

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name", "email", "role", "is_active")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.fields["new_password"].required = True
            self.fields["new_password"].help_text = "A new account needs one."

    def clean_new_password(self) -> str:
        """Apply the rules for passwords."""
        password: str = self.cleaned_data["new_password"]
        if password:
            validate_password(password, self.instance)
        return password


class UserAdmin(RoleAdmin):
    """Accounts of persons."""

    role = Role.ADMIN
    form = AccountForm
    list_display = ("username", "role", "is_active", "email", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("username", "email", "first_name", "last_name")
    readonly_fields = ("last_login", "date_joined", "known_as")

    @admin.display(description="identities")
    def known_as(self, user: User) -> str:
        """Subjects of providers that have the account, with their last use and address."""
        return identities_of_account(user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """All but those of services, which have a page of their own."""
        return super().get_queryset(request).filter(is_service=False)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Store the account with an audit entry."""
        save_account(
            obj,
            actor=actor_of(request),
            reason=form.said_reason,
            password=form.cleaned_data["new_password"],
        )


class ServiceAccountForm(CheckedForm):
    """Account of a service, with its groups."""

    check = staticmethod(check_service_account)
    member_of = forms.ModelMultipleChoiceField(
        AccountingGroup.objects.all(),
        required=False,
        label="Accounting groups",
        help_text="In whose name it may submit; their frontends decide what it sees. None: those "
        "of the default frontend.",
    )

    class Meta:
        model = ServiceAccount
        fields = ("username", "role", "email", "is_active")
        help_texts = {
            "email": "Whom to ask about it.",
            "is_active": "Tokens of one that is off are worth nothing.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(value, label) for value, label in Role.choices if value != Role.ADMIN]
        self.fields["role"].choices = choices
        if self.instance.pk is not None:
            self.initial["member_of"] = list(self.instance.accounting_groups.all())


class ServiceAccountAdmin(RoleAdmin):
    """Accounts of services: without password and login, they have tokens only."""

    role = Role.ADMIN
    form = ServiceAccountForm
    fields = (
        "username", "role", "member_of", "email", "is_active", "reason", "seen", "date_joined",
        "known_as",
    )  # fmt: skip
    list_display = ("username", "role", "belongs_to", "is_active", "email", "last_used")
    list_filter = ("is_active",)
    search_fields = ("username", "email")
    readonly_fields = ("date_joined", "known_as")

    @admin.display(description="signed tokens of")
    def known_as(self, account: ServiceAccount) -> str:
        """Subjects whose signed tokens are this account by the settings, with their last use."""
        return identities_of_account(account)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ServiceAccount]:
        """Service accounts that the user may see."""
        assert isinstance(request.user, User)
        return visible_service_accounts(request.user)

    @admin.display(description="groups")
    def belongs_to(self, account: ServiceAccount) -> str:
        """Names of its groups."""
        return ", ".join(group.name for group in account.accounting_groups.all())

    @admin.display(description="last used", ordering="last_used_at")
    def last_used(self, account: Any) -> Any:
        """When one of its tokens was used last."""
        return account.last_used_at

    def save_model(
        self, request: HttpRequest, obj: ServiceAccount, form: Any, change: bool
    ) -> None:
        """Store the account and its groups with an audit entry."""
        save_service_account(
            obj,
            groups=form.cleaned_data["member_of"],
            actor=actor_of(request),
            reason=form.said_reason,
        )


class TokenForm(forms.ModelForm):
    """A token to be made."""

    scopes = forms.MultipleChoiceField(
        choices=Scope, widget=forms.CheckboxSelectMultiple, initial=Scope.values,
        help_text="What it may be used for, of what its user may.",
    )  # fmt: skip

    class Meta:
        model = ApiToken
        fields = ("user", "name", "scopes", "frontend", "expires_at")
        widgets = {"expires_at": date_and_time("Expires at")}

    def clean(self) -> dict[str, Any]:
        """Refuse a frontend that the token's user is not in."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        user, frontend = given.get("user"), given.get("frontend")
        if user and frontend and frontend.name not in limits_for(user):
            self.add_error("frontend", f"{user} is not in this frontend.")
        return given


class ByValidity(admin.SimpleListFilter):
    """Filter of tokens by whether they were revoked."""

    title, parameter_name = "validity", "revoked"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices."""
        return [("no", "not revoked"), ("yes", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
        """The tokens that were chosen."""
        if self.value() not in {"no", "yes"}:
            return queryset
        return queryset.filter(revoked_at__isnull=self.value() == "no")


class ByKindOfUser(admin.SimpleListFilter):
    """Filter of tokens by whether they are of people or of services."""

    title, parameter_name = "user", "of"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices."""
        return [("people", "people"), ("services", "services")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
        """The tokens that were chosen."""
        if self.value() not in {"people", "services"}:
            return queryset
        return queryset.filter(user__is_service=self.value() == "services")


class TokenAdmin(RoleAdmin):
    """API tokens: made, shown once, revoked. Operators see their own, administrators all."""

    form = TokenForm
    list_display = (
        "prefix", "name", "user", "last_used_at", "last_used_from", "expires_at", "revoked_at",
        "scopes", "limited_to", "created_at",
    )  # fmt: skip
    list_select_related = ("user",)
    list_filter = (ByValidity, ByKindOfUser)
    search_fields = ("prefix", "name", "user__username")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """Tokens that the user may see, latest first."""
        tokens = super().get_queryset(request).filter(kind=TokenKind.API).order_by("-pk")
        return tokens if role_of(request, Role.ADMIN) else tokens.filter(user=request.user)

    @admin.display(description="frontend", ordering="frontend_name")
    def limited_to(self, token: ApiToken) -> str | None:
        """Name of the frontend that it is limited to."""
        return token.limit

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A token is made and revoked, never changed; the list needs the right for its actions."""
        return obj is None and super().has_change_permission(request)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the users for whom a token may be made."""
        if db_field.name == "user" and not role_of(request, Role.ADMIN):
            kwargs["queryset"] = User.objects.filter(pk=request.user.pk)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Make the token; its text is kept for the answer to this request and nowhere else."""
        issued = issue_limited_token(
            obj.user,
            frontend=obj.frontend.name if obj.frontend else "",
            name=obj.name,
            actor=actor_of(request),
            expires_at=obj.expires_at,
            scopes=obj.scopes,
        )
        obj.pk, obj.prefix, obj.text = issued.row.pk, issued.row.prefix, issued.text

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the text of the new token, once."""
        context = {**self.admin_site.each_context(request), "title": "New token", "token": obj}
        return TemplateResponse(request, "admin/core/apitoken/made.html", context)

    @admin.action(description="Revoke the chosen tokens")
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> TemplateResponse | None:
        """End the tokens' validity, once a page has asked for the reason."""
        chosen, error = list(tokens.filter(revoked_at=None)), None
        if not chosen:
            messages.warning(request, "All of these were revoked before.")
            return None
        if "reason" in request.POST:
            try:
                applied = revoke_tokens(
                    [token.pk for token in chosen],
                    actor=actor_of(request),
                    reason=deletion_reason(request),
                )
            except ReasonRequired as refused:
                error = refused
            else:
                messages.success(request, f"Revoked: {len(applied.changed)}.")
                return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Revoke tokens",
            "tokens": chosen,
            "error": error,
        }
        status = error.status if error else 200
        return TemplateResponse(request, "admin/core/apitoken/revoke.html", context, status=status)
