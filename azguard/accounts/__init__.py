"""The caller's identity and the place: accounts, and what proves who asks.

``account``    the endpoints and the credential of one account, also as text; what a SAS allows; one resource in it
``profiles``   named accounts in the user's configuration file
``endpoints``  where the services of an account answer, in which cloud, through which proxy
"""
