"""Pages of archives of DAGs: those that are kept here, and what is in them."""
