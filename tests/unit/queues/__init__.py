"""The room of queues, without a service."""
