"""What each shell needs to ask azguard for completions."""

from azguard.errors import UsageError

# The variables by which a shell's script talks to azguard.
SHELL, LINE, WORD = "_AZGUARD_COMPLETE", "_AZGUARD_LINE", "_AZGUARD_WORD"

_BASH = r"""
_azguard_command() {
    local first=1 line
    while [[ $first -lt $COMP_CWORD && ${COMP_WORDS[first]} != -- ]]; do first=$((first + 1)); done
    first=$((first + 1))
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset $first
    elif declare -F _command_offset >/dev/null; then
        _command_offset $first
    elif [[ $first -eq $COMP_CWORD ]]; then
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "$1" | sort -u)
    fi
}
_azguard() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(_AZGUARD_COMPLETE=bash _AZGUARD_LINE="${COMP_LINE:0:COMP_POINT}" _AZGUARD_WORD="$2" "$1" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == -- ]]; then
        COMPREPLY=()
        _azguard_command "$2"
        return
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/:=] ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _azguard azguard
"""

_ZSH = r"""
#compdef azguard
_azguard() {
    local line
    local -a whole begun
    while IFS= read -r line; do
        line="${line%%$'\t'*}"
        if [[ $line == *[/:=] ]]; then begun+=("$line"); else whole+=("$line"); fi
    done < <(_AZGUARD_COMPLETE=zsh _AZGUARD_LINE="${(j: :)words[1,CURRENT]}" "${words[1]}" 2>/dev/null)
    if (( ! $#whole && ! $#begun )); then _files; return; fi
    if [[ $#begun == 0 && $#whole == 1 && $whole == -- ]]; then
        local first=$words[(i)--]
        shift $first words
        (( CURRENT -= first ))
        _normal
        return
    fi
    (( $#begun )) && compadd -S '' -- "${begun[@]}"
    (( $#whole )) && compadd -- "${whole[@]}"
}
if [[ $funcstack[1] == _azguard ]]; then _azguard "$@"; else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
    compdef _azguard azguard
fi
"""

_FISH = r"""
function __azguard_complete
    set -l found (_AZGUARD_COMPLETE=fish _AZGUARD_LINE=(commandline -cp | string collect) azguard 2>/dev/null)
    if test "$found" = --\t
        # What stands behind -- is a line of its own.
        set -l words (commandline -opc)
        set -l first (math (contains --index -- -- $words) + 1)
        set -l typed (string escape -- $words[$first..-1])
        complete -C (string join ' ' -- $typed (commandline -ct))
    else if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete --command azguard --no-files --arguments '(__azguard_complete)'
"""

_POWERSHELL = r"""
Register-ArgumentCompleter -Native -CommandName azguard -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString().PadRight($cursorPosition).Substring(0, $cursorPosition)
    $env:_AZGUARD_COMPLETE = 'powershell'
    $env:_AZGUARD_LINE = $line
    try {
        azguard 2>$null | ForEach-Object {
            $value, $meaning = $_ -split "`t", 2
            if (-not $meaning) { $meaning = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $meaning)
        }
    } finally {
        Remove-Item Env:_AZGUARD_COMPLETE, Env:_AZGUARD_LINE
    }
}
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}


def of(shell: str) -> str:
    """Return the script for a shell.

    Raises:
        UsageError: there is none for it.
    """
    if shell not in _SCRIPTS:
        raise UsageError(f"there is no completion for {shell!r}", hint=" or ".join(_SCRIPTS))
    return _SCRIPTS[shell].lstrip("\n")
