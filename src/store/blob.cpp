// SPDX-License-Identifier: MIT
#include "backsweep/store/blob.hpp"

#include <algorithm>
#include <cstring>

namespace backsweep {

std::uint64_t fingerprint(std::span<const Blob> blobs) noexcept {
    // Each step is a bijection of h, so no difference is ever lost again.
    std::uint64_t h = 0xcbf29ce484222325;
    const auto mix = [&h](std::uint64_t word) {
        h = (h ^ word) * 0x9e3779b97f4a7c15;
        h ^= h >> 32;
    };
    for (const Blob& b : blobs) {
        for (std::size_t at = 0; at < b.size; at += sizeof h) {
            std::uint64_t word = 0;
            std::memcpy(&word, b.data + at, std::min(sizeof word, b.size - at));
            mix(word);
        }
        mix(b.size);
    }
    return h;
}

}  // namespace backsweep
