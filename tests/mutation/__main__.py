"""``python -m tests.mutation [NAME]...``: put mutants in, and print who caught them.

With ``--write-docs`` the rows are written into docs/guarantees.md.
"""

import argparse
import sys

from tests.explorer.pages import write_table
from tests.mutation.mutants import MUTANTS
from tests.mutation.run import HEAD, copied_tree, play, to_row


def main() -> int:
    """Play mutants, and return 1 if one is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of mutants; by default all")
    parser.add_argument("--write-docs", action="store_true", help="write the rows into docs/guarantees.md")
    given = parser.parse_args()
    chosen = [each for each in MUTANTS if not given.names or any(name in each.name for name in given.names)]
    caught = []
    with copied_tree() as root:
        for mutant in chosen:
            caught.append(play(mutant, root))
            found = caught[-1]
            sys.stdout.write(
                f"{mutant.name}: {found.what} ({found.seconds:.1f} s, {found.steps} steps); trace: {found.by_trace}\n"
            )
            sys.stdout.flush()
    rows = [to_row(each) for each in caught]
    sys.stdout.write("\n".join(["", HEAD, *rows, ""]))
    if given.write_docs:
        write_table("mutants", HEAD, rows, [each.name for each in MUTANTS])
    return int(any(each.what is None and each.by_trace is None for each in caught))


if __name__ == "__main__":
    sys.exit(main())
