#!/bin/sh
# manual.sh MANUAL EXAMPLE: the blocks of code in MANUAL are the files of EXAMPLE, without their first line.
# SPDX-License-Identifier: MIT
set -eu

for row in "c 1 c/pull.c" "c 2 c/push.c" "fortran 1 fortran/pull.f90"; do
    # shellcheck disable=SC2086
    set -- "$1" "$2" $row
    block=$(awk -v fence="\`\`\`$3" -v wanted="$4" '
        $0 == "```" { inside = 0 } inside && found == wanted { print } $0 == fence { inside = 1; ++found }' "$1")
    source=$(tail -n +2 "$2/$5" | grep -v 'clang-format')
    [ -n "$block" ] && [ "$block" = "$source" ] && continue
    echo "block $4 of $3 in $1 is not $2/$5; copy one over the other"
    exit 1
done
