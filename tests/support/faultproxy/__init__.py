"""A proxy that loses, delays, cuts and repeats what passes through it.

``proxy``       the proxy
``connection``  one connection through it
``faults``      the faults, and what is known about a request afterwards
"""
