"""The worker of a queue: it runs a command for each message.

``settings``   what a worker is to do
``run``        a run of a worker: receive messages, have them handled, end
``polling``    when an empty queue is asked again
``breaker``    when failures in a row stop the worker
``bell``       what wakes the thread that waits
``crew``       the threads that handle messages
``handling``   one message: claim, run, keep hidden, settle
``holding``    the claim on the key of one message
``places``     where commands run, as the worker sees it
``protocol``   the outcome of a message, by the exit status of the command
``order``      what a command is told of its message
``inbox``      what is asked of the queue
``claims``     who may handle a message, and whether it was handled before
``once``       such claims in a table
``once_keys``  the key of a message, and how a table keeps it
``poisoned``   the messages of a poison queue, and why each is there
``reasons``    why each is there, in a table
``counts``     how many messages came to which end
``results``    what a worker did, as the command shows it
``events``     the file of events
``metrics``    the file of metrics
"""
