"""The local emulators: Azurite, installed, started, found again and stopped, and one of Azure Files.

``background``       what the commands need: start, stop, status of all, and the shell variables that name them
``azurite_install``  Node.js, and the installation of Azurite from npm
``azurite_process``  the process of Azurite, and its record
``files``            an emulator of Azure Files, which Azurite lacks
``files_process``    the process of the Files emulator
"""
