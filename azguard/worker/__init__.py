"""The worker of a queue: it runs a command for each message.

``settings``   what a worker is to do; the protocol of claims
``run``        a run of a worker: receive messages, have them handled, end
``polling``    when an empty queue is asked again, and when failures stop the worker
``crew``       the threads that handle messages, and where their commands run
``handling``   one message: claim, run, keep hidden, settle
``order``      what is asked of the queue, and what a command is told of its message
``once``       claims on the keys of messages, in a table
``poisoned``   the messages of a poison queue, and why each is there
``results``    the outcome of a message by the exit status, counts, results
``events``     the files of events and metrics
"""
