"""The format of content, by its name or its content type."""

from azguard.errors import TransformFailed

_YAML_SUFFIXES = (".yaml", ".yml")
_JSON_SUFFIX = ".json"


def is_yaml(name: str, content_type: str | None) -> bool:
    """Return whether content is YAML: by the end of its name, else by its content type."""
    if name.lower().endswith(_YAML_SUFFIXES):
        return True
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind.endswith("yaml") and not name.lower().endswith(_JSON_SUFFIX)


def check_yaml(source: bytes, made: bytes) -> None:
    """Refuse what was made of YAML and is none: a key that appears twice in a mapping counts.

    Raises:
        TransformFailed: the source can be read, and what was made cannot.
    """
    problem = _find_problem(made)
    if problem is not None and _find_problem(source) is None:
        raise TransformFailed(f"the content was YAML, and this is not: {problem}", reason="edit_not_yaml")


def _find_problem(content: bytes) -> str | None:
    from azguard.documents import yaml_tree

    try:
        yaml_tree.parse_all(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return f"it is not UTF-8, at byte {error.start}"
    except yaml_tree.NotYaml as error:
        return str(error)
    return None
