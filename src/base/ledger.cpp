// Bookings and peaks.
// SPDX-License-Identifier: MIT
#include "backsweep/base/ledger.hpp"

namespace backsweep {

const char* to_string(Kind kind) noexcept {
    switch (kind) {
        case Kind::parameters: return "parameters";
        case Kind::gradients: return "gradients";
        case Kind::moments: return "moments";
        case Kind::data: return "data";
        case Kind::carry: return "carry";
        case Kind::slots: return "slots";
        case Kind::tape: return "tape";
        case Kind::log: return "log";
        case Kind::workspace: return "workspace";
    }
    return "unknown";
}

Ledger& Ledger::process() noexcept {
    static Ledger root{Root{}};
    return root;
}

void Ledger::Count::add(std::int64_t bytes) noexcept {
    const std::int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (seen < now && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {}
}

void Ledger::book(Kind kind, std::int64_t bytes) noexcept {
    for (Ledger* l = this; l; l = l->parent_) {
        l->kinds_[static_cast<std::size_t>(kind)].add(bytes);
        l->total_.add(bytes);
    }
}

void Ledger::rebook(Kind from, Kind to, std::int64_t bytes) noexcept {
    if (from == to) return;
    for (Ledger* l = this; l; l = l->parent_) {
        l->kinds_[static_cast<std::size_t>(from)].add(-bytes);
        l->kinds_[static_cast<std::size_t>(to)].add(bytes);
    }
}

Bytes Ledger::live() const noexcept {
    Bytes b;
    for (std::size_t k = 0; k < kind_count; ++k) b.by_kind[k] = kinds_[k].live.load(std::memory_order_relaxed);
    return b;
}

Bytes Ledger::peak() const noexcept {
    Bytes b;
    for (std::size_t k = 0; k < kind_count; ++k) b.by_kind[k] = kinds_[k].peak.load(std::memory_order_relaxed);
    return b;
}

void Ledger::reset_peaks() noexcept {
    const auto reset = [](Count& c) {
        c.peak.store(c.live.load(std::memory_order_relaxed), std::memory_order_relaxed);
    };
    for (Count& c : kinds_) reset(c);
    reset(total_);
}

}  // namespace backsweep
