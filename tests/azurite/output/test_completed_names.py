"""A name that is completed is one word to the shell, whatever it holds: others may have chosen it."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from azguard.cli.completion import quote_for_powershell
from tests.support import forked, terminal_world, thorough
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until

NAMES = [
    "a;touch owned;", "a$(touch owned)`touch owned`", "a&touch owned|touch owned>owned<owned", "a b  c", "a'b\"c",
    "a*?[b]{c,d}", "a!b^#~=%@:,$HOME(c)", "a\u2018;touch owned;\u2019\u00e9", "plain",
]  # fmt: skip
# How each begins, with the script and without the settings of this machine.
_SHELLS = {
    "bash": ["bash", "--noprofile", "--rcfile", ".bashrc", "-i"],
    "zsh": ["zsh", "-d", "-i"],
    "fish": ["fish", "--no-config", "-i", "-C", "source script; function fish_prompt; echo '$ '; end"],
}


@pytest.mark.parametrize(("shell", "quote"), [(each, quote) for each in _SHELLS for quote in ("", "'", '"')])
def test_a_completed_name_is_one_word_to_the_shell(cli: CliWorld, shell: str, quote: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    site = cli.container()
    names = thorough.some(NAMES)
    for number, name in enumerate(names):
        cli.call("blob", "put", f"{site}/{number}{name}", stdin=b"x")
    ran = _type(cli, shell, [f"azguard blob show {quote}{site}/{number}\t" for number in range(len(names))])
    assert ran == [f"{site}/{number}{name}" for number, name in enumerate(names)]
    assert not (cli.root / "owned").exists()


def _type(cli: CliWorld, shell: str, lines: list[str]) -> list[str]:
    """Type lines into an interactive shell, and return the last word that each gave to azguard."""
    typed = cli.root / "typed"
    typed.touch()
    (cli.root / "azguard").write_text(
        f"""#!/bin/sh
[ -z "$_AZGUARD_COMPLETE" ] || exec {" ".join(forked.command())} "$@"
for last; do :; done
printf '%s\\0' "$last" >>{typed}
"""
    )
    (cli.root / "azguard").chmod(0o755)
    script = cli.call("completion", shell).out
    (cli.root / "script").write_text(script)
    (cli.root / ".bashrc").write_text(f"PS1='$ '\n{script}")
    (cli.root / ".zshrc").write_text(f"autoload -Uz compinit; compinit -u\n{script}")
    environ = {**cli.environ(), "HOME": str(cli.root), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    environ["PATH"] = f"{cli.root}:{environ['PATH']}"
    with terminal_world.shell(cli.root, environ, _SHELLS[shell]) as at:
        at.wait_for("$ ")
        for number, line in enumerate(lines):
            at.type(f"{line}\n")
            until(partial(_has, typed, number + 1))
    return typed.read_bytes().decode().split("\0")[:-1]


def _has(file: Path, count: int) -> bool:
    return file.read_bytes().count(b"\0") >= count


@cases(
    ("value", "word"),
    ("site/a.txt", "site/a.txt"),
    ("blob:site/a", "blob:site/a"),
    ("--if-match", "--if-match"),
    ("-f", "-f"),
    ("site/a;b$(id)", "'site/a;b$(id)'"),
    ("site/a b", "'site/a b'"),
    ("site/it's", "'site/it''s'"),
    ("site/\u2018;id;\u2019", "'site/\u2018\u2018;id;\u2019\u2019'"),
    ("@last", "'@last'"),
    ("#a", "'#a'"),
    ("*", "'*'"),
    ("~", "'~'"),
    ('--etag=W/"a\'b"', "'--etag=W/\"a''b\"'"),
    ("-a.b", "'-a.b'"),
    ("--output=json", "'--output=json'"),
    ("%", "'%'"),
    ("a`b", "'a`b'"),
    ("é", "'é'"),
)
def test_powershell_gets_what_is_one_word_there(value: str, word: str) -> None:
    assert quote_for_powershell(value) == word
