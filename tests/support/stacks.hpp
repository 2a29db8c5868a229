// Stacks of unequal layers, and segments on them as a user would cut them: states are kept before segments only, the
// others are taken out of the tapes, as optimal_chain does it.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/schedule/chain_costs.hpp"
#include "schedule/emit.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace backsweep::test {

/// Numbers whose logarithm is uniform; the same on every machine but for the last bit of exp().
class LogUniform {
public:
    explicit LogUniform(std::uint64_t seed) : bits_(seed) {}

    /// 0 ... n - 1
    Index below(Index n) { return static_cast<Index>(bits_() % static_cast<std::uint64_t>(n)); }
    double between(double low, double high) {
        return low * std::exp(std::log(high / low) * static_cast<double>(bits_() >> 11) * 0x1.0p-53);
    }
    std::int64_t bytes(double low, double high) { return static_cast<std::int64_t>(between(low, high)); }

private:
    std::mt19937_64 bits_;
};

/// The k-th of the random stacks: 3 ... 40 links, times and sizes over one to four decades, in every third of them
/// overheads, in every fifth tapes that hold the next state and nothing else on half of the links.
inline ChainCosts random_stack(std::uint64_t k) {
    LogUniform random(k);
    const Index links = 3 + random.below(38);
    const double spread = std::pow(10.0, static_cast<double>(1 + random.below(4)));
    const bool overheads = k % 3 == 0, bare = k % 5 == 0;
    ChainCosts chain;
    chain.state_bytes.push_back(random.bytes(100.0, 100.0 * spread));
    for (Index i = 0; i < links; ++i) {
        chain.forward_time.push_back(random.between(1.0, spread));
        chain.backward_time.push_back(chain.forward_time.back() * random.between(0.5, 4.0));
        chain.state_bytes.push_back(random.bytes(100.0, 100.0 * spread));
        const bool nothing_else = bare && random.below(2) == 0;
        chain.tape_bytes.push_back(chain.state_bytes.back() + (nothing_else ? 0 : random.bytes(100.0, 300.0 * spread)));
        if (!overheads) continue;
        chain.forward_overhead.push_back(random.below(2) * random.bytes(10.0, 100.0 * spread));
        chain.backward_overhead.push_back(random.below(2) * random.bytes(10.0, 100.0 * spread));
    }
    return chain;
}

/// The first links of segments of `length`, but for a first one of `first` links and a last one of what is left.
inline std::vector<Index> equal_segments(Index length, Index first, Index links) {
    std::vector<Index> starts{0};
    for (Index i = first; i < links; i += length) starts.push_back(i);
    return starts;
}

/// The stream of one level of segments [Chen16] that begin at `starts` (rising from 0): the first sweep keeps the
/// states before all of them and records the last one as it runs; every other one is recorded when its turn comes.
inline std::vector<Action> segments_on_tapes(Index links, const std::vector<Index>& starts) {
    std::vector<Action> stream;
    const auto ram = [](Index slot) { return Slot{Tier::ram, static_cast<std::int32_t>(slot)}; };
    const auto tape = [&](Index link) { return ram(links + link); };
    const auto end = [&](std::size_t s) { return s + 1 < starts.size() ? starts[s + 1] : links; };
    for (std::size_t s = 0; s < starts.size(); ++s) {
        stream.push_back(emit::save(starts[s], ram(starts[s])));
        if (end(s) < links) stream.push_back(emit::advance(starts[s], end(s)));
    }
    for (std::size_t s = starts.size(); s-- > 0;) {
        const Index first = starts[s], last = end(s);
        const auto bring = [&](Index i) {
            stream.push_back(i == first ? emit::take(i, ram(i)) : emit::restart(i, tape(i - 1)));
        };
        const bool swept = last == links;
        if (!swept) stream.push_back(last - first > 1 ? emit::load(first, ram(first)) : emit::take(first, ram(first)));
        for (Index i = first; i + 1 < last; ++i) {
            stream.push_back(emit::record(i));
            stream.push_back(emit::stow(i, tape(i)));
        }
        if (swept) {
            stream.push_back(emit::record(last - 1));
            stream.push_back(emit::turn(links));
            bring(last - 1);
        } else {
            stream.push_back(emit::tape(last - 1));
        }
        stream.push_back(emit::reverse(last - 1));
        for (Index i = last - 1; i-- > first;) {
            bring(i);
            stream.push_back(emit::fetch(i, tape(i)));
            stream.push_back(emit::reverse(i));
        }
    }
    return stream;
}

}  // namespace backsweep::test
