"""Many lines in one process; what a command line is, is not known here.

``lines``  what lines say, and how they ended
``order``  which line may begin: those of one address follow each other
``run``    lines at work, a few at a time
"""
