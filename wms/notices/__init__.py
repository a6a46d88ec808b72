"""Telling people what happened: in the portal, by e-mail, and by signed webhooks."""
