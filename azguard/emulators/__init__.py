"""The local emulator: Azurite, installed, started, found again and stopped.

``azurite``          what the commands need: start, stop, status
``azurite_install``  the installation from npm
``azurite_process``  the process
``state``            what is remembered of a running one
``shell_exports``    the environment for a shell
``node``             a Node.js program that ends when we end
"""
