"""The lines that tell a shell where the emulator is, and that it is gone."""

from collections.abc import Mapping

from azguard.errors import UsageError

VARIABLE = "AZURE_STORAGE_CONNECTION_STRING"
#: The port on which the shares are served over SMB: Azure Storage has no variable for it.
SMB_VARIABLE = "AZGUARD_SMB_PORT"
SHELLS = ("sh", "fish", "powershell")
# A connection string holds no quote, so quoting it needs no escapes in any of the three.
_FORMS = {
    "sh": "export {variable}='{value}'",
    "fish": "set -gx {variable} '{value}'",
    "powershell": "$env:{variable} = '{value}'",
}
_UNSET_FORMS = {
    "sh": "unset {variable} {smb}",
    "fish": "set -e {variable} {smb}",
    "powershell": "Remove-Item Env:{variable}, Env:{smb} -ErrorAction SilentlyContinue",
}
_SYNTAX_OF = {
    **dict.fromkeys(("sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "busybox"), "sh"),
    "fish": "fish",
    "pwsh": "powershell",
    "powershell": "powershell",
}


def find_syntax(shell: str) -> str:
    """Return the syntax of ``SHELLS`` that a shell has, by its name.

    Raises:
        UsageError: the shell is not known.
    """
    if shell not in _SYNTAX_OF:
        raise UsageError(
            f"the shell {shell!r} is not known",
            reason="shell_unknown",
            values={"shell": shell, "shells": " ".join(SHELLS)},
        )
    return _SYNTAX_OF[shell]


def describe(connection_string: str, smb_port: int | None) -> dict[str, str]:
    """Return the variables that point at an emulator, by name."""
    return {VARIABLE: connection_string} | ({} if smb_port is None else {SMB_VARIABLE: str(smb_port)})


def lines(variables: Mapping[str, str], shell: str) -> str:
    """Return the lines that export variables in a syntax of ``SHELLS``."""
    return "\n".join(_FORMS[shell].format(variable=name, value=value) for name, value in variables.items())


def line_to_unset(shell: str) -> str:
    """Return the line that takes all of them away again, in a syntax of ``SHELLS``."""
    return _UNSET_FORMS[shell].format(variable=VARIABLE, smb=SMB_VARIABLE)


def guess(environ: Mapping[str, str], parent: str) -> str:
    """Return the syntax of the shell that is asking; ``parent`` is the name of the process that started us.

    The parent knows best: ``$SHELL`` is the login shell even inside a script of another one, and
    ``PSModulePath`` is inherited by whatever PowerShell starts.
    """
    if parent in _SYNTAX_OF:
        return _SYNTAX_OF[parent]
    if "PSModulePath" in environ:
        return "powershell"
    return _SYNTAX_OF.get(environ.get("SHELL", "").rpartition("/")[2], "sh")
