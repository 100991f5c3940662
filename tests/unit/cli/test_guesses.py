"""Words of az storage and of a shell, and misspelt ones, are answered with the command to type."""

import re
import shlex
from typing import Any

from azguard.cli.parsing.tree import Group, root
from azguard.cli.words import guesses
from azguard.cli.words.foreign import ADDRESSES, COMMANDS, OPTIONS, PARTS
from tests.support.cases import cases
from tests.support.command_tree import COMMANDS as COMMANDS_OF_OURS
from tests.support.command_tree import read_line


def _find_command(words: list[str]) -> tuple[Any, list[str]]:
    command: Any = root
    rest = list(words)
    while isinstance(command, Group):
        command = command.get(rest.pop(0))
    return command, rest


def answer(line: str) -> str:
    """Return the hint for a whole line, whatever in it is unknown."""
    command: Any = root
    words, path = shlex.split(line)[1:], list[str]()
    while isinstance(command, Group):
        if words[len(path)].startswith("-"):
            return guesses.hint_for_option(command, path, words[len(path)], words)
        found = command.get(words[len(path)])
        if found is None:
            return guesses.hint_for_command(path, words[len(path) :])
        path.append(words[len(path)])
        command = found
    shown = command.list_options()
    unknown = next(word for word in words if word.startswith("-") and word.partition("=")[0] not in shown)
    return guesses.hint_for_option(command, path, unknown.partition("=")[0], words)


@cases("typed", *COMMANDS)
def test_every_foreign_command_is_answered_with_one_that_is_read(typed: str) -> None:
    # Without az before it, the first two words are a command of ours.
    az = "az storage " if typed.startswith(("blob copy ", "file copy ")) else ""
    words = shlex.split(answer(f"azguard {az}{typed}"))
    command, rest = _find_command(words[1:])
    assert (words[0], " ".join(words[1:]).startswith(COMMANDS[typed].command)) == ("azguard", True)
    assert read_line(command, rest)


@cases("name", *ADDRESSES)
def test_every_part_of_an_address_is_answered_with_the_whole_one(name: str) -> None:
    command, _ = _find_command(["blob", "get"])
    answered = {guesses.hint_for_option(command, name.split(), option, []) for option in PARTS}
    expected = f"azguard {name} {ADDRESSES[name]}" if ADDRESSES[name] else f"azguard {name} --help"
    assert answered == {expected}


@cases("option", *OPTIONS)
def test_every_foreign_option_is_one_of_ours_somewhere(option: str) -> None:
    ours = OPTIONS[option].partition("|")[0].split()[0]
    nouns = (
        "blob get",
        "blob put",
        "blob copy",
        "blob list",
        "lease acquire",
        "lease break",
        "lock list",
        "queue move",
        "entity delete",
        "safe-update",
    )
    assert any(ours in _find_command(name.split())[0].list_options() for name in nouns)


@cases(
    ("typed", "answered"),
    ("put", "did you mean azguard blob put or azguard message put or azguard file put?"),
    ("put site/x -f f", "did you mean azguard blob put or azguard message put or azguard file put?"),
    ("blob lock", "azguard lock --help"),
    ("lockk run x -- true", "did you mean: azguard lock run x -- true"),
    ("blob putt site/x", "did you mean: azguard blob put site/x"),
    ("merge", "did you mean: azguard entity merge"),
    ("get", "did you mean azguard blob get or azguard entity get or azguard message get or azguard file get?"),
    ("upload -c site -n a.json -f a.json", "azguard blob put site/a.json -f a.json"),
    ("blob download -c site -n a -f b --no-progress", "azguard blob get site/a -f b --no-progress"),
    ("storage blob list --container-name=site", "azguard blob list site"),
    ("az storage blob delete -csite -na", "azguard blob delete site/a"),
    (
        "blob upload -c site -n a -f b --overwrite true --subscription s --account-key SECRET",
        "azguard blob put site/a -f b --last-writer-wins --account-key @FILE",
    ),
    ("blob upload -c site -n a --file=b --overwrite false", "azguard blob put site/a --file=b"),
    ("lock log deploy --last 5", "azguard lock log deploy --num-results 5"),
    ("blob list site --jq .name", "azguard blob list site --query JMESPATH"),
    ("blob upload site/a --acount-key SECRET", "azguard blob put site/a -f FILE"),
    ("az storage file upload -s team --source x -p a/x", "azguard file put team/a/x --file x"),
    ("az storage directory create -s team -n a", "azguard dir create team/a"),
    ("file upload-batch dist team/v1/", "azguard file put dist team/v1/ --recursive"),
    ("file url", "azguard does not do that yet; use az storage file url"),
    ("blob download -c '' -n a", "azguard blob get CONTAINER/a -f FILE"),
    ("blob put site/a -f b --type block", "azguard blob put site/a -f b --blob-type block"),
    ("container rm -n site", "azguard container delete site"),
    ("container lease acquire -c site", "azguard lease acquire container:site"),
    ("container lease acquire site", "azguard lease acquire container:site"),
    ("blob lease acquire site/a", "azguard lease acquire blob:site/a"),
    ("entity show -t Orders --partition-key eu --row-key 7", "azguard entity get Orders/eu/7"),
    ("entity insert -t Orders -e PartitionKey=eu RowKey=7 n=5", "azguard entity insert Orders/eu/7 n:int32=5"),
    ("lock exec deploy -- ./deploy.sh", "azguard lock run deploy -- ./deploy.sh"),
    ("lock deploy -- ./deploy.sh", "did you mean: azguard lock run deploy -- ./deploy.sh"),
    ("lock acquire deploy", "azguard lock hold deploy"),
    ("lock unlock deploy", "azguard lock release deploy"),
    ("blob get -c site a", "azguard blob get site/a"),
    ("blob get site/a --name b", "azguard blob get site/a"),
    ("blob get site/a --acount-key SECRET", "did you mean --account-key?"),
    ("blob get site/a --key SECRET", "azguard blob get site/a --account-key @FILE"),
    ("cp no-such-file site/a", "azguard blob get no-such-file -f site/a"),
    ("cp /dev/null site/a", "azguard blob put site/a -f /dev/null"),
    ("cp", "azguard blob get CONTAINER/NAME -f FILE, or azguard blob put CONTAINER/NAME -f FILE"),
    ("account show", "azguard does not do that yet; use az storage account"),
    ("login", "azguard does not do that yet; use az login, then --auth-mode login"),
    ("xyzzy", "azguard --help"),
    (
        "cache xyzzy",
        "azguard cache has: list, show, forget, clear, prune, export, import, path; see azguard cache --help",
    ),
    ("file undelete s/f", "files have no undelete; a share has snapshots: azguard share snapshot SHARE"),
    ("container restore -n site", "azguard container undelete site"),
    ("share restore -n team", "azguard share undelete team"),
    ("blob dleete site/x", "did you mean: azguard blob delete site/x"),
    ("lock steal d", "a lock is not taken over: ask its holder, or end it as an operator: azguard lock break --help"),
    ("blob get site/a --xyzzy", "azguard blob get --help"),
    ("--watch lock list site", "--watch stands behind the command: azguard lock list site --watch"),
    ("blob --profile a list site", "--profile stands behind the command: azguard blob list site --profile a"),
    ("lock --no-wait run a -- b", "--no-wait stands behind the command: azguard lock run a --no-wait -- b"),
    ("--sas-token S status", "--sas-token stands behind the command: azguard status --sas-token @FILE"),
    ("--watch xyzzy", "azguard --help"),
)
def test_a_line_is_answered_with_the_one_to_type(typed: str, answered: str) -> None:
    assert answer(f"azguard {typed}") == answered


_VERBS = {
    "read": "list ls show get describe view log logs status stat diff fetch cat watch download select top history",
    "write": "create add new set update edit apply patch put upload insert undelete restore move rename copy clone "
    "push commit revert rollback reset scale seize rebase require annotate release renew freeze post",
    "delete": "delete remove rm purge drop prune clear empty erase unlink",
    "break": "steal force-unlock evict cordon kill",
}


def _class_of(words: str, command: Any) -> str:
    last = words.rsplit(maxsplit=1)[-1]
    if last in ("delete", "clear", "prune", "forget"):
        return "delete"
    if last in ("break", "close", "abort-copy"):
        return "break"
    operation = command.spec.operation
    reads = last in ("list", "show", "get", "path", "log", "export") if operation is None else not operation.writes
    return "read" if reads else "write"


def test_no_guess_is_of_another_noun_or_has_another_effect() -> None:
    effects = {words: _class_of(words, command) for words, command in COMMANDS_OF_OURS}
    parts = {tuple(words.split()[:length]) for words in effects for length in range(1, len(words.split()))}
    groups = [part for part in sorted(parts) if hasattr(root.find(part), "commands")]
    wrong = []
    for group in groups:
        for effect, verbs in _VERBS.items():
            for verb in verbs.split():
                if " ".join([*group, verb]) in effects or (*group, verb) in groups:
                    continue
                said = guesses.hint_for_command(group, [verb, "x"])
                guessed = {ours for ours in effects if re.search(rf"azguard {ours}( (?!-)|$)", said)}
                if said.startswith(("azguard ", "did you mean")) and " has: " not in said:
                    nouns = {"blob": {"safe-update", "edit"}, "table": {"entity"}, "share": {"file"}}
                    allowed = {group[0], *nouns.get(group[0], ())}
                    wrong += [
                        (group, verb, said)
                        for ours in guessed
                        if effects[ours] != effect or ours.split()[0] not in allowed
                    ]
    assert wrong == [], "\n".join(map(str, wrong))


@cases("option", "--overwrite", "--force", "--overwite")
def test_overwriting_is_answered_with_what_it_costs(option: str) -> None:
    assert answer(f"azguard blob put site/a {option}").split("\n      ") == [
        "azguard blob put site/a --last-writer-wins",
        "without --last-writer-wins it writes only over the version that was read here last",
    ]


@cases(
    ("typed", "answered"),
    ("container create c --metadata a=b c=d", "azguard container create c --metadata a=b --metadata c=d"),
    ("blob put c/n --tags a=b c=d e=f -f x", "azguard blob put c/n --tags a=b --tags c=d --tags e=f -f x"),
    ("blob put c/n --tags a=b --metadata c=d x", None),
    ("blob metadata set c/n a=b", "azguard blob metadata set c/n --metadata a=b"),
    ("blob tags set c/n a=b c=d", "azguard blob tags set c/n --tags a=b --tags c=d"),
    ("blob metadata set c/n b", None),
    ("blob put c/n a=b", None),
    ("entity insert t/p/r a=b c=d", None),
)
def test_values_without_an_option_are_answered_with_one_before_each(typed: str, answered: str | None) -> None:
    assert guesses.hint_for_values(typed.split()) == answered


@cases(
    "line",
    "entity query t --num-results 5",
    "blob put c/n --content-cache-control x",
    "file put s/p --content-cache-control x",
)
def test_an_option_of_az_has_its_name_there(line: str) -> None:
    command, rest = _find_command(line.split())
    assert read_line(command, rest)
