"""A proxy that loses, delays, cuts and repeats what passes through it. Imports nothing of azguard.

``proxy``          the proxy
``connection``     one connection through it
``faults``         the faults, and when they strike
``http_messages``  HTTP messages as bytes
"""
