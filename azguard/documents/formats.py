"""The format of content, by its name or its content type."""

_YAML_SUFFIXES = (".yaml", ".yml")
_JSON_SUFFIX = ".json"


def is_yaml(name: str, content_type: str | None) -> bool:
    """Return whether content is YAML: by the end of its name, else by its content type."""
    if name.lower().endswith(_YAML_SUFFIXES):
        return True
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind.endswith("yaml") and not name.lower().endswith(_JSON_SUFFIX)
