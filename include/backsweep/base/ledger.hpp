// Live bytes and peaks by kind. Every buffer of the library books what it holds into a ledger.
// A ledger passes its bookings on to its parent, so that each chain has peaks of its own and the process has a total.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/export.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace backsweep {

/// What a byte is held for.
enum class Kind : std::int32_t { parameters, gradients, moments, data, carry, slots, tape, log, workspace };
inline constexpr std::size_t kind_count = 9;

/// The kind's name ("parameters").
BACKSWEEP_API const char* to_string(Kind kind) noexcept;

/// Bytes by kind.
struct Bytes {
    std::array<std::int64_t, kind_count> by_kind{};

    std::int64_t& operator[](Kind kind) noexcept { return by_kind[static_cast<std::size_t>(kind)]; }
    std::int64_t operator[](Kind kind) const noexcept { return by_kind[static_cast<std::size_t>(kind)]; }
    std::int64_t total() const noexcept;
    /// What grows with the length of the sequence: data, carry, slots, tape and log.
    std::int64_t time_axis() const noexcept;
    Bytes& operator+=(const Bytes& other) noexcept;
    friend bool operator==(const Bytes&, const Bytes&) = default;
};

inline std::int64_t Bytes::total() const noexcept {
    std::int64_t sum = 0;
    for (const std::int64_t b : by_kind) sum += b;
    return sum;
}

inline std::int64_t Bytes::time_axis() const noexcept {
    const Bytes& b = *this;
    return b[Kind::data] + b[Kind::carry] + b[Kind::slots] + b[Kind::tape] + b[Kind::log];
}

inline Bytes& Bytes::operator+=(const Bytes& other) noexcept {
    for (std::size_t k = 0; k < kind_count; ++k) by_kind[k] += other.by_kind[k];
    return *this;
}

/// Counts live bytes and peaks. Thread-safe. Must outlive every buffer booked into it.
class BACKSWEEP_API Ledger {
public:
    /// A ledger that passes on to the process's.
    Ledger() noexcept : parent_(&process()) {}
    explicit Ledger(Ledger& parent) noexcept : parent_(&parent) {}
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;

    /// The root of all ledgers.
    static Ledger& process() noexcept;

    /// Books `bytes` more (or, negative, fewer) bytes of one kind.
    void book(Kind kind, std::int64_t bytes) noexcept;
    /// Moves `bytes` live bytes from one kind to another; the total and its peak do not change.
    void rebook(Kind from, Kind to, std::int64_t bytes) noexcept;

    Bytes live() const noexcept;
    /// Peak of each kind by itself since construction or reset_peaks().
    Bytes peak() const noexcept;
    std::int64_t live_total() const noexcept { return total_.live.load(std::memory_order_relaxed); }
    /// Peak of the sum over all kinds: at most the sum of the peaks.
    std::int64_t peak_total() const noexcept { return total_.peak.load(std::memory_order_relaxed); }
    /// Sets every peak to the live value.
    void reset_peaks() noexcept;

private:
    struct Count {
        std::atomic<std::int64_t> live{0};
        std::atomic<std::int64_t> peak{0};
        void add(std::int64_t bytes) noexcept;
    };
    struct Root {};
    explicit Ledger(Root) noexcept : parent_(nullptr) {}

    std::array<Count, kind_count> kinds_{};
    Count total_{};
    Ledger* parent_;
};

}  // namespace backsweep
