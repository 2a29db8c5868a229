// The flags a numeric library passes on keep a * b + c uncontracted, even for processors with fused instructions:
// fl(a * a) - a * a is then 0, not the rounding error. Compiled once for each numeric library, with -mfma.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE house_contraction
#include "support/unit_test.hpp"

#include <cmath>

namespace {

template <class Real>
Real residue(Real a, Real& product) {
    product = a * a;
    return a * a - product;
}

template <class Real>
Real multiply_add(Real a, Real b, Real c) {
    return a * b + c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_are_rounded_before_they_are_added) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("fma")) {
        BOOST_TEST_MESSAGE("this processor has no fused instructions to contract into");
        return;
    }
#endif
    for (int i = 1; i <= 100; ++i) {
        volatile double wide = 1.0 + 1.0 / (3.0 * i);
        volatile float narrow = static_cast<float>(wide);
        double wide_product = 0;
        float narrow_product = 0;
        BOOST_TEST(residue<double>(wide, wide_product) == 0.0);
        BOOST_TEST(residue<float>(narrow, narrow_product) == 0.0F);
        BOOST_TEST(multiply_add<double>(wide, wide, -wide_product) == 0.0);
        BOOST_TEST(multiply_add<float>(narrow, narrow, -narrow_product) == 0.0F);
    }
}

BOOST_AUTO_TEST_CASE(a_fused_product_would_show) {
    volatile double a = 1.0 + 1.0 / 3.0;
    const double product = a * a;
    BOOST_TEST(std::fma(a, a, -product) != 0.0);
}
