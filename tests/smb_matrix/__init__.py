"""How SMB and REST get on with each other in Azure Files, tried on any endpoint: ``python -m tests.smb_matrix --help``.

``endpoint``  a share over REST and over SMB
``oplocks``   an SMB client that caches, and gives that up when it is told
``rows``      what is tried, and what Microsoft documents of it
"""
