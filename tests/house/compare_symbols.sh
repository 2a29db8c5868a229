#!/bin/sh
# compare_symbols.sh LIBRARY LIST [--update]
# Compares the functions and variables a shared library exports with the list in the project. Weak symbols and type
# information differ between compilers: they need only be ours. Prints the differences; --update rewrites the list.
# SPDX-License-Identifier: MIT
set -eu
library=$1
list=$2
exported=$(mktemp)
trap 'rm -f "$exported" "$exported.strong" "$exported.foreign"' EXIT

nm -D --defined-only -C "$library" | sed -E 's/^[0-9a-f]* *//' | LC_ALL=C sort -u >"$exported"

# Ours: C names backsweep_*, names in namespace backsweep, and the type information that belongs to them.
ours='^[A-Za-z] (backsweep_|((vtable|typeinfo|typeinfo name|VTT|guard variable|construction vtable) for )?([^<(]* )?backsweep::)'
grep -Ev "$ours" "$exported" >"$exported.foreign" || true
if [ -s "$exported.foreign" ]; then
    echo "$library exports symbols that are not in namespace backsweep:"
    cat "$exported.foreign"
    exit 1
fi

grep -E '^[TDBR] ' "$exported" | sed 's/^. //' | grep -Ev '^(vtable|VTT|typeinfo|typeinfo name) for ' | LC_ALL=C sort -u >"$exported.strong" || true
if [ "${3:-}" = --update ]; then
    cp "$exported.strong" "$list"
    exit 0
fi
if ! diff -u "$list" "$exported.strong"; then
    echo "The exported symbols changed. If that is wanted: scripts/update_symbols"
    exit 1
fi
echo "$(wc -l <"$exported.strong") symbols, as listed"
