"""Mutants: the product with one rule of its protocol left out, each of which the explorer has to catch.

- ``mutants`` has them as rows: what is replaced by what, which rule that leaves out, and the scenario that catches it.
- ``python -m tests.mutation`` puts them in, one at a time, in a copy of the tree, and prints who caught them.
- ``safety.toml`` is another matter: cosmic-ray changes the core a little in every way, for tests/unit.
"""
