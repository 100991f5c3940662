"""Local servers that answer like Azure Storage."""
