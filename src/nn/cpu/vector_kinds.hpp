// Kinds of vectors that kernels are not compiled for: SSE4 and AVX-512 without the extensions do as well. Before
// Highway.
// SPDX-License-Identifier: MIT
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
