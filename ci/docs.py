#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages of the tree (*.md), and what they are made of.

docs.py check                     links, results, figures and pictures: everything that needs Python alone
docs.py links | results           links, headings and lengths; results of benchmarks name device, date and commit
docs.py figures [PAGE...]         figures of tables are those of committed results
docs.py pictures [--write]        pictures are what their data says
docs.py blocks [--list] [--keep FOLDER] [PAGE...]    runs the blocks of code in pages
docs.py properties ASSAY [--write]                   the table of properties in properties/PROPERTIES.md
docs.py site OUT                  collects the pages for ci/site.sh

Prints every complaint; exit code 1 when there is one."""
import argparse
import pathlib
import sys

from pages import blocks, figures, links, pictures, properties, results, site

EVERY = {"links": links.check, "results": results.check, "figures": figures.check, "pictures": pictures.check}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", *EVERY, "blocks", "properties", "site"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true", help="what would be done with each block")
    parser.add_argument("--keep", help="a folder for the homes of the sessions, which then stay")
    asked = parser.parse_args()
    if asked.command == "blocks":
        sys.exit(blocks.main(asked.names, asked.list, asked.keep))
    if asked.command == "check":
        complaints = [line for check in EVERY.values() for line in check()]
    elif asked.command == "figures":
        complaints = list(figures.check([pathlib.Path(name) for name in asked.names]))
    elif asked.command == "pictures" and asked.write:
        complaints = pictures.write()
    elif asked.command == "properties":
        complaints = list(properties.check(asked.names[0], asked.write))
    elif asked.command == "site":
        complaints = site.collect(pathlib.Path(asked.names[0]))
    else:
        complaints = list(EVERY[asked.command]())
    print("\n".join(complaints) if complaints else f"docs.py {asked.command}: ok")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
