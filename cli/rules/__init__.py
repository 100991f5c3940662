"""Which options go together, and what refuses a line before any request.

``engine``    the rules as rows, and the one engine that checks them
"""
