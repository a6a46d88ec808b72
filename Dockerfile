# One image for web, workers and beat; which one it is, the command says (see docker-compose.yml).
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=portal.settings \
    PILOTAGE_VAR=/var/lib/pilotage

# Fences in the scripts of nodes; the way to batch systems on other hosts.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap openssh-client \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/pilotage

COPY requirements.txt .
RUN pip install --no-cache-dir --require-hashes -r requirements.txt

COPY . .
RUN useradd --system --uid 999 --no-create-home pilotage \
    && install -d -o pilotage -m 0700 /var/lib/pilotage

USER pilotage
VOLUME /var/lib/pilotage
EXPOSE 8000

CMD ["gunicorn", "portal.wsgi", "--bind", "0.0.0.0:8000", "--workers", "2", "--threads", "24", \
     "--worker-tmp-dir", "/dev/shm", "--preload", "--timeout", "120", "--no-control-socket"]
