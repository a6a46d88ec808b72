"""Sites as text: written as YAML, read from it, compared with what is stored, brought in line."""
