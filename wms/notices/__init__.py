"""Notifications: notices in the portal, e-mails and signed webhooks."""
