"""The words of the command line: what happened, and what to type next.

``hints``       the words for what the core raises, by the reason of an error, with the account and the scope that were
                typed; from these pages:
``accounts``    requests, accounts and names
``conditions``  conditions, what was read, updates and documents
``files``       files, SMB, trees and programs
``leases``      leases and locks
``services``    blobs, tables and queues
``templates``   words with facts in them
``refusals``    what is known here about a refusal
``guesses``     what an unknown word means
``foreign``     what az storage and shells call it
"""
