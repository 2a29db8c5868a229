// XXH3 of 64 bits, piece by piece: what tells a whole record from a damaged one.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/store/blob.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace backsweep {

class Checksum {
public:
    Checksum() noexcept { XXH3_64bits_reset(&state_); }
    void add(const void* data, std::size_t size) noexcept { XXH3_64bits_update(&state_, data, size); }
    std::uint64_t value() const noexcept { return XXH3_64bits_digest(&state_); }

private:
    XXH3_state_t state_;
};

/// Of all blobs, wherever they are cut.
inline std::uint64_t checksum(std::span<const Blob> blobs) noexcept {
    Checksum sum;
    for (const Blob& b : blobs) sum.add(b.data, b.size);
    return sum.value();
}

/// Of a header's members before its last one, `check`.
template <class Header>
std::uint64_t head_check(const Header& head) noexcept {
    static_assert(offsetof(Header, check) + sizeof head.check == sizeof head);
    return XXH3_64bits(&head, offsetof(Header, check));
}

}  // namespace backsweep
