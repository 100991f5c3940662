"""Shares, directories and files against the real Files emulator."""
