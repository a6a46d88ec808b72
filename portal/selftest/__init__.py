"""What keeps this installation from doing its work, or from doing it safely."""
