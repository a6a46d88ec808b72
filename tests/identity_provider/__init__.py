"""Identity provider for tests: django-oauth-toolkit, in a process of its own."""
