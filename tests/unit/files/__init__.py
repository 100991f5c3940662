"""The room of files, without a service."""
