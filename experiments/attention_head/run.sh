#!/bin/sh
# Three seeds with the head and without it; prints the bits per character of the validation part, pair by pair.
# BACKSWEEP_DATA: the folder of data sets, relative to the source folder; BACKSWEEP_PROGRAM: another program than build/release's.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
program=${BACKSWEEP_PROGRAM:-build/release/bin/backsweep}
data=${BACKSWEEP_DATA:-../shared/data}
out=${1:-build/attention_head}
mkdir -p "$out"
for seed in 1 2 3; do
    for layer in 0 2; do
        "$program" train experiments/attention_head/attention_head.toml --set data.path="$data/enwik8_slice/enwik8_small.xml" \
            --set train.seed=$seed --set model.attention_layer=$layer $(test $layer = 0 || echo --set model.memory=128) \
            --out "$out/seed$seed.layer$layer" > "$out/seed$seed.layer$layer.log" 2>&1 &
    done
    wait
    for layer in 0 2; do
        echo "seed $seed, attention layer $layer:"
        "$program" eval "$out/seed$seed.layer$layer"
    done
done
