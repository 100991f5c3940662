"""Under which keys of Click's ``meta`` a run keeps its facts."""

#: The options that every command shares, by name.
SHARED = "azguard.shared"
#: The names of the options in the order they were typed.
ORDER = "azguard.order"
#: The parser of a command or a group, which has parsed what was typed, and whose it is.
PARSED = "azguard.parsed"
#: The operation whose conditions the command takes.
OPERATION = "azguard.operation"
#: All that was typed.
ARGV = "azguard.argv"
#: The command's name and its own arguments.
COMMAND = "azguard.command"
