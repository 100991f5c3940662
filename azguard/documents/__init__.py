"""JSON, YAML and metadata, edited without touching what the edit does not name. Knows nothing of Azure.

``json_text``     JSON text and its numbers: parse, find, replace
``yaml_tree``     YAML text: its nodes, and where they stand
``yaml_rewrite``  YAML text with other values in it
``paths``         the paths of the built-in edits
``edits``         the built-in edits, JSON Patch and merge patch
``metadata``      the rules for metadata and index tags
``formats``       the format of content, and what a filter may print for it
``diffs``         differences for people, and three-way merges
``controls``      characters that drive a terminal, spelled out
``open_metrics``  OpenMetrics text, and the file that a scraper reads
"""
