// SPDX-License-Identifier: MIT
#include "backsweep/data/generators.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "data/check_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace backsweep {

namespace {

/// Streams of random numbers; a network's parameters take those from 0 on.
enum Stream : std::uint32_t { adding_values = 0x61646400, adding_places, copy_symbols = 0x636f7000 };

constexpr Index most = std::numeric_limits<std::int32_t>::max();

std::string problem_of(std::string_view what, Index value, Index least) {
    if (value >= least && value <= most) return {};
    return fmt::format("{} must lie between {} and {}, not at {}", what, least, most, value);
}

}  // namespace

std::string AddingSpec::problem() const {
    for (const std::string& wrong :
         {problem_of("steps", steps, 2), problem_of("batch", batch, 1), problem_of("windows", windows, 1)})
        if (!wrong.empty()) return "adding problem: " + wrong;
    return {};
}

std::string CopySpec::problem() const {
    for (const std::string& wrong :
         {problem_of("delay", delay, 1), problem_of("length", length, 1), problem_of("symbols", symbols, 1),
          problem_of("batch", batch, 1), problem_of("windows", windows, 1)})
        if (!wrong.empty()) return "copy memory: " + wrong;
    return {};
}

template <class Real>
AddingSource<Real>::AddingSource(const AddingSpec& spec) : spec_(spec) {
    if (const std::string problem = spec_.problem(); !problem.empty()) throw InvalidArgument(problem);
}

template <class Real>
void AddingSource<Real>::read(const Cut& cut, Batch<Real>& batch) const {
    check_cut(cut, name(), spec_.batch);
    const Index T = spec_.steps, B = cut.sequences.size(), half = T / 2;
    batch.clear();
    batch.steps = T;
    batch.batch = B;
    batch.inputs.resize(2 * T * B);
    batch.values.resize(T * B);
    batch.weights.resize(T * B);
    const Random values(spec_.seed, adding_values), places(spec_.seed, adding_places);
    const auto window = static_cast<std::uint64_t>(cut.window);
    for (Index b = 0; b < B; ++b) {
        const Index sequence = cut.sequences.first + b;
        const Index first = places.below(static_cast<std::uint32_t>(half), window, 2 * sequence);
        const Index second = half + places.below(static_cast<std::uint32_t>(T - half), window, 2 * sequence + 1);
        double sum = 0.0;
        for (Index t = 0; t < T; ++t) {
            const double x = values.uniform(window, sequence * T + t);
            const bool marked = t == first || t == second;
            if (marked) sum += x;
            Real* input = batch.inputs.data() + 2 * (t * B + b);
            input[0] = static_cast<Real>(x);
            input[1] = marked ? Real{1} : Real{0};
        }
        for (Index t = 0; t < T; ++t) {
            const Index place = t * B + b;
            batch.values[place] = t == T - 1 ? static_cast<Real>(sum) : Real{0};
            batch.weights[place] = t == T - 1 ? Real{1} : Real{0};
        }
    }
}

template <class Real>
CopySource<Real>::CopySource(const CopySpec& spec) : spec_(spec) {
    if (const std::string problem = spec_.problem(); !problem.empty()) throw InvalidArgument(problem);
}

template <class Real>
void CopySource<Real>::read(const Cut& cut, Batch<Real>& batch) const {
    check_cut(cut, name(), spec_.batch);
    const Index T = spec_.steps(), B = cut.sequences.size(), K = spec_.length;
    const auto blank = static_cast<std::int32_t>(spec_.symbols), delimiter = blank + 1;
    batch.clear();
    batch.steps = T;
    batch.batch = B;
    batch.tokens.assign(T * B, blank);
    batch.classes.assign(T * B, blank);
    const Random symbols(spec_.seed, copy_symbols);
    for (Index b = 0; b < B; ++b) {
        const auto at = [&](Index t) { return t * B + b; };
        for (Index k = 0; k < K; ++k) {
            const auto symbol = static_cast<std::int32_t>(symbols.below(static_cast<std::uint32_t>(spec_.symbols),
                                                                        cut.window, (cut.sequences.first + b) * K + k));
            batch.tokens[at(k)] = symbol;
            batch.classes[at(T - K + k)] = symbol;
        }
        batch.tokens[at(T - K - 1)] = delimiter;
    }
}

template class AddingSource<float>;
template class AddingSource<double>;
template class CopySource<float>;
template class CopySource<double>;

}  // namespace backsweep
