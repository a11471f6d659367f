# SPDX-License-Identifier: Apache-2.0
"""`python -m assay`, and `assay` where the package is installed: the program, and what Python alone does (judge)."""
import os
import sys


def main():
    from . import program

    try:
        path = program.find_program()
        os.execv(path, [path, *sys.argv[1:]])
    except (program.ProgramError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
