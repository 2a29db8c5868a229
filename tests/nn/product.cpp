// Products in every kind of vectors that this processor has: the bits of one chain of fused multiply-adds per element,
// whatever the shape, the packing and the vectors.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE product
#include "support/unit_test.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/random.hpp"
#include "each_kind.hpp"
#include "nn/cpu/product.hpp"
#include "nn/cpu/team.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

template <class Real>
std::vector<Real> numbers(Index count, std::uint32_t stream) {
    std::vector<Real> values(static_cast<std::size_t>(count));
    const Random random(3, stream);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<Real>(random.normal(0, k));
    return values;
}

/// What a product is: column-major, op 'N' or 'T'.
template <class Real>
struct Case {
    char op_a, op_b;
    Index rows, cols, inner, ld_a, ld_b, ld_c;
    Real beta;
    std::vector<Real> A, B, C;

    Case(char a, char b, Index rows_, Index cols_, Index inner_, Index more, Real beta_)
        : op_a(a),
          op_b(b),
          rows(rows_),
          cols(cols_),
          inner(inner_),
          ld_a((a == 'N' ? rows : inner) + more),
          ld_b((b == 'N' ? inner : cols) + more),
          ld_c(rows + more),
          beta(beta_),
          A(numbers<Real>(ld_a * (a == 'N' ? inner : rows) + 1, 1)),
          B(numbers<Real>(ld_b * (b == 'N' ? cols : inner) + 1, 2)),
          C(numbers<Real>(ld_c * cols, 3)) {
        // With beta 0, C is not read.
        if (beta == Real{0})
            for (Real& c : C) c = std::numeric_limits<Real>::quiet_NaN();
    }

    std::vector<Real> by_loops(bool fused) const {
        std::vector<Real> all = C;
        for (Index j = 0; j < cols; ++j)
            for (Index i = 0; i < rows; ++i) {
                Real sum = beta == Real{0} ? Real{0} : C[static_cast<std::size_t>(i + j * ld_c)];
                for (Index k = 0; k < inner; ++k) {
                    const Real a = A[static_cast<std::size_t>(op_a == 'N' ? i + k * ld_a : k + i * ld_a)],
                               b = B[static_cast<std::size_t>(op_b == 'N' ? k + j * ld_b : j + k * ld_b)];
                    sum = fused ? std::fma(a, b, sum) : a * b + sum;
                }
                all[static_cast<std::size_t>(i + j * ld_c)] = sum;
            }
        return all;
    }
    std::vector<Real> by_product() const {
        std::vector<Real> all = C;
        cpu::product(op_a, op_b, rows, cols, inner, A.data(), ld_a, B.data(), ld_b, beta, all.data(), ld_c);
        return all;
    }
    /// op_b is 'N'.
    std::vector<Real> by_packing() const {
        std::vector<Real> all = C;
        Buffer<Real> packed(cpu::packed_size<Real>(rows, inner), Kind::workspace);
        packed.fill(std::numeric_limits<Real>::quiet_NaN());
        cpu::pack(op_a, rows, inner, A.data(), ld_a, packed.data());
        cpu::packed_product(rows, cols, inner, packed.data(), B.data(), ld_b, beta, all.data(), ld_c);
        return all;
    }
};

template <class Real>
bool equal(const std::vector<Real>& a, const std::vector<Real>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

using Reals = std::tuple<float, double>;

}  // namespace

// Rows: below, at and above one panel and several; columns: every width of a tile and more than the second cache's
// block; inner: nothing, one, and more than a block.
BOOST_AUTO_TEST_CASE_TEMPLATE(every_element_is_one_chain_of_multiply_adds, Real, Reals) {
    with_each_kind([](bool fused) {
        Index cases = 0;
        for (const Index rows : {1, 8, 17, 33, 150})
            for (const Index cols : {1, 2, 3, 4, 5, 6, 8, 13, 200})
                for (const Index inner : {0, 1, 19, 300}) {
                    if (rows * cols * inner > 600'000) continue;
                    for (const char op_a : {'N', 'T'})
                        for (const char op_b : {'N', 'T'})
                            for (const Index more : {0, 5}) {
                                const Case<Real> c(op_a, op_b, rows, cols, inner, more, static_cast<Real>(cases % 2));
                                const std::vector<Real> wanted = c.by_loops(fused);
                                const auto where = [&] {
                                    return std::to_string(rows) + " x " + std::to_string(cols) + " x " +
                                           std::to_string(inner) + ", ops " + op_a + op_b;
                                };
                                if (!equal(c.by_product(), wanted)) BOOST_ERROR("product: " << where());
                                for (int way = 0; op_b == 'N' && way < 2; ++way)  // panels up, panels down
                                    if (!equal(c.by_packing(), wanted)) BOOST_ERROR("packed: " << where());
                                ++cases;
                            }
                }
        BOOST_TEST(cases > 1000);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(sums_may_begin_with_a_column, Real, Reals) {
    with_each_kind([](bool) {
        for (const Index rows : {5, 40})
            for (const Index cols : {1, 4, 21})
                for (const Index inner : {0, 9, 260}) {
                    const Case<Real> c('T', 'N', rows, cols, inner, 3, Real{0});
                    const std::vector<Real> column = numbers<Real>(rows, 5);
                    Case<Real> begun('T', 'N', rows, cols, inner, 3, Real{1});
                    for (Index j = 0; j < cols; ++j) std::copy_n(column.data(), rows, begun.C.data() + j * begun.ld_c);
                    const std::vector<Real> wanted = begun.by_product();
                    std::vector<Real> got = begun.C, packed_got = begun.C;
                    for (std::vector<Real>* all : {&got, &packed_got})
                        for (Index j = 0; j < cols; ++j) std::fill_n(all->data() + j * c.ld_c, rows, Real{-1});
                    cpu::product('T', 'N', rows, cols, inner, c.A.data(), c.ld_a, c.B.data(), c.ld_b, Real{0},
                                 got.data(), c.ld_c, column.data());
                    Buffer<Real> packed(cpu::packed_size<Real>(rows, inner), Kind::workspace);
                    cpu::pack('T', rows, inner, c.A.data(), c.ld_a, packed.data());
                    cpu::packed_product(rows, cols, inner, packed.data(), c.B.data(), c.ld_b, Real{0},
                                        packed_got.data(), c.ld_c, column.data());
                    BOOST_TEST(equal(got, wanted));
                    BOOST_TEST(equal(packed_got, wanted));
                }
    });
}

// Left sides that share a block of rows, that end in one, and that are longer than one.
BOOST_AUTO_TEST_CASE_TEMPLATE(several_left_sides_are_products_of_their_own, Real, Reals) {
    with_each_kind([](bool) {
        for (const auto& [first, second, third] :
             {std::array<Index, 3>{16, 40, 7}, {500, 30, 1}, {3, 700, 520}, {512, 512, 16}})
            for (const Index inner : {5, 300}) {
                const Case<Real> one('N', 'T', first, 13, inner, 2, Real{1}),
                    two('N', 'T', second, 13, inner, 2, Real{1}), three('N', 'T', third, 13, inner, 2, Real{1});
                std::vector<Real> C[]{one.C, two.C, three.C};
                std::vector<cpu::Outer<Real>> outers;
                const Case<Real>* const cases[]{&one, &two, &three};
                for (std::size_t k = 0; k < 3; ++k)
                    outers.push_back({cases[k]->rows, cases[k]->A.data(), cases[k]->ld_a, C[k].data(), cases[k]->ld_c});
                cpu::add_outers(3, outers.data(), 13, inner, one.B.data(), one.ld_b);
                for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(equal(C[k], cases[k]->by_product()));
            }
    });
}

// Products that are cut in rows and in columns, at whole tiles and behind them, and one that is too small for it.
BOOST_AUTO_TEST_CASE_TEMPLATE(a_team_changes_no_bit, Real, Reals) {
    struct Shape {
        Index rows, cols, inner;
    };
    constexpr Shape shapes[]{{1203, 1, 301}, {1030, 2, 257}, {700, 5, 333},  {517, 77, 33},
                             {41, 1301, 30}, {130, 301, 40}, {1, 1900, 517}, {33, 9, 40}};
    for (const auto& [rows, cols, inner] : shapes)
        for (const char op_a : {'N', 'T'})
            for (const char op_b : {'N', 'T'}) {
                const Case<Real> c(op_a, op_b, rows, cols, inner, 3, Real{1}),
                    more(op_a, op_b, 300 + rows % 7, cols, inner, 3, Real{1});
                const auto all = [&] {
                    std::vector<std::vector<Real>> results{c.by_product()};
                    if (op_b == 'N') results.push_back(c.by_packing());
                    if (op_a == 'T' || op_b == 'N') return results;
                    std::vector<Real> C[]{c.C, more.C, c.C};
                    const cpu::Outer<Real> outers[]{{c.rows, c.A.data(), c.ld_a, C[0].data(), c.ld_c},
                                                    {more.rows, more.A.data(), more.ld_a, C[1].data(), more.ld_c},
                                                    {c.rows, c.A.data(), c.ld_a, C[2].data(), c.ld_c}};
                    cpu::add_outers(3, outers, c.cols, c.inner, c.B.data(), c.ld_b);
                    results.insert(results.end(), std::begin(C), std::end(C));
                    return results;
                };
                with_each_kind([&](bool) {
                    const auto alone = all();
                    for (const Index members : {1, 2, 3, 4}) {
                        cpu::Team team(members);
                        const cpu::TeamScope scope(&team);
                        const auto together = all();
                        for (std::size_t k = 0; k < alone.size(); ++k)
                            if (!equal(together[k], alone[k]))
                                BOOST_ERROR("result " << k << " of " << c.rows << " x " << c.cols << " x " << c.inner
                                                      << ", ops " << op_a << op_b << ", " << members << " members");
                    }
                });
            }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_panel_that_is_not_full_is_zero_behind_its_rows, Real, Reals) {
    constexpr Index width = cpu::panel_rows<Real>, rows = width + 3, inner = 5;
    const std::vector<Real> W = numbers<Real>(rows * inner, 1);
    for (const char op : {'N', 'T'}) {
        Buffer<Real> packed(cpu::packed_size<Real>(rows, inner), Kind::workspace);
        BOOST_TEST(packed.size() == 2 * width * inner);
        packed.fill(std::numeric_limits<Real>::quiet_NaN());
        cpu::pack(op, rows, inner, W.data(), op == 'N' ? rows : inner, packed.data());
        for (Index r = 0; r < 2 * width; ++r)
            for (Index k = 0; k < inner; ++k) {
                const Real wanted =
                    r >= rows ? Real{0} : W[static_cast<std::size_t>(op == 'N' ? r + k * rows : k + r * inner)];
                BOOST_TEST(packed[(r / width * inner + k) * width + r % width] == wanted);
            }
    }
}

BOOST_AUTO_TEST_CASE(numbers_that_are_not_finite_stay_in_their_rows_and_columns) {
    const double infinity = std::numeric_limits<double>::infinity();
    Case<double> c('T', 'N', 20, 9, 40, 0, 0.0);
    c.A[40 * 3 + 7] = infinity;  // row 3
    c.B[40 * 5 + 2] = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> C = c.by_product();
    for (Index j = 0; j < 9; ++j)
        for (Index i = 0; i < 20; ++i)
            BOOST_TEST(std::isfinite(C[static_cast<std::size_t>(i + 20 * j)]) == (i != 3 && j != 5));
}
