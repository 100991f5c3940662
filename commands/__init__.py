"""What each command does: a file for each noun, or a folder where one file is not enough.

``about``        demo, help, version, completion
"""
