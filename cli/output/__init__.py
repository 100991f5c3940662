"""What a command shows: results, views of what goes on, and the streams they go to.

``results``    results as text, the one place; and what was sent and answered, with ``-v``
``rendering``  tables on a terminal
``summaries``  what a command did, in one line
``terminal``   what a stream can show: width, colour, characters; lines and bars that are drawn again in their place
``stream``     stdout, and what if it cannot be written
``json_form``  results as what JSON knows, the text of that for programs, and what ``--query`` picks of it
``trees``      what a run over a tree shows, and how far it is
``holdings``   who holds what: once, or again and again
"""
