// SPDX-License-Identifier: MIT
#include "backsweep/chain/gradient_check.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace backsweep {

namespace {

double dot(std::span<const double> a, std::span<const double> b, const char* who) {
    if (a.size() != b.size())
        throw InvalidArgument(std::string(who) + ": vectors of " + std::to_string(a.size()) + " and " +
                              std::to_string(b.size()) + " values cannot be paired");
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
}

}  // namespace

double finite_difference_error(const Functional& j, std::span<const double> x, std::span<const double> gradient,
                               double h) {
    if (x.size() != gradient.size())
        throw InvalidArgument("finite_difference_error: " + std::to_string(x.size()) + " values, but a gradient of " +
                              std::to_string(gradient.size()));
    std::vector<double> at(x.begin(), x.end());
    double worst = 0.0, largest = 0.0;
    for (std::size_t i = 0; i < at.size(); ++i) {
        const double step = h * std::max(1.0, std::abs(x[i]));
        at[i] = x[i] + step;
        const double above = j(at);
        at[i] = x[i] - step;
        const double below = j(at);
        at[i] = x[i];
        const double difference = (above - below) / (2.0 * step);
        const double error = std::abs(gradient[i] - difference);
        if (!std::isfinite(error)) return std::numeric_limits<double>::quiet_NaN();
        worst = std::max(worst, error);
        largest = std::max(largest, std::abs(difference));
    }
    return worst == 0.0 ? 0.0 : worst / largest;
}

double taylor_slope(const Functional& j, std::span<const double> x, std::span<const double> gradient,
                    std::span<const double> direction, double h0, int levels) {
    const double slope = dot(gradient, direction, "taylor_slope");
    if (x.size() != direction.size())
        throw InvalidArgument("taylor_slope: " + std::to_string(x.size()) + " values, but a direction of " +
                              std::to_string(direction.size()));
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double j0 = j(x);
    std::vector<double> at(x.begin(), x.end()), orders;
    double before = 0.0;  // the remainder at 2 h, 0 where rounding may spoil it
    double h = h0;
    for (int level = 0; level <= levels; ++level, h /= 2.0) {
        for (std::size_t k = 0; k < at.size(); ++k) at[k] = x[k] + h * direction[k];
        const double jh = j(at);
        const double remainder = std::abs(jh - j0 - h * slope);
        if (!std::isfinite(remainder)) return std::numeric_limits<double>::quiet_NaN();
        const double rounding = 64.0 * epsilon * std::max({std::abs(j0), std::abs(jh), std::abs(h * slope)});
        if (before > 0.0) orders.push_back(std::log2(before / std::max(remainder, rounding)));
        before = remainder > 1000.0 * rounding ? remainder : 0.0;
    }
    if (orders.empty()) return 2.0;
    const auto last = orders.end() - std::min<std::ptrdiff_t>(3, std::ssize(orders));
    std::sort(last, orders.end());
    return last[(orders.end() - last) / 2];
}

double dot_product_error(std::span<const double> w, std::span<const double> tangent, std::span<const double> adjoint,
                         std::span<const double> v) {
    const double forward = dot(w, tangent, "dot_product_error"), backward = dot(adjoint, v, "dot_product_error");
    const double error = std::abs(forward - backward);
    return error == 0.0 ? 0.0 : error / std::max(std::abs(forward), std::abs(backward));
}

namespace detail {

std::string shown(double figure) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", figure);
    return text;
}

std::vector<double> directions(std::size_t n, unsigned which) {
    std::vector<double> d(n);
    std::uint64_t s = 0x9e3779b97f4a7c15ull * (which + 1);
    for (double& x : d) {  // SplitMix64
        std::uint64_t z = s += 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        x = static_cast<double>(z >> 11) * 0x1.0p-52 - 1.0;
    }
    return d;
}

}  // namespace detail

}  // namespace backsweep
