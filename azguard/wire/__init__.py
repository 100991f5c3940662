"""How the services are spoken to: one row for each operation, and the one way from a row to an answer.

``rows``         what a row says, and the words for it
``operations``   the rows of each service
``catalogue``    all of them by name, and why one does not honour a condition
``call``         an operation sent once, as its row says, and its whole answer
``transactions`` several operations on entities in one request
``answers``      names of arguments and fields → headers and queries
``xml``          XML bodies, and the lines of listings by the names of an answer
``signing``      what proves the caller: a signature, a SAS, a token
``client``       a request and the answer to it that may be believed
``listeners``    those who listen to requests
``connections``  requests written to sockets, answers read whole from them
``network``      a connection to a host: its name, a proxy, TLS
``failures``     why there is no answer, and what a refusal is
``unreachable``  why there is no answer, in words
``logins``       Azure identities, the OIDC tokens of CI jobs included
``sdk``          how a login asks for tokens; the SDK's own client, for the demonstration
"""
