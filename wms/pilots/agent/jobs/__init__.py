"""Jobs of a pilot: claims, the jobs that run side by side, and each from inputs to outputs."""
