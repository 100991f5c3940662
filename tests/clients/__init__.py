"""Calls of other clients over the Files emulator, each with the answer that the service gives.

By hand, since CI has none of them: ``python -m tests.clients az``, ``azcopy`` or ``npm``, with the client on PATH.
``@azure/storage-file-share`` of npm is looked for in the working folder. docs/files-emulator.md has the result.
"""
