#!/bin/sh
# run.sh [--set key=value]...
# Trains a character model on the project's own sources in a tenth of the bytes that storing every step takes, and lets
# it write. Settings go to the training. BACKSWEEP_PROGRAM, BACKSWEEP_DEMO_FOLDER: other places than build/.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
program=${BACKSWEEP_PROGRAM:-build/release/bin/backsweep}
folder=${BACKSWEEP_DEMO_FOLDER:-build/demo}
config=experiments/demo/demo.toml
corpus=$folder/corpus.txt

mkdir -p "$folder"
rm -rf "$folder/run" "$folder/stored"
# Printable ASCII only, so that the vocabulary, and with it every byte count, does not change with the sources.
find include src tests experiments -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' \) |
    LC_ALL=C sort | xargs cat | LC_ALL=C tr -cd '\n -~' >"$corpus"
set -- --set data.path="$corpus" "$@"

echo "== The text: $(wc -c <"$corpus" | tr -d ' ') bytes of the project's own sources."
echo
echo "== Storing every step of a window of 2048 does not fit into the limit:"
refused=0
"$program" train "$config" --out "$folder/stored" --set schedule.family=store_all "$@" || refused=$?
[ "$refused" -eq 2 ] || { echo "run.sh: this was expected to be refused (exit code 2), but it ended with $refused" >&2; exit 1; }
echo
echo "== What does, and what it costs (three updates of each, measured here and now):"
"$program" plan "$config" --measure 3 "$@"
echo
echo "== Training in the limit, by full back-propagation through all 2048 steps:"
"$program" train "$config" --out "$folder/run" "$@"
echo
echo "== What the model writes:"
"$program" sample "$folder/run" --bytes 600 --temperature 0.7 --seed 1 --prompt "/// "
