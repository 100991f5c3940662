"""One edit of YAML: checked before, and its result read again and compared, so that it changes what it names alone."""

import copy
from collections.abc import Callable

from azguard.documents import text as json_text
from azguard.documents import yaml_rewrite, yaml_tree
from azguard.documents.paths import Path, Step
from azguard.documents.yaml_tree import MergedMapping, NodeKind, NotYaml, YamlNode
from azguard.errors import TransformFailed


def apply(text: str, path: Path | None, change: Callable[[object], object], *, removes: bool = False) -> str:
    """Return the text of one document with one change of its value.

    ``path`` is what the change is about, None for all of it; ``removes`` says that the change takes it away.

    Raises:
        NotYaml: the text is not YAML that can be edited.
        TransformFailed: the change does not fit, or would change more than it names.
    """
    root = yaml_tree.parse(text)
    if path is not None and root is not None:
        _check_way(root, path, removes=removes)
    new = change(copy.deepcopy(_value(root)))
    if root is not None:
        new = _Followers().follow(root, new)
    if yaml_tree.equal(_value(root), new):
        return text
    made = yaml_rewrite.rewrite(text, root, new)
    try:
        found = _value(yaml_tree.parse(made))
    except NotYaml as error:
        raise _not_possible(str(error)) from None
    if not yaml_tree.equal(found, new):
        raise _not_possible("it would mean something else")
    return made


def _value(root: YamlNode | None) -> object:
    # A text of comments alone is where a document begins.
    return MergedMapping() if root is None else root.value


class _Followers:
    """The aliases of one document, which follow what their anchors mean now.

    What is shared and was changed in place they follow by themselves; a value in the place of another they do not.
    """

    def __init__(self) -> None:
        #: By the name of the anchor.
        self._new: dict[str, object] = {}

    def follow(self, node: YamlNode, new: object) -> object:
        """Return the value of a node with all aliases in it that the change did not touch on their anchors' values."""
        if node.kind is NodeKind.ALIAS:
            return self._new.get(str(node.anchor), new) if yaml_tree.equal(node.value, new) else new
        if node.kind is NodeKind.MAPPING and isinstance(new, dict):
            for key, item in zip(node.keys, node.items, strict=True):
                if key.text in new:
                    new[key.text] = self.follow(item, new[key.text])
        if node.kind is NodeKind.SEQUENCE and isinstance(new, list):
            sources = json_text.find_sources(node.value, new, yaml_tree.equal)
            for at, source in enumerate(sources):
                if source is not None:
                    new[at] = self.follow(node.items[source], new[at])
        if node.anchor is not None:
            self._new[node.anchor] = new
        return new


def _not_possible(why: str) -> TransformFailed:
    return TransformFailed(f"this YAML cannot be edited so: {why}", reason="yaml_not_editable")


def _check_way(root: YamlNode, path: Path, *, removes: bool) -> None:
    """Refuse a way that leads into what an alias or a merge key shares: the change would show in other places.

    Raises:
        TransformFailed: it does.
    """
    node = root
    for depth, step in enumerate(path.steps):
        is_last = depth == len(path.steps) - 1
        if node.kind is NodeKind.ALIAS:
            raise TransformFailed(
                f"{path}: the way leads through the alias *{node.anchor}, which other places share",
                reason="yaml_way_is_shared",
                values={"anchor": f"&{node.anchor}"},
            )
        found = _child(node, step)
        if found is None:
            if (removes or not is_last) and _is_inherited(node, step):
                raise TransformFailed(
                    f"{path}: {step} comes from a merge key (<<), which other places share",
                    reason="yaml_way_is_shared",
                    values={"anchor": "what << names"},
                )
            return
        node = found


def _child(node: YamlNode, step: Step) -> YamlNode | None:
    if node.kind is NodeKind.MAPPING:
        members = zip(node.keys, node.items, strict=True)
        own = (item for at, (key, item) in enumerate(members) if not node.is_merge(at) and key.text == step.name)
        return next(own, None)
    if node.kind is NodeKind.SEQUENCE and step.index is not None and -len(node.items) <= step.index < len(node.items):
        return node.items[step.index]
    return None


def _is_inherited(node: YamlNode, step: Step) -> bool:
    return (
        isinstance(node.value, MergedMapping) and step.name is not None and node.value.get(step.name, node) is not node
    )
