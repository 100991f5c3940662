"""What a command line names: values, accounts, addresses, files and streams.

``values``     text as typed → what the core takes
``accounts``   which account is meant, and its secrets
``addresses``  which blob, snapshot, file, tree or lock an address names
``streams``    files and streams, what is read from and delivered to them, and questions on the terminal
"""
