"""Identity: login by OpenID Connect, and signed tokens of other issuers, checked by their keys."""
