// A block of raw memory: what a store writes and reads.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/export.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace backsweep {

/// What a blob holds: a store that rounds must know.
enum class Holds : std::uint8_t { bytes, floats, doubles };

/// Memory of the caller, written to a store or read back into.
struct Blob {
    std::byte* data = nullptr;
    std::size_t size = 0;
    Holds holds = Holds::bytes;  ///< bytes are never rounded
};

/// What an array of T holds.
template <class T>
inline constexpr Holds holds = std::is_same_v<T, float>    ? Holds::floats
                               : std::is_same_v<T, double> ? Holds::doubles
                                                           : Holds::bytes;

/// The memory of `count` numbers.
template <class T>
Blob blob(T* data, std::size_t count) noexcept {
    return {reinterpret_cast<std::byte*>(data), count * sizeof(T), holds<T>};
}

/// Bytes of all blobs together.
inline std::size_t total_size(std::span<const Blob> blobs) noexcept {
    std::size_t bytes = 0;
    for (const Blob& b : blobs) bytes += b.size;
    return bytes;
}

/// 64 bits of all blobs' bytes; a single changed bit always changes it.
BACKSWEEP_API std::uint64_t fingerprint(std::span<const Blob> blobs) noexcept;

/// blobs(x): the memory of a state or tape, in an order that does not change; the sizes are those of the object x.
/// Users write one beside their own types.
template <class T>
    requires std::is_arithmetic_v<T>
std::vector<Blob> blobs(T& x) {
    return {blob(&x, 1)};
}

template <class T>
    requires std::is_arithmetic_v<T>
std::vector<Blob> blobs(std::vector<T>& x) {
    return {blob(x.data(), x.size())};
}

template <class T, std::size_t N>
    requires std::is_arithmetic_v<T>
std::vector<Blob> blobs(std::array<T, N>& x) {
    return {blob(x.data(), N)};
}

template <class T>
std::vector<Blob> blobs(Buffer<T>& x) {
    return {blob(x.data(), static_cast<std::size_t>(x.size()))};
}

}  // namespace backsweep
