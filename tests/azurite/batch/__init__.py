"""Many command lines in one process."""
