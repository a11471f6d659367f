#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launcher_test.py NINJA BUILD TARGET: no object of the target comes out of a compiler's cache.

Its headers shadow those of the sources. A cache that has an object from before they did hands that out, and the mutant
that is not in it survives.
"""
import subprocess
import sys


def main():
    ninja, build, target = sys.argv[1:]
    said = subprocess.run([ninja, "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True)
    own = [line for line in said.stdout.splitlines() if f"/{target}.dir/" in line and " -c " in line]
    cached = [line.rsplit(" -c ", 1)[1] for line in own if "ccache" in line.split(" -c ")[0]]
    if not own or cached:
        sys.exit(f"{target}: {len(own)} objects, out of the cache: {', '.join(cached) or 'none'}")
    print(f"{len(own)} objects of {target}, each compiled")


main()
