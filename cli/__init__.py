"""How a command line is read and answered.

The way of one run:

``app``              the front door: which commands there are, and how a run ends
``registry``         the commands by name: their modules and their summaries
``groups``           the Typer classes that commands are made of
``command_spec``     what a command says of itself, so that it gets the options that it takes
``context``          what a command is handed: the account, the cache, the conditions, the output
``run_keys``         under which keys a run keeps its facts
``output``           results as text, the one place
``errors``           every exception as an exit status and words, the one place
``signals``          what a signal does to a run
``command_missing``  a group that was typed without a command

Options that several commands share:

``options``          those declared once for many commands
``shared_options``   of the account, the output, the conditions
``option_classes``   many options as one frozen dataclass
``values``           text as typed → what the core takes
``accounts``         which account is meant
``secret_files``     secrets as ``@FILE``
``inputs``           files and streams that are named
``ending``           credentials that end before the work may
``asking``           questions on the terminal
``command_line``     the words as they were typed
``plain``            values without pydantic

Options of a noun or of one command, and what of them goes together:

``append_options`` ``block_options`` ``copy_options`` ``page_options`` ``property_options`` ``put_options``
``snapshot_options`` ``source_options`` ``tree_get_options`` ``wait_options``
                     of blobs
``file_options`` ``file_copy_options`` ``file_lock_options`` ``file_property_options`` ``file_put_options``
``file_tree_options``
                     of shares, directories and files
``content_options``  of content and its headers, in blobs and files
``part_options``     of metadata, tags and policies
``lifecycle_options``  of what creates and deletes
``tree_options`` ``tree_plans`` ``tree_stores`` ``tree_output``
                     of trees of files, and what a run over one shows
``entity_options`` ``entity_output``
                     of entities, and how they are printed
``message_options`` ``message_receipts``
                     of messages, and which receipt is meant
``work_options`` ``work_view``
                     of ``queue work``, and its line on a terminal
``lease_options`` ``lease_list_options`` ``breaking``
                     of leases, and how one is broken
``guarded_options``  of every command that runs another one under a lock
``lock_options`` ``lock_names`` ``hold_options`` ``step_locks`` ``step_variables``
                     of locks, and of those that are held for later steps
``holdings_view``    who holds what: once, or again and again
``update_options`` ``update_parts`` ``update_plans`` ``update_changes`` ``edit_options``
                     of ``safe-update``, and its built-in edits
``editor_options`` ``editing``
                     of ``edit``
``demo_view``        the demonstration as people see it

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
``typed_line``       the unfinished line
"""
