"""The caller's identity and the place: accounts, credentials, and the SDK's transport.

``account``      the endpoints and the credential of one account → the SDK's clients; one resource in it
``credentials``  connection strings, keys and SAS tokens as text → an account; what a SAS allows
``profiles``     named accounts in the user's configuration file
``transport``    the SDK's transport: no truncated response counts, no exchange outlives its time
``direct``       a request to the Blob service without the SDK's client
``sessions``     requests of the SDK, sent as they are
``open_connections``  requests over connections that are open already
``exchanges``    one exchange with a server: whole, and within its time
``endpoints``    where the services of an account answer, in which cloud, through which proxy
``logins``       Azure identities, the OIDC tokens of CI jobs included
``unreachable``  why no answer came, and how long a service wants to be left alone
"""
