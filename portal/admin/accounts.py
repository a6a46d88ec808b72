"""Admin pages of accounts and of API tokens, which are made, shown once, and revoked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.password_validation import validate_password
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from portal.admin.forms import CheckedForm, date_and_time
from portal.admin.roles import RoleAdmin, actor_of, role_of
from wms.core.accounts import check_account, save_account
from wms.core.models import ApiToken, Role, Scope, User
from wms.core.tokens import issue_token, revoke_tokens


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

    def clean_new_password(self) -> str:
        """Apply the rules for passwords."""
        password: str = self.cleaned_data["new_password"]
        if password:
            validate_password(password, self.instance)
        elif self.instance.pk is None:
            raise forms.ValidationError("A new account needs a password.")
        return password


class UserAdmin(RoleAdmin):
    """Accounts of persons and services."""

    role = Role.ADMIN
    form = AccountForm
    list_display = ("username", "role", "is_active", "email", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("username", "email", "first_name", "last_name")
    readonly_fields = ("last_login", "date_joined")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Store the account with an audit entry."""
        save_account(
            obj,
            actor=actor_of(request),
            reason=form.said_reason,
            password=form.cleaned_data["new_password"],
        )


class TokenForm(forms.ModelForm):
    """A token to be made."""

    scopes = forms.MultipleChoiceField(
        choices=Scope, widget=forms.CheckboxSelectMultiple, initial=Scope.values,
        help_text="What it may be used for, of what its user may.",
    )  # fmt: skip

    class Meta:
        model = ApiToken
        fields = ("user", "name", "scopes", "expires_at")
        widgets = {"expires_at": date_and_time("Expires at")}


class TokenAdmin(RoleAdmin):
    """API tokens: made, shown once, revoked. Operators see their own, administrators all."""

    form = TokenForm
    list_display = (
        "prefix",
        "name",
        "user",
        "created_at",
        "expires_at",
        "last_used_at",
        "last_used_from",
        "scopes",
        "revoked_at",
    )
    list_select_related = ("user",)
    search_fields = ("prefix", "name", "user__username")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """Tokens that the user may see, latest first."""
        tokens = super().get_queryset(request).order_by("-pk")
        return tokens if role_of(request, Role.ADMIN) else tokens.filter(user=request.user)

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
        issued = issue_token(
            obj.user,
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
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        """End the tokens' validity."""
        ids = list(tokens.values_list("pk", flat=True))
        applied = revoke_tokens(ids, actor=actor_of(request))
        messages.success(request, f"Revoked: {len(applied.changed)}.")
