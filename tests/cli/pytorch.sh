#!/bin/sh
# pytorch.sh BACKSWEEP SOURCE FOLDER: a language model goes from PyTorch to Backsweep, is trained there, and goes back; both
# must find the same loss before and after.
# SPDX-License-Identifier: MIT
set -eu
backsweep=$1 source=$2 folder=$3
python=/usr/bin/python3
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: no python3-torch"
    exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cat "$source"/README.md "$source"/CHANGELOG.md | head -c 9000 >text.txt
model=$source/experiments/examples/pytorch/language_model.py
for case in "lstm float 1e-6" "gru float 1e-6" "lstm double 1e-12" "gru double 1e-12" "lstm double 1e-12 tied"; do
    set -- $case
    cell=$1 precision=$2 tolerance=$3 tied=${4:-}
    name=$cell-$precision$tied
    cat >"$name.toml" <<EOF
data.kind = "text"
data.path = "text.txt"
data.split = [50, 25, 25]
data.batch = 4
data.window = 20
model.kind = "$cell"
model.embedding = 9
model.hidden = 9
model.layers = 2
model.tied = $([ -n "$tied" ] && echo true || echo false)
model.weights = "$name.in.safetensors"
optimizer.rate = 0.005
train.updates = 40
train.precision = "$precision"
output.folder = "$name"
EOF
    options="--embedding 9 --hidden 9 --layers 2 --cell $cell --batch 4 --part 50 75 ${tied:+--tied}"
    [ "$precision" = float ] || options="$options --double"
    # shellcheck disable=SC2086
    torch_loss() { "$python" "$model" loss "$1" text.txt $options; }
    # shellcheck disable=SC2086
    "$python" "$model" make "$name.in.safetensors" text.txt $options
    "$backsweep" train "$name.toml" --set train.updates=1 --set optimizer.rate=1e-300 --out "$name.start" >/dev/null
    "$backsweep" train "$name.toml" >/dev/null
    "$backsweep" export "$name" "$name.out.safetensors" >/dev/null
    loss() { "$backsweep" eval "$1" --part valid --json | "$python" -c 'import json, sys; print(repr(json.load(sys.stdin)["valid"]["bits_per_character"]))'; }
    # shellcheck disable=SC2046
    "$python" - "$name" $tolerance $(torch_loss "$name.in.safetensors") $(loss "$name.start") $(torch_loss "$name.out.safetensors") $(loss "$name") <<'EOF'
import sys
name, tolerance = sys.argv[1], float(sys.argv[2])
before, start, after, end = map(float, sys.argv[3:])
print(f"{name}: PyTorch {before} and {after}, backsweep {start} and {end} bits")
assert abs(before - start) <= tolerance * before, "the weights that came in"
assert abs(after - end) <= tolerance * after, "the weights that went out"
assert end < start - 0.3, "nothing was learnt"
EOF
done
