"""Import and export of sites as YAML, with a preview of what an import would change."""
