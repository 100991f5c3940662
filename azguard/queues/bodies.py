"""The XML that is sent to the Queue service."""

from azguard.resources.access_policies import escape


def build_message(text: str) -> str:
    """Return the body of Put Message and of Update Message."""
    return f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>"
