// Checkers that users call on their own functions and chains: finite differences, Taylor slope, dot product, and
// check_chain, which runs every law of the house on a chain.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/values.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/ram_store.hpp"

#include <cmath>
#include <concepts>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

using Functional = std::function<double(std::span<const double> x)>;

/// max_i |g_i - central difference_i| / max_i |central difference_i|, step h * max(1, |x_i|). 2 n evaluations.
/// NaN if anything is not finite.
BACKSWEEP_API double finite_difference_error(const Functional& j, std::span<const double> x,
                                             std::span<const double> gradient, double h = 1e-5);

/// The order at which |J(x + h d) - J(x) - h <g, d>| falls: the median of log2 of the ratios over the last three of
/// `levels` halvings of h from h0, those that rounding may spoil left out. 2 (or more) for a right gradient, 1 for a
/// wrong one; 2 if every remainder is at rounding level (J linear along d); NaN if anything is not finite.
BACKSWEEP_API double taylor_slope(const Functional& j, std::span<const double> x, std::span<const double> gradient,
                                  std::span<const double> direction, double h0 = 1e-2, int levels = 12);

/// |<w, J' v> - <J'^T w, v>| / max(|both|), given the two vectors that a tangent and an adjoint sweep gave.
BACKSWEEP_API double dot_product_error(std::span<const double> w, std::span<const double> tangent,
                                       std::span<const double> adjoint, std::span<const double> v);

/// One line of a report.
struct Check {
    std::string name;
    bool passed = false;
    std::string detail;  ///< the figure, or what went wrong
};

/// What check_chain found.
struct ChainReport {
    std::vector<Check> checks;
    bool passed() const noexcept {
        for (const Check& c : checks)
            if (!c.passed) return false;
        return true;
    }
    std::string text() const {
        std::string all;
        for (const Check& c : checks) all += (c.passed ? "ok      " : "FAILED  ") + c.name + ": " + c.detail + "\n";
        return all;
    }
};

/// How the checks that difference are judged; the defaults suit double.
struct CheckOptions {
    double step = 1e-5;        ///< of central differences along a direction with values in [-1, 1)
    double tolerance = 1e-6;   ///< relative error allowed to the dot product
    double least_slope = 1.9;  ///< of the Taylor remainder
};

namespace detail {

/// Three digits.
BACKSWEEP_API std::string shown(double figure);

/// Fixed numbers in [-1, 1) without a pattern.
BACKSWEEP_API std::vector<double> directions(std::size_t n, unsigned which);

template <class T>
std::vector<double> as_doubles(T& x) {
    const auto v = values(x);
    return std::vector<double>(v.begin(), v.end());
}

template <class T>
void assign_doubles(T& x, std::span<const double> from) {
    const auto v = values(x);
    for (std::size_t k = 0; k < v.size(); ++k) v[k] = static_cast<std::remove_reference_t<decltype(v[k])>>(from[k]);
}

template <class T>
bool same_bits(T& a, T& b) {
    const auto u = values(a), v = values(b);
    return u.size() == v.size() && (u.empty() || std::memcmp(u.data(), v.data(), u.size_bytes()) == 0);
}

}  // namespace detail

/// The laws, on a chain of known length n >= 1 with numbers in state and adjoint:
/// advance = record in bits; whole range = split ranges; a kept state, and one put back from its bytes where it has
/// `blobs`, leads to the same end; the gradient with respect to x_0 equal in bits under store_all, revolve with 1, 2,
/// 3, 5 and n slots and periodic; the loss equal in bits after forward_only and after revolve where the chain has
/// `loss()`; Taylor slope and dot product (central differences) of <w, x_n>, which need as many adjoint values as state
/// values. Takes n^2 / 2 links: give it a short chain. Parameter gradients are the caller's: they are added to.
/// Throws InvalidArgument if n < 1.
template <Chain C>
    requires HasValues<typename C::State> && HasValues<typename C::Adjoint>
ChainReport check_chain(C& chain, const CheckOptions& options = {}) {
    using State = typename C::State;
    using Adjoint = typename C::Adjoint;
    ChainReport report;
    const auto add = [&](std::string name, bool passed, std::string detail) {
        report.checks.push_back({std::move(name), passed, std::move(detail)});
    };
    const Index n = chain.length().value_or(0);
    if (n < 1) throw InvalidArgument("check_chain wants a chain of known length >= 1, came " + std::to_string(n));

    {
        State a = chain.initial(), b = chain.initial();
        typename C::Tape tape{};
        std::string where = "equal bits after every link";
        bool same = true;
        for (Index i = 0; i < n && same; ++i) {
            chain.advance({i, i + 1}, a);
            chain.record({i, i + 1}, b, tape);
            if (!(same = detail::same_bits(a, b))) where = "differ after link " + std::to_string(i);
        }
        add("advance = record", same, where);
    }
    {
        State whole = chain.initial(), split = chain.initial();
        chain.advance({0, n}, whole);
        for (const Range r : {Range{0, n / 3}, Range{n / 3, n / 2}, Range{n / 2, n}})
            if (!r.empty()) chain.advance(r, split);
        add("whole range = split ranges", detail::same_bits(whole, split),
            "split at " + std::to_string(n / 3) + " and " + std::to_string(n / 2));
    }
    {
        State x = chain.initial();
        chain.advance({0, n / 2}, x);
        State kept{};
        kept = x;  // as a slot is filled
        [[maybe_unused]] State back = chain.initial();
        if constexpr (requires { blobs(x); }) {
            RamStore store;
            store.write(0, blobs(x));
            store.read(0, blobs(back));
        }
        chain.advance({n / 2, n}, x);
        chain.advance({n / 2, n}, kept);
        const std::string from = "from x_" + std::to_string(n / 2) + " to the end";
        add("replay from a kept state", detail::same_bits(x, kept), from);
        if constexpr (requires { blobs(x); }) {
            chain.advance({n / 2, n}, back);
            add("replay from a state's bytes", detail::same_bits(x, back), from);
        }
    }

    State last = chain.initial();
    chain.advance({0, n}, last);
    Adjoint terminal{};
    chain.seed(std::as_const(last), terminal);
    const std::size_t size = values(terminal).size();
    const std::vector<double> w = detail::directions(size, 1);
    detail::assign_doubles(terminal, w);

    const auto schedule = [&](const char* family, Index slots = 0, Index period = 0) {
        ScheduleOptions o;
        o.family = family;
        o.steps = n;
        o.slots = slots;
        o.period = period;
        o.needs_state = needs_state<C>;
        return make_schedule(o);
    };
    const auto gradient = [&](std::unique_ptr<Schedule> plan) {
        Execution run(chain, std::move(plan));
        run.forward();
        run.backward(terminal);
        return std::move(run.adjoint());
    };
    Adjoint g = gradient(schedule("store_all"));
    const auto same_gradient = [&](const std::string& name, std::unique_ptr<Schedule> plan) {
        Adjoint other = gradient(std::move(plan));
        add("gradient under " + name, detail::same_bits(g, other), "bits compared with store_all's");
    };
    for (const Index s : {Index{1}, Index{2}, Index{3}, Index{5}, n})
        same_gradient("revolve, " + std::to_string(s) + " slots", schedule("revolve", s));
    const Index period = n < 4 ? 1 : n / 3;
    same_gradient("periodic, period " + std::to_string(period), schedule("periodic", 0, period));

    if constexpr (requires { { std::as_const(chain).loss() } -> std::convertible_to<double>; }) {
        Execution(chain, schedule("forward_only")).forward();
        const double once = chain.loss();
        gradient(schedule("revolve", 2));
        const double replayed = chain.loss();
        add("loss of forward_only = loss of revolve", std::memcmp(&once, &replayed, sizeof once) == 0,
            detail::shown(once) + " and " + detail::shown(replayed));
    }

    State x0 = chain.initial();
    const std::vector<double> at = detail::as_doubles(x0), grad = detail::as_doubles(g);
    if (at.size() != grad.size() || size != detail::as_doubles(last).size()) {
        add("Taylor slope, dot product", false,
            "need as many adjoint values as state values, but there are " + std::to_string(grad.size()) + " and " +
                std::to_string(at.size()));
        return report;
    }
    const auto run = [&](std::span<const double> from) {
        State x = chain.initial();
        detail::assign_doubles(x, from);
        chain.advance({0, n}, x);
        return detail::as_doubles(x);
    };
    const Functional j = [&](std::span<const double> from) {
        const std::vector<double> x = run(from);
        double sum = 0.0;
        for (std::size_t k = 0; k < x.size(); ++k) sum += w[k] * x[k];
        return sum;
    };
    const std::vector<double> v = detail::directions(at.size(), 2);
    const double slope = taylor_slope(j, at, grad, v);
    add("Taylor slope", slope >= options.least_slope,
        detail::shown(slope) + ", at least " + detail::shown(options.least_slope));

    std::vector<double> up = at, down = at, tangent(size);
    for (std::size_t k = 0; k < at.size(); ++k) {
        up[k] += options.step * v[k];
        down[k] -= options.step * v[k];
    }
    const std::vector<double> xu = run(up), xd = run(down);
    for (std::size_t k = 0; k < size; ++k) tangent[k] = (xu[k] - xd[k]) / (2.0 * options.step);
    const double error = dot_product_error(w, tangent, grad, v);
    add("dot product", error <= options.tolerance,
        detail::shown(error) + ", at most " + detail::shown(options.tolerance));
    return report;
}

}  // namespace backsweep
