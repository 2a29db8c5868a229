// Slots of bytes in RAM, booked in a ledger as `slots`.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/store/store.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>

namespace backsweep {

class BACKSWEEP_API RamStore : public Store {
public:
    explicit RamStore(Ledger& ledger = Ledger::process()) noexcept : ledger_(&ledger) {}

    void write(std::int32_t slot, std::span<const Blob> blobs) override;
    void read(std::int32_t slot, std::span<const Blob> blobs) override;
    void erase(std::int32_t slot) noexcept override;

private:
    std::unordered_map<std::int32_t, Buffer<std::byte>> slots_;
    Ledger* ledger_;
};

}  // namespace backsweep
