"""What a command line names: accounts, addresses, files and streams.

``accounts``   which account is meant, and its secrets
``addresses``  which blob, snapshot, file, tree or lock an address names
``streams``    files and streams, what is read from and delivered to them, and questions on the terminal
"""
