// Numbers as a store keeps them: exactly, as floats, or as the upper halves of floats.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/store/disk_store.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace backsweep {

/// Bytes of a blob once rounded.
std::size_t rounded_size(const Blob& blob, Precision precision) noexcept;
/// Writes them to `to`. Throws StoreError if a finite number becomes infinite.
void round_into(std::byte* to, const Blob& blob, Precision precision);
/// Fills the blob from its rounded bytes.
void widen_from(const std::byte* from, const Blob& blob, Precision precision) noexcept;
/// Which numbers stand where, wherever the blobs are cut: equal for what may be written and read. 0: nothing is
/// rounded.
std::uint64_t layout(std::span<const Blob> blobs, Precision precision) noexcept;

}  // namespace backsweep
