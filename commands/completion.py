"""``azguard completion``: the script by which a shell completes azguard's command lines."""

import sys
from typing import Annotated

import typer

from azguard.cli import completion_scripts
from azguard.cli.groups import alone


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish|powershell", help="The shell.")],
) -> None:
    r"""Print the script that completes commands, options, and names of containers and blobs.

    \b
    bash, in ~/.bashrc                    eval "$(azguard completion bash)"
    zsh, in ~/.zshrc, after compinit      eval "$(azguard completion zsh)"
    fish, in ~/.config/fish/config.fish   azguard completion fish | source
    PowerShell, in $PROFILE
      azguard completion powershell | Out-String | Invoke-Expression

    Example: azguard completion bash
    """
    sys.stdout.write(completion_scripts.of(shell))


app = alone(completion, "completion")
