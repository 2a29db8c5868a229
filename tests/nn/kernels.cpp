// The fast float functions: error against double, saturation, NaN, and the same bits in vector loops and tails.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE kernels
#include "support/unit_test.hpp"

#include "each_kind.hpp"
#include "nn/cpu/kernels.hpp"
#include "support/compare.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

/// Every 1009th float in +-100: all exponents, about 4.4 million numbers.
std::vector<float> floats() {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(100.0F); bits += 1009)
        for (const float sign : {1.0F, -1.0F}) values.push_back(sign * std::bit_cast<float>(bits));
    return values;
}

struct Errors {
    double absolute = 0.0, relative = 0.0, units = 0.0;  // units in the last place of the result
    void add(float got, double wanted) {
        double error = std::abs(static_cast<double>(got) - wanted);
        if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
        absolute = std::fmax(absolute, error);
        const auto size = static_cast<float>(std::abs(wanted));
        if (size >= std::numeric_limits<float>::min())
            units = std::fmax(units, error / static_cast<double>(std::nextafter(size, 2.0F * size) - size));
        if (std::abs(wanted) > 1e-36) relative = std::fmax(relative, error / std::abs(wanted));
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(sigmoid_and_tanh_keep_their_promise) {
    with_each_kind([](bool) {
        const std::vector<float> x = floats();
        std::vector<float> s = x, t = x;
        cpu::sigmoid(static_cast<Index>(s.size()), s.data());
        cpu::tanh(static_cast<Index>(t.size()), t.data());
        Errors sigmoid, tanh;
        for (std::size_t k = 0; k < x.size(); ++k) {
            sigmoid.add(s[k], 1.0 / (1.0 + std::exp(-static_cast<double>(x[k]))));
            tanh.add(t[k], std::tanh(static_cast<double>(x[k])));
            if (!(s[k] >= 0.0F && s[k] <= 1.0F && std::abs(t[k]) <= 1.0F))
                BOOST_TEST(false, "out of range at " << x[k]);
        }
        BOOST_TEST(sigmoid.absolute < 9e-8);
        BOOST_TEST(tanh.absolute < 9e-8);
        BOOST_TEST(tanh.relative < 2.1e-7);
        BOOST_TEST(sigmoid.units <= 2.0);
        BOOST_TEST(tanh.units <= 2.0);
        BOOST_TEST_MESSAGE("errors: sigmoid " << sigmoid.absolute << ", tanh " << tanh.absolute << ", relative "
                                              << tanh.relative << ", units " << sigmoid.units << " and " << tanh.units);
    });
}

BOOST_AUTO_TEST_CASE(they_saturate_and_let_nan_through) {
    with_each_kind([](bool) {
        const float infinity = std::numeric_limits<float>::infinity();
        const std::vector<float> x{infinity, -infinity, 800.0F, -800.0F, 3e38F, -3e38F, 0.0F, -0.0F};
        const std::vector<float> sigmoid{1, 0, 1, 0, 1, 0, 0.5F, 0.5F}, tanh{1, -1, 1, -1, 1, -1, 0.0F, -0.0F};
        std::vector<float> s = x, t = x;
        cpu::sigmoid(8, s.data());
        cpu::tanh(8, t.data());
        BOOST_TEST(same_bits(s, sigmoid));
        BOOST_TEST(same_bits(t, tanh));
        std::vector<float> n(5, std::numeric_limits<float>::quiet_NaN()),
            m(5, -std::numeric_limits<float>::quiet_NaN());
        cpu::sigmoid(5, n.data());
        cpu::tanh(5, m.data());
        for (std::size_t k = 0; k < 5; ++k) BOOST_TEST((std::isnan(n[k]) && std::isnan(m[k])));
    });
}

BOOST_AUTO_TEST_CASE(vector_loops_and_tails_have_the_same_bits) {
    const auto check = [](auto real) {
        using Real = decltype(real);
        std::vector<Real> x;
        for (int k = 0; k < 67; ++k) x.push_back(static_cast<Real>(std::sin(1.7 * k) * 9.0));
        for (const auto f : {&cpu::sigmoid<Real>, &cpu::tanh<Real>}) {
            std::vector<Real> alone = x;
            for (Real& v : alone) f(1, &v);
            for (Index n = 1; n <= 67; ++n)
                for (Index first = 0; first < 4 && first + n <= 67; ++first) {
                    std::vector<Real> some = x;
                    f(n, some.data() + first);
                    BOOST_TEST(same_bits(std::vector<Real>(some.begin() + first, some.begin() + first + n),
                                         std::vector<Real>(alone.begin() + first, alone.begin() + first + n)));
                }
        }
    };
    with_each_kind([&](bool) {
        check(float{});
        check(double{});
    });
}

// A cell of many units and one of each unit alone.
BOOST_AUTO_TEST_CASE(units_of_a_cell_have_the_bits_that_they_have_alone) {
    const auto check = [](auto real) {
        using Real = decltype(real);
        constexpr Index most = 37;
        std::vector<Real> x;
        for (int k = 0; k < 16 * most; ++k) x.push_back(static_cast<Real>(std::sin(0.7 + 1.3 * k) * 4.0));
        // blocks [block][unit] of a cell of `hidden` units from unit `first` on
        const auto cut = [&](Index blocks, Index offset, Index first, Index hidden) {
            std::vector<Real> part;
            for (Index b = 0; b < blocks; ++b)
                for (Index k = 0; k < hidden; ++k)
                    part.push_back(x[static_cast<std::size_t>((offset + b) * most + first + k)]);
            return part;
        };
        // every array that a cell assigns, [array][unit]
        const auto all = [&](Index first, Index hidden) {
            std::vector<std::vector<Real>> made;
            const auto n = static_cast<std::size_t>(hidden);
            std::vector<Real> z = cut(4, 0, first, hidden), c(n), h(n), dz(4 * n), h_again(n),
                              dc = cut(1, 8, first, hidden);
            const std::vector<Real> before = cut(1, 4, first, hidden), dy = cut(1, 5, first, hidden),
                                    dh = cut(1, 6, first, hidden);
            cpu::lstm_cell(hidden, z.data(), before.data(), c.data(), h.data());
            cpu::lstm_cell_reverse(hidden, z.data(), before.data(), c.data(), dy.data(), dh.data(), dc.data(),
                                   dz.data(), h_again.data());
            BOOST_TEST(same_bits(h, h_again));
            std::vector<Real> gates = cut(3, 0, first, hidden), state(n);
            cpu::gru_cell(hidden, gates.data(), cut(3, 9, first, hidden).data(), before.data(), state.data());
            std::vector<Real> ds(3 * n), dp = cut(3, 6, first, hidden), dh_before = dh;
            const std::vector<Real> p_n(dp.begin() + 2 * hidden, dp.end());
            cpu::gru_cell_reverse(hidden, gates.data(), p_n.data(), before.data(), dy.data(), dh_before.data(),
                                  ds.data(), dp.data());
            std::vector<Real> ds_in_place = gates, dp_in_place = cut(3, 6, first, hidden), dh_again = dh;
            cpu::gru_cell_reverse(hidden, ds_in_place.data(), dp_in_place.data() + 2 * hidden, before.data(), dy.data(),
                                  dh_again.data(), ds_in_place.data(), dp_in_place.data());
            BOOST_TEST(same_bits(ds, ds_in_place));
            BOOST_TEST(same_bits(dp, dp_in_place));
            BOOST_TEST(same_bits(dh_before, dh_again));
            for (const std::vector<Real>* array : {&z, &c, &h, &dz, &dc, &gates, &state, &ds, &dp, &dh_before})
                for (std::size_t from = 0; from < array->size(); from += n)
                    made.emplace_back(array->begin() + static_cast<std::ptrdiff_t>(from),
                                      array->begin() + static_cast<std::ptrdiff_t>(from + n));
            return made;
        };
        for (const Index hidden : {1, 7, 8, 9, 16, 31, 37}) {
            const auto together = all(0, hidden);
            for (Index k = 0; k < hidden; ++k) {
                const auto alone = all(k, 1);
                for (std::size_t a = 0; a < alone.size(); ++a)
                    BOOST_TEST(same_bits(alone[a], std::vector<Real>{together[a][static_cast<std::size_t>(k)]}));
            }
        }
    };
    with_each_kind([&](bool) {
        check(float{});
        check(double{});
    });
}

BOOST_AUTO_TEST_CASE(softmax_sums_to_one_at_every_length) {
    for (Index n = 1; n <= 40; ++n) {
        std::vector<float> x, p(static_cast<std::size_t>(n));
        for (Index k = 0; k < n; ++k) x.push_back(static_cast<float>(std::cos(2.3 * static_cast<double>(k)) * 20.0));
        const auto [max, log_sum] = cpu::softmax(n, x.data(), p.data());
        double largest = -1e9, sum = 0.0;
        for (const float v : x) largest = std::fmax(largest, static_cast<double>(v));
        for (const float v : x) sum += std::exp(static_cast<double>(v) - largest);
        BOOST_TEST(static_cast<double>(max) == largest);
        BOOST_TEST(std::abs(static_cast<double>(log_sum) - std::log(sum)) < 3e-7);
        std::vector<double> wanted;
        for (const float v : x) wanted.push_back(std::exp(static_cast<double>(v) - largest) / sum);
        BOOST_TEST(compare(p, wanted, {3e-7, 0.0}));
    }
}

BOOST_AUTO_TEST_CASE(products_and_sums_are_rounded_apart) {
    const auto check = [](auto real) {
        using Real = decltype(real);
        for (int k = 1; k <= 1000; ++k) {
            const Real a = static_cast<Real>(std::sqrt(static_cast<double>(k)) + 1.0 / 3.0);
            const volatile Real square = a * a;
            BOOST_TEST(cpu::multiply_add<Real>(a, a, -square) == Real{0});
        }
    };
    with_each_kind([&](bool) {
        check(float{});
        check(double{});
    });
}
