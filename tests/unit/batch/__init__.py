"""The room of batches, without a command line."""
