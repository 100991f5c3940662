"""The local emulators: Azurite, installed, started, found again and stopped, and one of Azure Files.

``background``       what the commands need: start, stop, status of all
``azurite_install``  Node.js, and the installation of Azurite from npm
``azurite_process``  the process of Azurite
``state``            what is remembered of a running emulator, and the shell variables that name it
``files``            an emulator of Azure Files, which Azurite lacks
``files_process``    the process of the Files emulator
"""
