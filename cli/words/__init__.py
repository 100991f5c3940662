"""The words of the command line: what happened, and what to type next.

``table``       the words for what the core raises, by the reason of an error, from these pages:
``leases``      leases and locks, SMB, files and programs
``requests``    requests, accounts, names and documents
``services``    blobs, tables and queues
``writes``      conditions, updates, trees and the cache
``rows``        the type of a row
``hints``       what to type next, with the account and the scope that were typed
``refusals``    what is known here about a refusal
``guesses``     what an unknown word means
``foreign``     what az storage and shells call it
"""
