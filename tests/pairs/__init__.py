"""A machine types the combinations: for each command, lines that cover every pair of its options.

    python -m tests.pairs [--seed S] [--command "blob put"] [--most N]

``described``  what a command takes: read from ``azguard help --json``, and nothing else
``lines``      the lines to type: every pair of options stands in one of them
``stage``      an account with a resource of each kind, made anew where a line changed it
``oracles``    what is true of every run, whatever was typed
``play``       a line, its run, and what the oracles say of it
"""
