#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks one rule of the source tree, and says where it is broken.

    check.py RULE ROOT                              layers, doors, spdx, length, ... (rules.py)
    check.py headers ROOT COMPILER [FLAG...]        each header compiles alone
    check.py symbols LIBRARY LIST [--update]        exported symbols equal a list
"""

import sys

import rules


def complaints_of(arguments):
    rule = arguments[0] if arguments else ""
    if rule in rules.TREE_RULES and len(arguments) == 2:
        return rules.TREE_RULES[rule](arguments[1])
    if rule == "headers" and len(arguments) >= 3:
        return rules.headers(arguments[1], [arguments[2]], arguments[3:])
    if rule == "symbols" and len(arguments) == 4 and arguments[3] == "--update":
        with open(arguments[2], "w", encoding="utf-8") as file:
            file.write("# Made by: check.py symbols LIBRARY LIST --update\n")
            file.write("".join(f"{name}\n" for name in rules.exported(arguments[1])))
        return []
    if rule == "symbols" and len(arguments) == 3:
        return rules.symbols(arguments[1], arguments[2])
    sys.exit(__doc__)


def main():
    complaints = list(complaints_of(sys.argv[1:]))
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


main()
