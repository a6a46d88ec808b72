"""Ways of a transfer: from which end to which, by which schemes, and which one is tried first."""
