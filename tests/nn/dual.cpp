// Dual numbers: every function against its derivative, rules of arithmetic, comparisons; products of dual matrices
// against plain loops; the fast functions of the CPU's kernels.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE dual
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/nn/dual.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/multiply.hpp"
#include "support/compare.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using D = Dual<double>;

static_assert(std::is_trivially_copyable_v<D> && std::is_trivially_default_constructible_v<D> && sizeof(D) == 16);
static_assert(is_dual<D> && !is_dual<double>);
static_assert(!std::is_convertible_v<D, double>, "a tangent is dropped only where that is said");

struct Function {
    std::string name;
    std::function<D(D)> f;
    std::function<double(double)> value, derivative;
    std::vector<double> at;
};

/// Numbers with a tangent of their own, which follow (seed, stream).
std::vector<D> duals(Index count, std::uint32_t stream) {
    const Random random(20240607, stream);
    std::vector<D> numbers;
    for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k)
        numbers.push_back({2.0 * random.uniform(0, k) - 1.0, 2.0 * random.uniform(1, k) - 1.0});
    return numbers;
}

void check_near(D got, double value, double tangent, double scale = 1.0) {
    BOOST_CHECK_MESSAGE(std::abs(got.value - value) <= 1e-15 * std::fmax(scale, std::abs(value)),
                        got.value << " is not " << value);
    BOOST_CHECK_MESSAGE(std::abs(got.tangent - tangent) <= 2e-15 * std::fmax(scale, std::abs(tangent)),
                        "tangent " << got.tangent << " is not " << tangent);
}

}  // namespace

BOOST_AUTO_TEST_CASE(functions_carry_their_derivative) {
    const std::vector<double> all{-3.1, -0.4, -1e-9, 1e-9, 0.3, 1.0, 2.7}, positive{1e-6, 0.3, 1.0, 17.0};
    const double bell = 2.0 * std::numbers::inv_sqrtpi;
    const std::vector<Function> functions{
        {"exp", [](D x) { return exp(x); }, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); },
         all},
        {"expm1", [](D x) { return expm1(x); }, [](double x) { return std::expm1(x); },
         [](double x) { return std::exp(x); }, all},
        {"log", [](D x) { return log(x); }, [](double x) { return std::log(x); }, [](double x) { return 1.0 / x; },
         positive},
        {"log1p", [](D x) { return log1p(x); }, [](double x) { return std::log1p(x); },
         [](double x) { return 1.0 / (1.0 + x); }, positive},
        {"sqrt", [](D x) { return sqrt(x); }, [](double x) { return std::sqrt(x); },
         [](double x) { return 0.5 / std::sqrt(x); }, positive},
        {"tanh", [](D x) { return tanh(x); }, [](double x) { return std::tanh(x); },
         [](double x) { return 1.0 / (std::cosh(x) * std::cosh(x)); }, all},
        {"erf", [](D x) { return erf(x); }, [](double x) { return std::erf(x); },
         [&](double x) { return bell * std::exp(-x * x); }, all},
        {"erfc", [](D x) { return erfc(x); }, [](double x) { return std::erfc(x); },
         [&](double x) { return -bell * std::exp(-x * x); }, all},
        {"fabs", [](D x) { return fabs(x); }, [](double x) { return std::fabs(x); },
         [](double x) { return x < 0.0 ? -1.0 : 1.0; }, all},
        {"rational", [](D x) { return (1 - 2 * x) / (x * x + 3.0) - -x; },
         [](double x) { return (1.0 - 2.0 * x) / (x * x + 3.0) + x; },
         [](double x) {
             const double below = x * x + 3.0;
             return (-2.0 * below - (1.0 - 2.0 * x) * 2.0 * x) / (below * below) + 1.0;
         },
         all},
        {"assignments",
         [](D x) {
             D y = x;
             y += 2;
             y *= x;
             y -= 0.5;
             return y /= x;
         },
         [](double x) { return ((x + 2.0) * x - 0.5) / x; },
         [](double x) { return 1.0 + 0.5 / (x * x); },
         {-2.0, 0.3, 4.0}}};
    for (const Function& function : functions)
        for (const double x : function.at) BOOST_TEST_CONTEXT(function.name << " at " << x) {
                check_near(function.f({x, 0.7}), function.value(x), 0.7 * function.derivative(x));
                check_near(function.f(D{x}), function.value(x), 0.0, 0.0);
            }
}

BOOST_AUTO_TEST_CASE(constants_have_no_tangent_and_comparisons_look_at_values) {
    const D a{1.0, 5.0}, b{1.0, -5.0}, c{2.0, 1.0};
    BOOST_TEST(D{3}.tangent == 0.0);
    BOOST_TEST((D{} == 0.0 && D{}.tangent == 0.0));
    BOOST_TEST((a == b && !(a != b) && a <= b && a >= b && !(a < b) && a < c && c > a));
    BOOST_TEST(static_cast<double>(a) == 1.0);
    BOOST_TEST(fmax(a, c).tangent == 1.0);
    BOOST_TEST(fmin(a, c).tangent == 5.0);
    BOOST_TEST(std::max(a, c).tangent == 1.0);
    BOOST_TEST(abs(D{0.0, 3.0}).tangent == 0.0);
    BOOST_TEST(isfinite(a));
    BOOST_TEST(!isfinite(D{1.0, std::numeric_limits<double>::infinity()}));
    BOOST_TEST(isnan(D{1.0, std::numeric_limits<double>::quiet_NaN()}));
    BOOST_TEST(std::numeric_limits<D>::infinity() == std::numeric_limits<double>::infinity());
}

BOOST_AUTO_TEST_CASE(kernels_carry_their_derivative) {
    for (const double x : {-800.0, -40.0, -2.5, -1e-8, 0.0, 0.3, 1.7, 30.0, 800.0}) BOOST_TEST_CONTEXT("at " << x) {
            D s{x, 0.7}, t{x, 0.7};
            cpu::sigmoid(1, &s);
            cpu::tanh(1, &t);
            // e / (1 + e)^2 and 4 e / (1 + e)^2 of e = exp(-|x|), exp(-2 |x|): nothing cancels
            const double e = std::exp(-std::fabs(x)), f = e * e;
            check_near(s, (x < 0.0 ? e : 1.0) / (1.0 + e), 0.7 * e / ((1.0 + e) * (1.0 + e)));
            check_near(t, std::tanh(x), 2.8 * f / ((1.0 + f) * (1.0 + f)));
        }
    std::vector<D> p = duals(19, 1);
    const std::vector<D> x = p;
    const auto [max, log_sum] = cpu::softmax<D>(19, x.data(), p.data());
    D sum = 0, along = 0;
    for (const D y : x) sum += exp(y - max);
    for (std::size_t k = 0; k < x.size(); ++k) along += p[k] * x[k];
    for (std::size_t k = 0; k < x.size(); ++k) {
        const D wanted = exp(x[k] - max) / sum;
        check_near(p[k], wanted.value, wanted.tangent);
    }
    check_near(log_sum, log(sum).value, log(sum).tangent, 10.0);
}

BOOST_AUTO_TEST_CASE(products_of_dual_matrices_are_those_of_plain_loops) {
    for (const Index rows : {1, 5, 32, 71})
        for (const Index cols : {1, 2, 33, 64})
            for (const Index inner : {1, 31, 70})
                for (const char op_a : {'N', 'T'})
                    for (const char op_b : {'N', 'T'})
                        for (const D beta : {D{0}, D{1}, D{0.5, 0.25}}) {
                            const Index ld_a = (op_a == 'N' ? rows : inner) + 3,
                                        ld_b = (op_b == 'N' ? inner : cols) + 1, ld_c = rows + 2;
                            const std::vector<D> A = duals(ld_a * (op_a == 'N' ? inner : rows), 2),
                                                 B = duals(ld_b * (op_b == 'N' ? cols : inner), 3);
                            std::vector<D> C = duals(ld_c * cols, 4), plain = C;
                            if (beta == 0) std::fill(C.begin(), C.end(), D{std::numeric_limits<double>::quiet_NaN()});
                            cpu::multiply(op_a, op_b, rows, cols, inner, A.data(), ld_a, B.data(), ld_b, beta, C.data(),
                                          ld_c);
                            double worst = 0.0;
                            for (Index j = 0; j < cols; ++j)
                                for (Index i = 0; i < rows; ++i) {
                                    const auto at = static_cast<std::size_t>(i + j * ld_c);
                                    D sum = beta == 0 ? D{0} : beta * plain[at];
                                    for (Index k = 0; k < inner; ++k)
                                        sum += A[static_cast<std::size_t>(op_a == 'N' ? i + k * ld_a : k + i * ld_a)] *
                                               B[static_cast<std::size_t>(op_b == 'N' ? k + j * ld_b : j + k * ld_b)];
                                    const D difference = C[at] - sum;
                                    worst = std::isfinite(difference.value) && std::isfinite(difference.tangent)
                                                ? std::fmax(worst, std::fmax(std::fabs(difference.value),
                                                                             std::fabs(difference.tangent)))
                                                : std::numeric_limits<double>::infinity();
                                }
                            BOOST_CHECK_MESSAGE(worst <= 2e-14, rows << " x " << inner << " x " << cols << ", " << op_a
                                                                     << op_b << ": " << worst);
                            // What lies between the columns is another's.
                            if (beta == 0 || cols == 1) continue;
                            const auto gap = static_cast<std::size_t>(rows);
                            BOOST_CHECK(C[gap].value == plain[gap].value && C[gap].tangent == plain[gap].tangent);
                        }
}
