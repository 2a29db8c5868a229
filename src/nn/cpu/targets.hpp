// Compiles the file that includes this once for each kind of vectors, by Highway: AVX-512, AVX2 with FMA, SSE4, none.
// HWY_TARGET_INCLUDE names the file. No include guard: the file includes itself.
// SPDX-License-Identifier: MIT
#include "nn/cpu/vector_kinds.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>
