"""How a command line is read and answered.

The way of one run:

``app``              the front door: which commands there are, and how a run ends
``registry``         the commands by name: their modules and their summaries
``context``          what a command is handed: the account, the cache, the conditions, the output
``output``           results as text, the one place
``errors``           every exception as an exit status and words, the one place
``signals``          what a signal does to a run

Rooms:

``parsing``          from the words of a command line to the call of a command
``options``          the options of commands, and what the core is asked for by them
``input``            what a command line names: values, accounts, addresses, files and streams

``demo_view``        the demonstration as people see it
``holdings_view``    who holds what: once, or again and again
``entity_output``    how entities are printed
``work_view``        the line of ``queue work`` on a terminal
``tree_output``      what a run over a tree shows

What is shown:

``layout``           results in rows and columns, by their types
``rendering``        tables on a terminal
``summaries``        what a command did, in one line
``plain_values``     results as what JSON knows
``line_query``       ``--query`` of results that come line by line
``deliveries``       where content goes, and whether it stays there
``result_stream``    stdout, and what if it cannot be written
``terminal``         what a stream can show: width, colour, characters
``progress``         a progress bar, and the line it is drawn in
``tree_progress``    how far a run over a tree came
``tracing``          what ``-v`` tells
``redaction``        the same text without credentials

Words:

``help_text``        the help of a command
``topics``           the topics of ``azguard help``
``markdown``         the pages behind them, as plain text
``hints``            what to type after a conflict
``hint_account``     the account that was typed, in the lines of a hint
``hint_table``       the words for what the core raises, by the reason of an error, from these pages:
``words_for_accounts`` ``words_for_appends`` ``words_for_blobs`` ``words_for_cache`` ``words_for_conditions``
``words_for_copies`` ``words_for_documents`` ``words_for_files`` ``words_for_leases`` ``words_for_names``
``words_for_programs`` ``words_for_queues`` ``words_for_requests`` ``words_for_smb`` ``words_for_tables``
``words_for_trees`` ``words_for_updates``
``words``            what a row of them is
``explaining``       what is known here about a refusal
``guesses``          what an unknown word means
``foreign_words``    what az storage and shells call it

Completion:

``completion``       what a shell is answered
``completion_scripts``  what each shell needs to ask
``completers``       what may stand in the place of a value
"""
