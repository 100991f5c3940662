"""``azguard lock``.

``run``   run
``hold``  hold, check, release
``look``  log, show, list, break
"""
