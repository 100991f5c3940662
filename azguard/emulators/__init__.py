"""The local emulators: Azurite, installed, started, found again and stopped, and one of Azure Files.

``background``       what the commands need: start, stop, status of all
``azurite``          the same of Azurite
``azurite_install``  the installation from npm
``azurite_process``  the process
``state``            what is remembered of a running one
``shell_exports``    the environment for a shell
``files``            an emulator of Azure Files, which Azurite lacks
``files_process``    its process
``node``             a Node.js program that ends when we end
"""
