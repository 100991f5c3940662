"""The demonstration: many processes apply the same increments with three strategies while answers get lost.

``race``    the demonstration itself, with an emulator of its own, and its writer processes
``proxy``   loses answers between the writers and the emulator
``worker``  one of those processes, and the three strategies to apply an increment
"""
