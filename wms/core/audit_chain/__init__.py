"""Chain of hashes over the audit trail: how it is made, and how it is verified."""
