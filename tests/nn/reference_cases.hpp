// How reference files of operations are run: a table from operation to runner, and the tolerances of the files' README.
// A source tests/nn/reference_<what>.cpp registers runners: `const Registration lstm{"lstm", run_lstm};`.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/safetensors.hpp"
#include "support/compare.hpp"
#include "support/unit_test.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace backsweep::test {

/// The rows of the table of tolerances.
enum class Quantity {
    values,
    gradients,
    updates,
    tiny_lm,
    rates_and_clipping,
    layer_norm_extremes,
    large_values,
    large_gradients
};

template <class Real>
Tolerance tolerance(Quantity quantity) {
    constexpr bool twice = std::is_same_v<Real, double>;
    const auto pick = [](double rtol64, double rtol32) {
        return twice ? Tolerance{rtol64, 1e-13} : Tolerance{rtol32, 1e-6};
    };
    switch (quantity) {
        case Quantity::values:
            return pick(1e-12, 5e-6);
        case Quantity::gradients:
            return pick(1e-11, 2e-5);
        case Quantity::updates:
            return pick(1e-10, 3e-5);
        case Quantity::tiny_lm:
            return pick(1e-9, 1e-3);
        case Quantity::rates_and_clipping:
            return pick(1e-11, 2e-6);
        case Quantity::layer_norm_extremes:
            return pick(1e-10, 2e-3);
        case Quantity::large_values:
            return pick(1e-11, 1e-4);
        case Quantity::large_gradients:
            break;
    }
    return twice ? Tolerance{1e-9, 1e-12} : Tolerance{2e-3, 1e-4};
}

/// One reference file.
struct ReferenceCase {
    const Safetensors& file;
    std::string operation;
    nlohmann::json options;

    /// Inputs that are larger than usual ask for other tolerances.
    bool large() const { return options.value("scale", 1.0) > 10.0; }
    /// Rows far from 0, or without spread.
    bool extreme() const { return options.contains("offset") || options.contains("constant_row"); }
    Quantity values() const {
        return extreme() ? Quantity::layer_norm_extremes : large() ? Quantity::large_values : Quantity::values;
    }
    Quantity gradients() const {
        return extreme() ? Quantity::layer_norm_extremes : large() ? Quantity::large_gradients : Quantity::gradients;
    }

    template <class Real>
    std::vector<Real> values_of(const std::string& name) const {
        return file.at(name).values<Real>();
    }
    /// Zeros where the file has no such tensor.
    std::vector<double> values_or_zeros(const std::string& name, Index size) const {
        const TensorView* t = file.find(name);
        return t ? t->values<double>() : std::vector<double>(static_cast<std::size_t>(size));
    }
    std::vector<std::int32_t> integers_of(const std::string& name) const {
        const std::vector<std::int64_t> wide = file.at(name).integers();
        return {wide.begin(), wide.end()};
    }

    /// Checks `got` against the numbers of the file; `scale` >= 0 replaces max |wanted| where that may cancel.
    template <class Real>
    void check(const std::string& what, const std::vector<Real>& got, const std::vector<double>& wanted,
               Quantity quantity, double scale = -1.0) const {
        const Comparison c = compare(got, wanted, tolerance<Real>(quantity), scale);
        BOOST_TEST(c, what << (std::is_same_v<Real, double> ? " in double: " : " in float: ") << c);
        checked.insert(what);
    }
    /// The same for a tensor of the file.
    template <class Real>
    void check(const std::string& name, const std::vector<Real>& got, Quantity quantity, double scale = -1.0) const {
        check(name, got, values_of<double>(name), quantity, scale);
    }

    /// Names that have been checked; the runner of all files wants every result of the file among them.
    mutable std::set<std::string> checked;
};

using Runner = void (*)(const ReferenceCase&);

inline std::map<std::string, Runner>& runners() {
    static std::map<std::string, Runner> table;
    return table;
}

struct Registration {
    Registration(const std::string& operation, Runner runner) { runners()[operation] = runner; }
};

/// [a][b][inner] -> [b][a][inner].
template <class T>
std::vector<T> swap_axes(const std::vector<T>& from, Index a, Index b) {
    std::vector<T> to(from.size());
    const Index inner = static_cast<Index>(from.size()) / (a * b);
    for (Index i = 0; i < a; ++i)
        for (Index j = 0; j < b; ++j)
            std::copy_n(from.begin() + (i * b + j) * inner, inner, to.begin() + (j * a + i) * inner);
    return to;
}

/// [n][a][b] -> [n][b][a].
template <class T>
std::vector<T> swap_last_axes(const std::vector<T>& from, Index a, Index b) {
    std::vector<T> to;
    for (std::size_t first = 0; first < from.size(); first += static_cast<std::size_t>(a * b)) {
        const std::vector<T> one = swap_axes<T>({from.begin() + static_cast<std::ptrdiff_t>(first),
                                                 from.begin() + static_cast<std::ptrdiff_t>(first) + a * b},
                                                a, b);
        to.insert(to.end(), one.begin(), one.end());
    }
    return to;
}

/// sum of |weight * value|: what a weighted sum is compared against.
inline double weighted_size(const std::vector<double>& weights, const std::vector<double>& values) {
    double sum = 0.0;
    for (std::size_t k = 0; k < weights.size(); ++k) sum += std::abs(weights[k] * values[k]);
    return sum;
}

}  // namespace backsweep::test
