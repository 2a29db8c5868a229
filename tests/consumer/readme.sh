#!/bin/sh
# readme.sh README FOLDER: the first C++ and C blocks of README are FOLDER/readme_example.* without its two lines of head.
# SPDX-License-Identifier: MIT
set -eu
for language in cpp c; do
    block=$(awk -v fence="\`\`\`$language" '$0 == "```" { inside = 0 } inside { print } $0 == fence { inside = 1 }' "$1")
    source=$(tail -n +3 "$2/readme_example.$language")
    [ -n "$block" ] && [ "$block" = "$source" ] && continue
    echo "the block $language of $1 is not $2/readme_example.$language; copy one over the other"
    exit 1
done
