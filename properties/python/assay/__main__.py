# SPDX-License-Identifier: Apache-2.0
"""`python -m assay`, and `assay` where the package is installed: `judge` here, everything else by the program."""
import os
import sys


def main():
    from . import program

    if sys.argv[1:2] == ["judge"]:
        from . import judge_command

        sys.exit(judge_command.main(sys.argv[2:]))
    try:
        path = program.find_program()
        os.execv(path, [path, *sys.argv[1:]])
    except (program.ProgramError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
