"""The format of content, by its name or its content type; and what a filter may print for content of a format."""

import codecs
from collections.abc import Callable

from azguard.documents import json_text
from azguard.errors import TransformFailed
from azguard.frozen import frozen

_YAML_SUFFIXES = (".yaml", ".yml")
_JSON_SUFFIX = ".json"
# Formats in which one JSON value is a document too, but the next version of it need not be JSON.
_NEAR_JSON_SUFFIXES = (".jsonl", ".ndjson", ".yaml", ".yml")
_NEAR_JSON_TYPES = ("jsonl", "ndjson", "json-seq", "yaml")


def is_yaml(name: str, content_type: str | None) -> bool:
    """Return whether content is YAML: by the end of its name, else by its content type."""
    if name.lower().endswith(_YAML_SUFFIXES):
        return True
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind.endswith("yaml") and not name.lower().endswith(_JSON_SUFFIX)


def check_yaml(source: bytes, made: bytes) -> None:
    """Refuse new content that is not YAML where the source was; a mapping with one key twice is not YAML.

    Raises:
        TransformFailed: the source can be read, and what was made cannot.
    """
    from azguard.documents import yaml_tree

    problem = _find_problem(made, yaml_tree.parse_all)
    if problem is not None and _find_problem(source, yaml_tree.parse_all) is None:
        raise TransformFailed(f"the content was YAML, and this is not: {problem}", reason="edit_not_yaml")


def _find_problem(content: bytes, parse: Callable[[str], object]) -> str | None:
    """Return why content is not what ``parse`` reads; None if it is. A byte order mark does not matter."""
    try:
        parse(content.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        return f"it is not UTF-8, at byte {error.start}"
    except ValueError as error:
        return str(error)
    return None


@frozen
class Maker:
    """How a message says what the command did."""

    empty: str
    other: str


FILTER = Maker("the command printed nothing", "the command printed something else")
EDITOR = Maker("the file is empty", "this is not")
FILE_COMMAND = Maker("the command left the file empty", "the command put something else into the file")


@frozen
class OutputRule:
    """What a command may make of the content of the blob ``name``.

    JSON is what parses as a whole as an object or an array, or as any value if the name ends in .json or the content
    type is JSON. Not held to it: names that end in .jsonl, .ndjson, .yaml or .yml, and content types of these.
    """

    name: str
    allow_empty: bool = False
    any_content: bool = False
    maker: Maker = FILTER

    def check(self, source: bytes, output: bytes, content_type: str | None) -> None:
        """Refuse the output that a command made of ``source``.

        Raises:
            TransformFailed: it is empty, or not JSON although the source was.
        """
        if not output:
            if source and not self.allow_empty:
                raise TransformFailed(
                    f"{self.maker.empty}, and the content was not empty; nothing was written",
                    reason="output_is_empty",
                )
            return
        if self.any_content or not self._may_be_json(source, content_type):
            return
        problem = _find_problem(output, json_text.check)
        # The source is parsed last, and only if something is wrong: content may be large.
        if problem is not None and _find_problem(source, json_text.check) is None:
            raise TransformFailed(
                f"the content was JSON, and {self.maker.other}: {problem}; nothing was written",
                reason="output_is_not_json",
            )

    def _may_be_json(self, source: bytes, content_type: str | None) -> bool:
        """Return whether the source counts as JSON if it parses, without parsing it."""
        kind = (content_type or "").partition(";")[0].strip().lower()
        name = self.name.lower()
        if name.endswith(_NEAR_JSON_SUFFIXES) or kind.endswith(_NEAR_JSON_TYPES):
            return False
        if name.endswith(_JSON_SUFFIX) or kind.endswith(("/json", "+json")):
            return True
        return source.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")
