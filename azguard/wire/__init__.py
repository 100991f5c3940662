"""How the services are spoken to: one row for each operation, and the one way from a row to an answer.

``rows``        what a row says, and the words for it
``operations``  the rows of each service
``catalogue``   all of them by name, and why one does not honour a condition
"""
