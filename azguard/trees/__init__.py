"""Trees of files: a folder of this machine and what a service keeps under a prefix, each file under its own guard.

``local_files``  the files of a folder, where a name goes in it, and which hold what the service has
``names``        which names are meant, listed, or taken for one: for trees of any size
``runs``         a run: a few files at a time, how far it came, how each of them ended, and the summary
``uploads``      a folder into a service, and how each of its files is written
``downloads``    out of a service into a folder
``deletes``      what a service keeps under a prefix, and the directories that are empty then
"""
