"""Self-test of the installation: findings about what does not work, or not safely."""
