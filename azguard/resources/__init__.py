"""What resources of several services have in common, without knowing a service.

``access_policies``  stored access policies: their JSON, their XML, their rules; compared, then written
``copies``           copies that the service makes in its own time, and their sources
``existence``        what a create or a delete finds where something is already; how many items a resource contains
``lifecycles``       how a container, a share, a directory, a queue or a table is made, read, listed and deleted
``parts``            the metadata of a resource, read and replaced
``properties``       content headers, the lease, the copy: what several services keep and show of a resource
``ranges``           which ranges of a page blob or of a file hold data
``tree_store``       what a tree needs of a service
"""
