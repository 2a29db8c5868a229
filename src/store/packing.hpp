// Lossless packing of a content, block by block, so that little memory is needed: each block is a length of four bytes,
// whose highest bit says that it did not shrink, and so many bytes. All memory is one buffer of known size.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace backsweep {

class Packing {
public:
    static constexpr std::int64_t block = std::int64_t{1} << 20;

    /// Holds `memory_bytes()` of workspace.
    explicit Packing(Ledger& ledger);

    static std::int64_t memory_bytes();
    /// The most that `bytes` bytes take.
    static std::int64_t most(std::int64_t bytes) noexcept;

    /// The packed form of at most a block; stands until the next call.
    std::span<const std::byte> pack(std::span<const std::byte> content);
    /// Where a packed block of `bytes` bytes behind its length is to be put for unpack().
    std::span<std::byte> place(std::size_t bytes);
    /// Fills `content` from the packed bytes at place(); false if they are damaged.
    bool unpack(std::uint32_t length, std::span<std::byte> content);

    /// Bytes behind the length, or -1 if no block is that long.
    static std::int64_t bytes_behind(std::uint32_t length) noexcept;

private:
    static constexpr std::uint32_t as_it_is = std::uint32_t{1} << 31;
    static constexpr std::int64_t head = 64;  // room for the length, at its end: the block itself is aligned

    Buffer<std::byte> memory_;
    void *packer_, *unpacker_;  // both in memory_
};

}  // namespace backsweep
