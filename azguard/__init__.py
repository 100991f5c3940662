"""Concurrency-safe operations on Azure Storage: the core, which knows nothing of command lines."""

__version__ = "0.1.0"
