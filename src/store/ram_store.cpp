// SPDX-License-Identifier: MIT
#include "backsweep/store/ram_store.hpp"

#include "backsweep/base/error.hpp"

#include <cstring>
#include <string>
#include <utility>

namespace backsweep {

void RamStore::write(std::int32_t slot, std::span<const Blob> blobs) {
    if (slot < 0) throw StoreError("RamStore: a slot is numbered from 0, came " + std::to_string(slot));
    slots_.erase(slot);  // not the old bytes and the new ones at once
    Buffer<std::byte> content(Kind::slots, *ledger_);
    content.resize(static_cast<Index>(total_size(blobs)));
    std::byte* to = content.data();
    for (const Blob& b : blobs) {
        if (b.size != 0) std::memcpy(to, b.data, b.size);
        to += b.size;
    }
    slots_.emplace(slot, std::move(content));
}

void RamStore::read(std::int32_t slot, std::span<const Blob> blobs) {
    const auto found = slots_.find(slot);
    if (found == slots_.end())
        throw StoreError("RamStore: slot " + std::to_string(slot) + " is empty; write it before it is read");
    const Buffer<std::byte>& content = found->second;
    if (total_size(blobs) != static_cast<std::size_t>(content.size())) {
        throw StoreError("RamStore: slot " + std::to_string(slot) + " holds " + std::to_string(content.size()) +
                         " bytes, but " + std::to_string(total_size(blobs)) +
                         " were asked for; read it into an object of the same shape");
    }
    const std::byte* from = content.data();
    for (const Blob& b : blobs) {
        if (b.size != 0) std::memcpy(b.data, from, b.size);
        from += b.size;
    }
}

void RamStore::erase(std::int32_t slot) noexcept {
    slots_.erase(slot);
}

}  // namespace backsweep
