"""Bytes into blobs and out of them.

``upload``        one put as a value, the one request of a small one, and how a lost answer is settled
``put_blob``      content into a blob: in one request, or as blocks
``blocks``        blocks staged, listed and committed one by one
``download``      one version of a blob, read in ranges, to a stream or a file
``append_blob``   one append as a value; the end of an append blob: found, made, sealed, and what stands there
``append_write``  content and lines into an append blob: the pieces, and how it can fail
``page_blob``     a page blob: found, created, its ranges; one write of pages as a value
``page_write``    writing and clearing pages
"""
