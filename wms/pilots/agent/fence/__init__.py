"""Fences: what keeps a payload from the pilot, the node, the network and other payloads."""
