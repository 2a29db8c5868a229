// SPDX-License-Identifier: MIT
#include "store/rounding.hpp"

#include "backsweep/base/error.hpp"
#include "store/checksum.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace backsweep {

namespace {

/// Calls f(number of the wide type, number of the narrow type) for what a blob holds and how it is kept; false if its
/// bytes are kept as they are: also where they are no whole numbers.
template <class F>
bool kept_as(const Blob& blob, Precision precision, F f) {
    const bool floats = blob.holds == Holds::floats;
    if (precision == Precision::exact || blob.holds == Holds::bytes) return false;
    if (precision == Precision::float32 && floats) return false;
    if (blob.size % (floats ? sizeof(float) : sizeof(double)) != 0) return false;
    if (precision == Precision::float32)
        f(double{}, float{});
    else if (floats)
        f(float{}, std::uint16_t{});
    else
        f(double{}, std::uint16_t{});
    return true;
}

/// A float between x and the next one: rounded to odd, so that rounding it again is as good as rounding x.
float to_odd(double x) noexcept {
    const float f = static_cast<float>(x);
    auto bits = std::bit_cast<std::uint32_t>(f);
    const double back = f;
    if (back == x || std::isnan(x) || (bits & 1) != 0) return f;
    // |f| > |x|: the float below it; else the one above. Either is odd.
    bits += std::abs(back) > std::abs(x) ? ~std::uint32_t{0} : 1;
    return std::bit_cast<float>(bits);
}
float to_odd(float x) noexcept {
    return x;
}

template <class Wide>
void narrow(Wide x, float& to) noexcept {
    to = static_cast<float>(x);
}
template <class Wide>
void narrow(Wide x, std::uint16_t& to) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(to_odd(x));
    const std::uint32_t even = 0x7fff + ((bits >> 16) & 1);
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    to = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40 : (bits + even) >> 16);
}

float widen(float x) noexcept {
    return x;
}
float widen(std::uint16_t x) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

}  // namespace

std::size_t rounded_size(const Blob& blob, Precision precision) noexcept {
    std::size_t size = blob.size;
    kept_as(blob, precision, [&](auto wide, auto thin) { size = blob.size / sizeof wide * sizeof thin; });
    return size;
}

void round_into(std::byte* to, const Blob& blob, Precision precision) {
    const bool rounded = kept_as(blob, precision, [&](auto wide, auto thin) {
        bool overflow = false;
        const std::size_t count = blob.size / sizeof wide;
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(&wide, blob.data + i * sizeof wide, sizeof wide);
            narrow(wide, thin);
            overflow |= std::isinf(widen(thin)) && !std::isinf(wide);
            std::memcpy(to + i * sizeof thin, &thin, sizeof thin);
        }
        if (overflow) {
            throw StoreError(std::string("a finite number is too large to be stored as ") + to_string(precision) +
                             "; store it exactly");
        }
    });
    if (!rounded && blob.size != 0) std::memcpy(to, blob.data, blob.size);
}

void widen_from(const std::byte* from, const Blob& blob, Precision precision) noexcept {
    const bool rounded = kept_as(blob, precision, [&](auto wide, auto thin) {
        const std::size_t count = blob.size / sizeof wide;
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(&thin, from + i * sizeof thin, sizeof thin);
            wide = widen(thin);
            std::memcpy(blob.data + i * sizeof wide, &wide, sizeof wide);
        }
    });
    if (!rounded && blob.size != 0) std::memcpy(blob.data, from, blob.size);
}

std::uint64_t layout(std::span<const Blob> blobs, Precision precision) noexcept {
    if (precision == Precision::exact) return 0;
    Checksum sum;
    std::uint64_t run[2] = {0, 0};  // what stands next to each other and is of one kind: kind, bytes
    for (const Blob& b : blobs) {
        if (b.size == 0) continue;
        if (const auto kind = static_cast<std::uint64_t>(b.holds); run[1] == 0 || kind != run[0]) {
            sum.add(run, sizeof run);
            run[0] = kind, run[1] = 0;
        }
        run[1] += b.size;
    }
    sum.add(run, sizeof run);
    return sum.value() | 1;
}

}  // namespace backsweep
