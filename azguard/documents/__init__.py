"""JSON, YAML and metadata, edited without touching what the edit does not name. Knows nothing of Azure.

``text``      JSON text: parse, find, replace
``numbers``   numbers with the spelling they have
``yaml_tree``     YAML text: its nodes, and where they stand
``yaml_scalars``  what a scalar of YAML means, and how a text is written
``yaml_rewrite``  YAML text with other values in it
``yaml_edits``    one edit of YAML, checked
``paths``     the paths of the built-in edits
``edits``     the built-in edits
``patches``   JSON patch and merge patch
``metadata``  the rules for metadata
``sizes``     sizes in bytes, as they are typed
``policies``  stored access policies
``tags``      the rules for index tags
``parts``     metadata or tags in a JSON document, with their version
``formats``   the format of content, by name and content type
``merges``    two changes of one content, put together
``diffs``     differences for people
``controls``  characters that drive a terminal, spelled out
``filter_output``  what a filter may print
``queries``   what fails of JMESPath
"""
