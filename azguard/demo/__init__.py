"""The demonstration: many processes apply the same increments with three strategies while answers get lost.

``strategies``  the three strategies
``worker``      a process that applies increments
``writers``     starts those processes and counts what they report
``race``        the demonstration itself, with an emulator of its own
"""
