"""Uploads that resume: files that users send piece by piece, before submissions take them."""
