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
