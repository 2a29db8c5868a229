#!/bin/sh
# added_lines.sh FOLDER: how many lines of code the examples' pull and push have more than stored; README.md tells them.
# SPDX-License-Identifier: MIT
set -eu
cd "$1"

lines() {
    grep -cvE '^ *($|//|!|/\*.*\*/$)' "$1"
}

told() {
    grep -F "| $1 |" README.md | cut -d '|' -f "$2" | grep -oE '[0-9]+' | head -n 1
}

wrong=0
for row in "C c c" "C++ cpp cpp" "Fortran fortran f90"; do
    # shellcheck disable=SC2086
    set -- $row
    stored=$(lines "$2/stored.$3")
    pull=$(($(lines "$2/pull.$3") - stored))
    push=$(($(lines "$2/push.$3") - stored))
    echo "$1: pull $pull, push $push lines more than the $stored that store everything"
    if [ "$pull" -gt 10 ] || [ "$push" -gt 10 ]; then
        echo "more than 10"
        wrong=1
    fi
    if [ "$pull" != "$(told "$1" 3)" ] || [ "$push" != "$(told "$1" 4)" ]; then
        echo "README.md tells other numbers"
        wrong=1
    fi
done
exit $wrong
