"""The pictures of the pages. ``python -m docs.pictures`` draws them anew; a test compares them with what is committed.

``drawing``: boxes, arrows and text as SVG. ``writers``: two writers, without a guard and with one. ``lost_lock``: the
life of a lost lock. ``lost_answer``: the loop of safe-update. ``contention``: a plot of ``benchmarks/contention.json``.
``terminal``: what a terminal shows, from ``demo.txt`` and from a page.
"""
