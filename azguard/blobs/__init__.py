"""Blobs and containers.

``properties``      one blob's properties and tags, as the SDK has them
``shown``           one blob's properties, as commands show them
``types``           block, append and page blobs
``existing``        what a create finds where a blob or a container is already
``listing``         a container's blobs
``download``        one version of a blob, read in ranges
``downloads``       content out of a blob
``waiting``         waiting until a blob is there, gone, changed or not leased
``upload``          one upload as a value
``uploads``         content into a blob
``blocks``          a stream as staged blocks
``digests``         the hashes of content that passes by in pieces
``block_ids``       the ids of blocks, as the service and as the SDK has them
``block_lists``     blocks staged, listed and committed one by one
``upload_checks``   what can be asked before an upload begins
``upload_outcome``  the outcome of an upload whose response was lost
``append``          one append as a value
``appends``         content and lines into an append blob
``append_ends``     the end of an append blob
``append_pieces``   content in pieces that an append blob takes
``append_outcome``  the outcome of an append whose response was lost
``append_updates``  an update that only adds text
``append_errors``   how an append can end that was not made, or not whole
``seals``           sealing an append blob
``write_refusals``  why a blob was not written
``copies``          a blob as a copy of another
``copy_sources``    the source of a copy
``copy_status``     how a copy goes on, and how to stop it
``source_pieces``   ranges of another blob, for an append or for pages
``snapshots``       snapshots of a blob, and what is kept of a deleted one
``restoring``       what a restore would change
``page_write``      one write of pages as a value
``pages``           writing and clearing pages
``page_blobs``      a page blob: found, created, its ranges
``kept_versions``   the version that a write replaces, kept as a snapshot before
``deletes``         deleting a blob
``rewrites``        writes that read first what is to stay
``metadata``        the metadata of a blob
``headers``         the content headers of a blob
``tags``            the index tags of a blob
``tiers``           the access tier of a blob
``fenced_writes``   writes under the fence of a lock
``fenced_tags``     what a write of tags under a fence owes to the versions of the blob
``updating``        a blob as the update loop sees it
``updating_parts``  tags, and the metadata of a container, as the update loop sees them
``update_states``   what an update reads of a blob and keeps of it
``containers``      containers
``container_metadata``  the metadata of a container
``container_acl``   the access policies of a container
``contents``        how many blobs are in a container
``name_lists``      names and versions of a container's blobs, for trees
``small_gets``      blobs that one request reads
``small_puts``      blobs that one request writes
``trees``           blobs under a prefix as trees of files see them
"""
