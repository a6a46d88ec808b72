"""Recovery after a return of the database to an earlier state: account of all that is open."""
