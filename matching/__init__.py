"""Pure decisions: values in, values out; no Django, no I/O, no clock, no randomness of its own."""
