#!/bin/sh
# run.sh [options of `backsweep train`]
# BACKSWEEP_DATA: the folder of data sets, relative to the source folder; BACKSWEEP_PROGRAM: another program than build/release's.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
program=${BACKSWEEP_PROGRAM:-build/release/bin/backsweep}
data=${BACKSWEEP_DATA:-../shared/data}
exec "$program" train experiments/tinyshakespeare/tinyshakespeare.toml --set data.path="$data/tinyshakespeare/input.txt" "$@"
