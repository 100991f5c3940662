"""The demonstration: the same increments, applied in three ways by many processes while answers get lost.

``strategies`` are the three, ``worker`` is the process that applies them, ``writers`` starts and watches those
processes, and ``race`` puts them before an emulator of their own and counts.
"""
