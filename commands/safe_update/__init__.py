"""``azguard safe-update`` and ``edit``.

``update``       the commands
``options``      their options, and what of these goes together
``typed_edits``  from ``--set`` and its kin, or a command, to what makes the new content
``plans``        from all of these to what the core runs; the editor
"""
