// Counter-based random numbers: a number is a function of where it is, not of what was drawn before.
// Philox4x32-10 of [Salmon11] through Random123; the only header that includes it.
// SPDX-License-Identifier: MIT
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace backsweep {

/// A stream of random numbers addressed by (seed, stream, step, element).
class Random {
public:
    constexpr Random(std::uint64_t seed, std::uint32_t stream) noexcept : seed_(seed), stream_(stream) {}

    /// 64 random bits at (step, element), the first two words of block `element`; step < 2^32.
    std::uint64_t bits(std::uint64_t step, std::uint64_t element) const noexcept {
        const auto words = block(step, element);
        return static_cast<std::uint64_t>(words[1]) << 32 | words[0];
    }

    /// 32 random bits at (step, element): word element % 4 of block element / 4. A stream serves either words or the
    /// other numbers, for both are made of the same blocks.
    std::uint32_t word(std::uint64_t step, std::uint64_t element) const noexcept {
        return block(step, element / 4)[element % 4];
    }

    /// f(k, word(step, first + k)) for k = 0 .. count - 1: one block for four words.
    template <class F>
    void words(std::uint64_t step, std::uint64_t first, std::uint64_t count, F f) const {
        for (std::uint64_t k = 0; k < count;) {
            const auto four = block(step, (first + k) / 4);
            for (std::uint64_t w = (first + k) % 4; w < 4 && k < count; ++w) f(k++, four[w]);
        }
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    double uniform(std::uint64_t step, std::uint64_t element) const noexcept {
        return static_cast<double>(bits(step, element) >> 11) * 0x1.0p-53;
    }

    /// Standard normal (Box and Muller's transform of the numbers at 2 element and 2 element + 1).
    double normal(std::uint64_t step, std::uint64_t element) const noexcept {
        const double u = 1.0 - uniform(step, 2 * element), v = uniform(step, 2 * element + 1);
        return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
    }

    /// Uniform in 0 .. n-1 (n < 2^32).
    std::uint32_t below(std::uint32_t n, std::uint64_t step, std::uint64_t element) const noexcept {
        return static_cast<std::uint32_t>(((bits(step, element) >> 32) * n) >> 32);
    }

private:
    /// Philox of counter (block, step, stream) and key seed.
    std::array<std::uint32_t, 4> block(std::uint64_t step, std::uint64_t number) const noexcept {
        assert(step >> 32 == 0);
        const r123::Philox4x32::ctr_type counter{{static_cast<std::uint32_t>(number),
                                                  static_cast<std::uint32_t>(number >> 32),
                                                  static_cast<std::uint32_t>(step), stream_}};
        const r123::Philox4x32::key_type key{
            {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
        const auto r = r123::Philox4x32{}(counter, key);
        return {r[0], r[1], r[2], r[3]};
    }

    std::uint64_t seed_;
    std::uint32_t stream_;
};

}  // namespace backsweep
