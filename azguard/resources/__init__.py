"""What resources of several services have in common, without knowing a service.

``copies``           copies that the service makes in its own time, and their sources
``delivery``         content to a stream, or atomically to a file
``downloads``        content out of a blob or a file, in ranges; and which ranges hold data
``lifecycles``       how a container, a share, a directory, a queue or a table is made, listed and deleted; what is
                     there already, and how many items it contains
``parts``            the metadata of a resource, and its stored access policies: checked, read, compared and replaced
``pool``             writes, a few at a time, and how they ended
``properties``       a resource's properties: asked for; content headers, the lease, the copy, as they are shown
``ranges``           ranges of content, several asked for at a time
``sources``          the content of a write, read in pieces
``tree_store``       what a tree needs of a service
"""
