"""Shares, directories and files: Azure Files over REST.

The service evaluates no conditions. What a lease protects (shares and files) is compared and written under one; what
has no lease (directories) can only be compared.

``shares``       create, show, list and delete shares
``directories``  create, show and delete directories
``files``        show and delete files
``uploads``      content into a file
``earlier_puts`` puts that a killed run has committed
``temporary``    the temporary file that is filled first
``temporary_notes``  which temporary files a killed process of this machine left
``leftovers``    temporary files that a crash left, listed and deleted
``placing``      its rename, under the guard of the conditions
``copies``       a file as a copy of another one, or of a blob
``copy_plans``   a copy that is not sent yet
``copy_runs``    the service's copy into a temporary file
``copy_sources`` which version of the source is copied
``download``     content out of a file, one version of it
``metadata``     the metadata of all three
``properties``   content headers, attributes and times
``renames``      renames of directories
``file_renames`` renames of files
``snapshots``    snapshots of a share
``acl``          the access policies of a share
``listing``      what is in a directory
``range_writes`` ranges that are written and cleared, and the length of a file
``ranges``       which ranges hold data
``handles``      who has what open over SMB, and closing it
``holders``      who has a file open, told with the refusal
``contents``     whether a share is empty
``trees``        files below a directory, as trees of files see them
``tree_folders`` the directories of such a tree
``existing``     what a create finds
``described``    directories and files as commands show them
``writes``       one write, and its outcome where the answer is lost
``guarding``     lease, compare, write: how a write of a share or a file is guarded
``abandoned``    what a killed process left on a share or a file
``replacing``    new content whole and at once
``updating``     safe-update: the lease around each write
``updating_parts``  safe-update: content and metadata
``owner_notes``  the record of who holds the lease of a guarded write
"""
