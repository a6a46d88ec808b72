"""Django settings, from the environment: docs/reference/settings.md.

Apps, middleware, database, cache, REST API and its schema, Celery, e-mail, security, and the
settings of Pilotage itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

from portal.config import env
from portal.config import logging_setup as logs
from portal.config.api_rates import api_rates
from portal.config.api_schema import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from portal.config.buckets import blobs_s3
from portal.config.content_security import CONTENT_SECURITY_POLICY as CONTENT_SECURITY_POLICY
from portal.config.databases import databases
from portal.config.identity_providers import oidc_providers, token_issuers
from portal.config.redis_urls import broker_url
from portal.config.task_routes import TASK_ROUTES
from portal.config.traces import check_traces

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.text("PILOTAGE_VAR", str(BASE_DIR / "var"))).resolve()
RUN_DIR = VAR_DIR / "run"

DEBUG = env.flag("PILOTAGE_DEBUG")
SECRET_KEY = env.text("PILOTAGE_SECRET_KEY", run_file=RUN_DIR / "secret_key")
SECRET_KEY_FALLBACKS = env.text(
    "PILOTAGE_SECRET_KEY_FALLBACKS", "", run_file=RUN_DIR / "secret_key_fallbacks"
).split()
# Looked at with every request and task (`portal.config.live_keys`); None where it is no file.
SECRET_KEY_FILES = {
    "SECRET_KEY": env.file_of("PILOTAGE_SECRET_KEY", RUN_DIR / "secret_key"),
    "FALLBACKS": env.file_of("PILOTAGE_SECRET_KEY_FALLBACKS", RUN_DIR / "secret_key_fallbacks"),
}
PUBLIC_URL = env.text(
    "PILOTAGE_PUBLIC_URL", "http://127.0.0.1:8000", run_file=RUN_DIR / "public.url"
).rstrip("/")
ALLOWED_HOSTS = env.words("PILOTAGE_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth.account",
    "allauth.socialaccount",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "wms.core",
    "wms.accounting",
    "wms.factories",
    "wms.sites",
    "wms.taskqueues",
    "wms.jobs",
    "wms.pilots",
    "wms.placement",
    "wms.dags",
    "wms.failures",
    "wms.history",
    "wms.schedules",
    "wms.campaigns",
    "wms.archives",
    "wms.remarks",
    "wms.notices",
    "wms.bulk",
    "portal.personal",
    "portal.web",
    "portal.api",
    "portal.pilot_api",
    "portal.factory_api",
    "portal.cli",
]

MIDDLEWARE = [
    "portal.metrics.measured_requests.MeasuredRequests",
    "portal.middleware.live_keys.LiveKeys",
    "portal.middleware.request_ids.NamedRequests",
    "portal.middleware.errors.ErrorPages",
    "portal.middleware.login_throttle.LoginThrottle",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.middleware.compression.CompressedPages",
    "portal.middleware.storable_requests.StorableAddresses",
    "portal.middleware.limits.PrivateAnswers",
    "portal.middleware.unchanged_answers.UnchangedAnswers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "portal.middleware.slashes.WithSlash",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.middleware.limits.BoundedRequests",
    "portal.middleware.storable_requests.StorableForms",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.middleware.overload.RefusedPages",
    "portal.api.chosen_fields.ChosenFields",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.personal.context.preferences",
            ],
        },
    },
]


# Behind a pool that hands out sessions for one transaction each, nothing may need a longer one.
DATABASES = databases(
    env.text("DATABASE_URL", run_file=RUN_DIR / "database.url"),
    is_pooled=env.flag("PILOTAGE_DATABASE_POOLED"),
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL", run_file=RUN_DIR / "redis.url")
CACHES = {
    "default": {
        "BACKEND": "portal.config.caching.PlainCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "pilotage",
        # Nobody waits long for what can be made anew, or for a mark.
        "OPTIONS": {"socket_timeout": 3, "socket_connect_timeout": 3},
    }
}

AUTH_USER_MODEL = "core.User"
AUTHENTICATION_BACKENDS = ["portal.personal.backends.WithPreferences"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Hashes of the others are taken, and made anew by the first one when their owner logs in.
PASSWORD_HASHERS = [
    "portal.config.password_hashing.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
# Who may log in besides by a password, and whose signed tokens the API accepts.
OIDC_PROVIDERS = oidc_providers(env.text("PILOTAGE_OIDC_PROVIDERS", "{}"))
TOKEN_ISSUERS = token_issuers(env.text("PILOTAGE_TOKEN_ISSUERS", "{}"), audience=PUBLIC_URL)
SOCIALACCOUNT_ADAPTER = "portal.identity.redirects.ProviderErrors"
LOGIN_URL = "web:login"
LOGIN_REDIRECT_URL = "web:dashboard"
LOGOUT_REDIRECT_URL = "web:login"

LANGUAGE_CODE = "en-gb"
FORMAT_MODULE_PATH = ["portal.formats"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.text("PILOTAGE_STATIC_DIR", str(VAR_DIR / "static")))
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": VAR_DIR / "media"},
    },
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Without `collectstatic` (development, tests) files come from their source folders.
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_MANIFEST_STRICT = False

# Each large file of a request is an open file of the process, which has about a thousand.
DATA_UPLOAD_MAX_NUMBER_FILES = 500
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

CSRF_FAILURE_VIEW = "portal.middleware.errors.csrf_failure"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = PUBLIC_URL.startswith("https:")
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
SECURE_HSTS_SECONDS = 30 * 86_400 if SESSION_COOKIE_SECURE else 0
# A proxy in front tells the scheme and the client's address in headers that anybody could send,
# so they are believed only where the operator says that there is one.
BEHIND_PROXY = env.flag("PILOTAGE_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.authentication.TokenAuthentication",
        "portal.api.authentication.PayloadAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    # Endpoints that take files name their own parser.
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsing.StorableJson"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.pagination.NewestFirst",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.descriptions.DescribedByDocstring",
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.throttling.CallerRates"],
    "EXCEPTION_HANDLER": "portal.api.problems.exception_handler",
    "PAGE_SIZE": 100,
}
API_RATES = api_rates()
# Requests that a process of the web server works on at once, that wait for a place, and how long.
WORKING_PLACES = int(env.number("PILOTAGE_WEB_PLACES", 5))
WORKING_PLACES_QUEUE = int(env.number("PILOTAGE_WEB_QUEUE", 6))
WORKING_PLACES_WAIT_S = env.number("PILOTAGE_WEB_WAIT_S", 0.5)
# Celery: tasks are short and idempotent, all state is in PostgreSQL, and a message that is lost
# only delays work until the next periodic sweep.
CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_BEAT_SCHEDULER = "portal.config.beat:LoopScheduler"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 120,
    "socket_connect_timeout": 3,
    # Who wakes a task does not wait for a broker that is away: it tries once more and goes on.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
}
# Connections are closed by `portal.celery` and not by Celery.
CELERY_DB_REUSE_MAX = 2**62
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ROUTES = TASK_ROUTES
# Of the service of scripts; the other workers are told on their command lines.
CELERY_WORKER_CONCURRENCY = int(env.number("PILOTAGE_SCRIPTS_CONCURRENCY", 4))
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False

LOGGING = logs.configure(env.choice("PILOTAGE_LOG_FORMAT", "logfmt", "logfmt", "json"))

# Who may read `/metrics` besides shifters: who has a token, and who asks from these networks.
METRICS_TOKENS = env.text("PILOTAGE_METRICS_TOKEN", "").split()
METRICS_FROM = env.networks("PILOTAGE_METRICS_FROM")
# The folder in which all processes of this host count; `manage.py up` names one.
METRICS_DIR = env.text("PILOTAGE_METRICS_DIR", "")

# The collector of traces; without one there are none.
TRACES_URL = env.text("PILOTAGE_TRACES_URL", "")
TRACES_TOKEN = env.text("PILOTAGE_TRACES_TOKEN", "")
TRACES_SHARE = env.number("PILOTAGE_TRACES_SHARE", 1)
if TRACES_URL:
    check_traces(TRACES_URL, TRACES_SHARE)
    INSTALLED_APPS.append("portal.tracing")
    MIDDLEWARE.insert(1, "portal.tracing.requests.TracedRequests")

# E-mail leaves by this server; without one none is sent, and the pages say so.
EMAIL_HOST = env.text("PILOTAGE_EMAIL_HOST", "")
_EMAIL_TLS = env.choice("PILOTAGE_EMAIL_TLS", "starttls", "starttls", "tls", "none")
EMAIL_USE_TLS = _EMAIL_TLS == "starttls"
EMAIL_USE_SSL = _EMAIL_TLS == "tls"
EMAIL_PORT = int(
    env.number("PILOTAGE_EMAIL_PORT", {"starttls": 587, "tls": 465, "none": 25}[_EMAIL_TLS])
)
EMAIL_HOST_USER = env.text("PILOTAGE_EMAIL_USER", "")
EMAIL_HOST_PASSWORD = env.text("PILOTAGE_EMAIL_PASSWORD", "")
EMAIL_TIMEOUT = 15
_MAIL_HOST = urlsplit(PUBLIC_URL).hostname or "localhost"

_HEARTBEAT_S = env.number("PILOTAGE_AGENT_HEARTBEAT_S", 5)
#: A pilot that missed so many is stalled, unless the settings name a time.
_HEARTBEATS_MISSED = 6

env.check_sealing_keys("PILOTAGE_CREDENTIAL_KEYS")
_CREDENTIAL_KEYS, _CREDENTIAL_KEYS_FILE = env.text_or_file(
    "PILOTAGE_CREDENTIAL_KEYS", RUN_DIR / "credential_keys"
)

# What Pilotage itself needs to know; read through `wms.core.conf`.
PILOTAGE = {
    "AGENT_HEARTBEAT_S": _HEARTBEAT_S,
    "AGENT_POLL_S": env.number("PILOTAGE_AGENT_POLL_S", 1),
    "AGENT_IDLE_LIMIT_S": env.number("PILOTAGE_AGENT_IDLE_LIMIT_S", 30),
    "AGENT_TAIL_LIMIT_S": env.number("PILOTAGE_AGENT_TAIL_LIMIT_S", 0),
    "AGENT_STOP_MARGIN_S": env.number("PILOTAGE_AGENT_STOP_MARGIN_S", 0),
    "AGENT_RETIRE_SPREAD_S": env.number("PILOTAGE_AGENT_RETIRE_SPREAD_S", 30),
    "AGENT_JOB_MAX_S": env.number("PILOTAGE_AGENT_JOB_MAX_S", 0),
    "PILOT_STALLED_AFTER_S": env.number(
        "PILOTAGE_PILOT_STALLED_AFTER_S", _HEARTBEATS_MISSED * _HEARTBEAT_S
    ),
    "RESCHEDULE_PAUSES_S": env.numbers("PILOTAGE_RESCHEDULE_PAUSES_S", "60,180,300,600"),
    "RESCHEDULE_AVOIDS": env.choice(
        "PILOTAGE_RESCHEDULE_AVOIDS", "host", "nothing", "host", "site"
    ),
    "RETRY_PATIENCE_S": env.number("PILOTAGE_RETRY_PATIENCE_S", 900),
    "STALLED_JOBS": env.choice("PILOTAGE_STALLED_JOBS", "reschedule", "reschedule", "fail"),
    "NEGOTIATION_PERIOD_S": env.number("PILOTAGE_NEGOTIATION_PERIOD_S", 5),
    "OUTPUTS_KEPT_S": env.number("PILOTAGE_OUTPUTS_KEPT_S", 30 * 86400),
    "OUTPUTS_KEPT_MOST_S": env.number("PILOTAGE_OUTPUTS_KEPT_MOST_S", 365 * 86400),
    "MAX_UPLOAD_BYTES": int(env.number("PILOTAGE_MAX_UPLOAD_BYTES", 256 * 1024 * 1024)),
    "MAX_OPEN_UPLOADS": int(env.number("PILOTAGE_MAX_OPEN_UPLOADS", 1000)),
    "UPLOAD_KEPT_S": env.number("PILOTAGE_UPLOAD_KEPT_S", 86400),
    "MAX_STREAM_BYTES": int(env.number("PILOTAGE_MAX_STREAM_BYTES", 1024**3)),
    "MAX_DAG_TEXT_BYTES": int(env.number("PILOTAGE_MAX_DAG_TEXT_BYTES", 256 * 1024 * 1024)),
    "MAX_DAG_FILES": int(env.number("PILOTAGE_MAX_DAG_FILES", 500)),
    "MAX_SPLICE_DEPTH": int(env.number("PILOTAGE_MAX_SPLICE_DEPTH", 50)),
    "MAX_DAG_NODES": int(env.number("PILOTAGE_MAX_DAG_NODES", 2_000_000)),
    "MAX_DAG_ARCS": int(env.number("PILOTAGE_MAX_DAG_ARCS", 5_000_000)),
    "MAX_CHECK_S": env.number("PILOTAGE_MAX_CHECK_S", 60),
    "DAG_OPTIONS": env.json_object("PILOTAGE_DAG_OPTIONS"),
    "MAX_HEAVY_REQUESTS": int(env.number("PILOTAGE_MAX_HEAVY_REQUESTS", 4)),
    "MAX_HEAVY_REQUESTS_PER_USER": int(env.number("PILOTAGE_MAX_HEAVY_REQUESTS_PER_USER", 2)),
    "MAX_HELD_CLAIMS": int(env.number("PILOTAGE_MAX_HELD_CLAIMS", 8)),
    "FACTORY_LEASE_S": env.number("PILOTAGE_FACTORY_LEASE_S", 900),
    "FACTORY_STALE_S": env.number("PILOTAGE_FACTORY_STALE_S", 60),
    "FRONTEND_TOKENS_DIR": env.text(
        "PILOTAGE_FRONTEND_TOKENS_DIR", str(VAR_DIR / "frontend-tokens")
    ),
    "FACTORY_TOKENS_DIR": env.text("PILOTAGE_FACTORY_TOKENS_DIR", str(VAR_DIR / "factory-tokens")),
    "TRIAL_LIMIT_S": env.number("PILOTAGE_TRIAL_LIMIT_S", 300),
    "TRIAL_MEMORY_MB": env.number("PILOTAGE_TRIAL_MEMORY_MB", 4096),
    "TRIAL_COMMAND": [sys.executable, "-m", "portal.cli.trial_program"],
    "TRIALS_DIR": str(VAR_DIR / "trials"),
    "BASE_DIR": str(BASE_DIR),
    "BLOBS_DIR": str(VAR_DIR / "blobs"),
    "BLOBS_S3": blobs_s3(),
    "HOST_PILOTS_DIR": str(VAR_DIR / "pilots"),
    "PUBLIC_URL": PUBLIC_URL,
    # Read at each use, so that keys are changed while the portal runs.
    "CREDENTIAL_KEYS": _CREDENTIAL_KEYS,
    "CREDENTIAL_KEYS_FILE": _CREDENTIAL_KEYS_FILE,
    # Read through `wms.notices.conf`.
    "NOTICES": {
        "EMAIL_FROM": env.text("PILOTAGE_EMAIL_FROM", f"pilotage@{_MAIL_HOST}")
        if EMAIL_HOST
        else "",
        "WEBHOOKS_ALLOWED": env.words("PILOTAGE_WEBHOOKS_ALLOWED"),
        "PLAIN_HTTP": env.flag("PILOTAGE_WEBHOOKS_HTTP"),
    },
    # Read through `wms.placement.conf`.
    "PLACEMENT": {
        "ROOTS": env.words("PILOTAGE_PLACEMENT_ROOTS"),
        "ALLOWED": env.words("PILOTAGE_PLACEMENT_ALLOWED"),
        "KNOWN_HOSTS": env.text("PILOTAGE_PLACEMENT_KNOWN_HOSTS", ""),
        "S3_URL": env.text("PILOTAGE_PLACEMENT_S3_URL", ""),
        "S3_REGION": env.text("PILOTAGE_PLACEMENT_S3_REGION", "us-east-1"),
        "LIMIT_S": env.number("PILOTAGE_PLACEMENT_LIMIT_S", 600),
        # An attempt that waits longer than its lease would be taken for lost.
        "STALL_S": min(env.number("PILOTAGE_PLACEMENT_STALL_S", 30), 45),
        "FILE_BYTES": env.number("PILOTAGE_PLACEMENT_FILE_BYTES", 10 * 1024**3),
        "PER_USER": env.number("PILOTAGE_PLACEMENT_PER_USER", 0),
        "MODULES": env.text("PILOTAGE_PLACEMENT_MODULES", ""),
        "PLUGINS": env.words("PILOTAGE_PLACEMENT_PLUGINS"),
        "FEED_BELOW": env.number("PILOTAGE_PLACEMENT_FEED_BELOW", 0),
        "FEED_PROGRAM": env.text("PILOTAGE_PLACEMENT_FEED_PROGRAM", ""),
        "FEED_TOKEN_FILE": env.text("PILOTAGE_PLACEMENT_FEED_TOKEN_FILE", ""),
        "FEED_PAUSE_S": env.number("PILOTAGE_PLACEMENT_FEED_PAUSE_S", 300),
        "FEED_LIMIT_S": env.number("PILOTAGE_PLACEMENT_FEED_LIMIT_S", 600),
        "LONGEST_LEASE_S": env.number("PILOTAGE_PLACEMENT_LONGEST_LEASE_S", 90 * 86400),
    },
    # Read through `wms.dags.scripts.conf`.
    "SCRIPTS": {
        "VAR": str(VAR_DIR),
        "DIR": env.text("PILOTAGE_SCRIPTS_DIR", ""),
        "FENCES": env.words("PILOTAGE_SCRIPTS_FENCES", "bwrap,account"),
        "BWRAP": env.text("PILOTAGE_SCRIPTS_BWRAP", "bwrap"),
        "NETWORK": env.flag("PILOTAGE_SCRIPTS_NETWORK"),
        "READABLE": env.words("PILOTAGE_SCRIPTS_READABLE"),
        "FIRST_UID": env.number("PILOTAGE_SCRIPTS_FIRST_UID", 60600),
        "WALL_S": env.number("PILOTAGE_SCRIPTS_WALL_S", 3600),
        "CPU_S": env.number("PILOTAGE_SCRIPTS_CPU_S", 600),
        "MEMORY_MB": env.number("PILOTAGE_SCRIPTS_MEMORY_MB", 2048),
        "PROCESSES": env.number("PILOTAGE_SCRIPTS_PROCESSES", 256),
        "FILE_BYTES": env.number("PILOTAGE_SCRIPTS_FILE_BYTES", 1024**3),
        "OUTPUT_BYTES": env.number("PILOTAGE_SCRIPTS_OUTPUT_BYTES", 1024**2),
        "NEW_FILES": env.number("PILOTAGE_SCRIPTS_NEW_FILES", 1000),
        "NEW_BYTES": env.number("PILOTAGE_SCRIPTS_NEW_BYTES", 1024**3),
        "WORKSPACE_BYTES": env.number("PILOTAGE_SCRIPTS_WORKSPACE_BYTES", 10 * 1024**3),
    },
}
