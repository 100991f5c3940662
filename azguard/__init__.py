"""Concurrency-safe operations on Azure Storage: the core, which knows nothing of command lines."""

import os

__version__ = "0.2.0"

_HERE = os.path.dirname(__file__)
# An sdist has no links, and git makes none with core.symlinks=false: then cli/ and commands/ are beside this folder.
if not os.path.isdir(os.path.join(_HERE, "cli")):
    __path__.append(os.path.dirname(_HERE))
