"""The caller's identity and the place: accounts, and what proves who asks.

``account``      the endpoints and the credential of one account; one resource in it
``credentials``  connection strings, keys and SAS tokens as text → an account; what a SAS allows
``profiles``     named accounts in the user's configuration file
``endpoints``    where the services of an account answer, in which cloud, through which proxy
``logins``       Azure identities, the OIDC tokens of CI jobs included
"""
