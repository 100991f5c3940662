"""The worker of a queue: it runs a command for each message.

``settings``  what a worker is to do; the exit protocol, and the protocol of claims
``run``       a run of a worker: when to receive, have messages handled, when to stop
``handling``  one message: claim, run, keep hidden, settle
``order``     what is asked of the queue, what a command is told of its message, and the threads
``once``      claims on the keys of messages, in a table
``poisoned``  the messages of a poison queue, and why each is there
``outcomes``  the outcomes of a message; their counts, the summary, the files of events and metrics
"""
