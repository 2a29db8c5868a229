// A store that goes wrong on purpose, and a schedule that uses one.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/schedule.hpp"
#include "backsweep/store/ram_store.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::test {

/// A RamStore that spoils its k-th write, counted from 1; 0 spoils none.
class FaultStore : public Store {
public:
    enum class Fault {
        fails,       ///< the write throws after half of its bytes
        truncates,   ///< the last byte is lost in silence
        flips_a_bit  ///< one bit of the content changes in silence
    };

    FaultStore(Fault fault, Index at_write, std::size_t bit = 1000, Ledger& ledger = Ledger::process())
        : inner_(ledger),
          fault_(fault),
          at_write_(at_write),
          bit_(bit) {}

    Index writes = 0;
    /// Slots that hold something.
    std::size_t full() const noexcept { return full_.size(); }

    void write(std::int32_t slot, std::span<const Blob> blobs) override {
        std::vector<std::byte> bytes;
        for (const Blob& b : blobs) bytes.insert(bytes.end(), b.data, b.data + b.size);
        const bool spoil = ++writes == at_write_;
        if (spoil && fault_ == Fault::fails) bytes.resize(bytes.size() / 2);
        if (spoil && fault_ == Fault::truncates) bytes.pop_back();
        if (spoil && fault_ == Fault::flips_a_bit) bytes[(bit_ / 8) % bytes.size()] ^= std::byte{1} << (bit_ % 8);
        erase(slot);
        const Blob all{bytes.data(), bytes.size()};
        inner_.write(slot, {&all, 1});
        full_.insert(slot);
        if (spoil && fault_ == Fault::fails)
            throw StoreError("fault: write " + std::to_string(writes) + " was cut short");
    }
    void read(std::int32_t slot, std::span<const Blob> blobs) override { inner_.read(slot, blobs); }
    void erase(std::int32_t slot) noexcept override {
        full_.erase(slot);
        inner_.erase(slot);
    }

private:
    RamStore inner_;
    Fault fault_;
    Index at_write_;
    std::size_t bit_;
    std::set<std::int32_t> full_;
};

/// Another schedule whose RAM slots from `first` on lie on disk, numbered from 0.
class Spilled : public Schedule {
public:
    Spilled(std::unique_ptr<Schedule> inner, std::int32_t first) : inner_(std::move(inner)), first_(first) {}

    Action next() override {
        Action a = inner_->next();
        for (Slot* slot : {&a.from, &a.to})
            if (slot->index >= first_) *slot = {Tier::disk, slot->index - first_};
        return a;
    }
    void rewind() override { inner_->rewind(); }

private:
    std::unique_ptr<Schedule> inner_;
    std::int32_t first_;
};

}  // namespace backsweep::test
