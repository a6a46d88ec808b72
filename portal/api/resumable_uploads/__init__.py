"""Resource of the API: uploads that resume."""
