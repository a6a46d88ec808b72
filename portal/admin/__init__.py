"""Administration pages: configuration of sites and queues, accounts, tokens, and the audit trail.

It is Django's admin with two changes: permissions follow from the role, and every change goes
through the services of the domain, so that it is checked, recorded and audited.
"""
