"""Program of the identity provider: makes its clients in memory, prints its address, serves."""

from __future__ import annotations

import sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

_LOGIN = (
    '<form method="post">{% csrf_token %}{{ form }}'
    '<input type="hidden" name="next" value="{{ next }}"></form>'
)
_SCOPES = (
    "openid", "profile", "email", "offline_access", "compute.read", "compute.create",
    "compute.modify", "compute.cancel", "storage.read:/",
)  # fmt: skip


class _Quiet(WSGIRequestHandler):
    """Handler that prints nothing."""

    def log_message(self, *args: object) -> None:
        """Print nothing."""


def main(callback: str) -> None:
    """Serve until the process is ended; `callback` is the portal's address to come back to."""
    server = make_server("127.0.0.1", 0, None, WSGIServer, _Quiet)
    issuer = f"http://127.0.0.1:{server.server_port}/o"
    _configure(issuer)
    _make_clients(callback)
    server.set_app(get_wsgi_application())
    print(issuer, flush=True)  # noqa: T201 - its reader waits for it
    server.serve_forever()


def _configure(issuer: str) -> None:
    settings.configure(
        SECRET_KEY="of a test", ALLOWED_HOSTS=["127.0.0.1"], USE_TZ=True,
        ROOT_URLCONF="tests.identity_provider.site", LOGIN_URL="/login/",
        SESSION_COOKIE_NAME="provider", CSRF_COOKIE_NAME="provider-csrf",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIGRATION_MODULES=dict.fromkeys(
            ["auth", "contenttypes", "sessions", "oauth2_provider"]
        ),
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"],
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"login.html": _LOGIN}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                },
            }
        ],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True, "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
            "OIDC_ISS_ENDPOINT": issuer, "OIDC_RSA_PRIVATE_KEY": "later",
            "OAUTH2_VALIDATOR_CLASS": "tests.identity_provider.site.Claims",
            "OIDC_SERVER_CLASS": "tests.identity_provider.site.ServerWithDevices",
            "ACCESS_TOKEN_GENERATOR": "tests.identity_provider.site.wlcg_token",
            "SCOPES": {name: name for name in _SCOPES}, "DEFAULT_SCOPES": ["openid"],
            "OAUTH_DEVICE_VERIFICATION_URI": f"{issuer}/device/", "DEVICE_FLOW_INTERVAL": 1,
            "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
        },
    )  # fmt: skip
    django.setup()


def _make_clients(callback: str) -> None:
    from oauth2_provider.models import get_application_model
    from oauth2_provider.settings import oauth2_settings

    from tests.identity_provider.site import new_key

    oauth2_settings.OIDC_RSA_PRIVATE_KEY = new_key()
    call_command("migrate", run_syncdb=True, verbosity=0)
    clients = get_application_model().objects
    clients.create(
        client_id="portal", client_secret="portal-secret", client_type="confidential",
        authorization_grant_type="authorization-code", algorithm="RS256", redirect_uris=callback,
    )  # fmt: skip
    clients.create(
        client_id="client", client_secret="", client_type="public", algorithm="RS256",
        authorization_grant_type="urn:ietf:params:oauth:grant-type:device_code",
    )  # fmt: skip
    clients.create(
        client_id="tokens", client_secret="", client_type="public", algorithm="RS256",
        authorization_grant_type="password",
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
