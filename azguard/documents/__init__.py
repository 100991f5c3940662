"""JSON and metadata, edited without touching what the edit does not name. Knows nothing of Azure.

``text``      JSON text: parse, find, replace
``numbers``   numbers with the spelling they have
``paths``     the paths of the built-in edits
``edits``     the built-in edits
``patches``   JSON patch and merge patch
``metadata``  the rules for metadata
``diffs``     differences for people
``filter_output``  what a filter may print
"""
