"""``azguard completion``: the script by which a shell completes azguard's command lines."""

import sys
from typing import Annotated

import typer

from azguard.cli import completion_scripts
from azguard.cli.groups import alone


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish|powershell", help="The shell.")],
) -> None:
    """Print the script that completes commands, options, and names of containers and blobs.

    Examples:
        eval "$(azguard completion bash)"   # in ~/.bashrc
        eval "$(azguard completion zsh)"    # in ~/.zshrc
        azguard completion fish | source    # in ~/.config/fish/config.fish
        azguard completion powershell | Out-String | Invoke-Expression  # in $PROFILE
    """
    sys.stdout.write(completion_scripts.of(shell))


app = alone(completion, "completion")
