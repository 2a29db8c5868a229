// SPDX-License-Identifier: MIT
#include "store/packing.hpp"

// Contexts in memory of ours, of a size known beforehand, are in zstd's second, less settled part.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace backsweep {

namespace {

constexpr int level = 1;  // the fastest that codes dense floats at all

std::int64_t packer_bytes() {
    return aligned<std::byte>(static_cast<std::int64_t>(ZSTD_estimateCCtxSize(level)));
}
std::int64_t unpacker_bytes() {
    return aligned<std::byte>(static_cast<std::int64_t>(ZSTD_estimateDCtxSize()));
}

}  // namespace

std::int64_t Packing::memory_bytes() {
    return packer_bytes() + unpacker_bytes() + head + block;
}

std::int64_t Packing::most(std::int64_t bytes) noexcept {
    return bytes + (bytes + block - 1) / block * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

Packing::Packing(Ledger& ledger)
    : memory_(memory_bytes(), Kind::workspace, ledger),
      packer_(ZSTD_initStaticCCtx(memory_.data(), static_cast<std::size_t>(packer_bytes()))),
      unpacker_(ZSTD_initStaticDCtx(memory_.data() + packer_bytes(), static_cast<std::size_t>(unpacker_bytes()))) {}

std::span<std::byte> Packing::place(std::size_t bytes) {
    return {memory_.data() + packer_bytes() + unpacker_bytes() + head, bytes};
}

std::span<const std::byte> Packing::pack(std::span<const std::byte> content) {
    const std::span<std::byte> to = place(content.size());
    const std::size_t packed = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(packer_), to.data(), content.size(),
                                                 content.data(), content.size(), level);
    auto length = static_cast<std::uint32_t>(packed);
    if (ZSTD_isError(packed) || packed >= content.size()) {  // too long for its room, or no shorter
        std::copy(content.begin(), content.end(), to.begin());
        length = static_cast<std::uint32_t>(content.size());
    }
    const std::size_t bytes = sizeof length + length;
    if (length == content.size()) length |= as_it_is;
    std::byte* const first = to.data() - sizeof length;
    std::memcpy(first, &length, sizeof length);
    return {first, bytes};
}

bool Packing::unpack(std::uint32_t length, std::span<std::byte> content) {
    const std::span<std::byte> from = place(static_cast<std::size_t>(bytes_behind(length)));
    if ((length & as_it_is) != 0) {
        if (from.size() != content.size()) return false;
        std::copy(from.begin(), from.end(), content.begin());
        return true;
    }
    return ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(unpacker_), content.data(), content.size(), from.data(),
                               from.size()) == content.size();
}

std::int64_t Packing::bytes_behind(std::uint32_t length) noexcept {
    const std::int64_t bytes = length & ~as_it_is;
    return bytes <= block ? bytes : -1;
}

}  // namespace backsweep
