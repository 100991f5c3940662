"""Trees of files: a folder of this machine and what a service keeps under a prefix, each file under its own guard.

``store``         what a tree needs of a service
``local_files``   the files of a folder
``local_folder``  where a name of the service goes in a folder, and never outside of it
``patterns``      which names are meant
``index``         names on the disk, for trees of any size
``items``         how each file ended, and the summary
``headway``       how far a run came
``outage``        a service that goes away in the middle of a run
``runs``          the phases of a run, a few files at a time
``unchanged``     whether two places hold the same content
``uploads``       a folder into a service
``file_writes``   how each of its files is written
``downloads``     out of a service into a folder
``deletes``       what a service keeps under a prefix
``folders``       the directories of a service that are empty then
``taken_names``   names that one side takes for one
"""
