// Tests that run in every kind of vectors that this processor has and the library was compiled for.
// SPDX-License-Identifier: MIT
#pragma once

#include "support/unit_test.hpp"

#include "nn/cpu/vector_kinds.hpp"

#include <hwy/highway.h>

#include <cstdint>

namespace backsweep::test {

/// f(fused) with each kind of vectors alone; fused: it rounds a multiplication and an addition once.
template <class F>
void with_each_kind(F f) {
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        const std::int64_t target = left & -left;
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(target);
        BOOST_TEST_CONTEXT("vectors " << hwy::TargetName(target)) {
            f(target <= HWY_AVX2);
        }
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
}

}  // namespace backsweep::test
