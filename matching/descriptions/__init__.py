"""Submit descriptions: macros, references to the site, environments."""
