// SPDX-License-Identifier: MIT
#include "nn/cpu/team.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace backsweep::cpu {
namespace {

constexpr std::uint64_t mask = (std::uint64_t{1} << Team::most_parts) - 1;

constexpr std::uint64_t number_of(std::uint64_t call) noexcept {
    return call >> Team::most_parts;
}

/// Waits awake, for a while; answers whether it has come to pass. Whoever else wants this core gets it soon.
template <class F>
bool spin(F has_come) noexcept {
    using namespace std::chrono_literals;
    using Clock = std::chrono::steady_clock;
    for (const auto begin = Clock::now();;) {
        for (int k = 0; k < 16; ++k) {
            if (has_come()) return true;
            hwy::Pause();
        }
        const auto passed = Clock::now() - begin;
        if (passed > 50us) return false;
        if (passed > 20us) std::this_thread::yield();
    }
}

}  // namespace

Team::Team(Index members) noexcept : members_(std::clamp<Index>(members, 1, most_parts)) {}

Team::~Team() {
    over_ = true;
    publish(0);
}

void Team::publish(std::uint64_t parts) noexcept {
    call_ = (number_of(call_) + 1) << most_parts | parts;
    // In one order with await_call: it sees the call, or is seen here.
    if (asleep_ == 0) return;
    ++bell_;
    bell_.notify_all();
}

void Team::call(Index parts, Part part, const void* context) {
    while (static_cast<Index>(helpers_.size()) + 1 < members_) {
        const Index member = static_cast<Index>(helpers_.size()) + 1;
        helpers_.emplace_back([this, member] { serve(member); });
    }
    part_.store(part, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    parts_.store(parts, std::memory_order_relaxed);
    ended_.store(0, std::memory_order_relaxed);
    publish((std::uint64_t{1} << parts) - 1);
    await_ends(static_cast<int>(parts) - work(0));
}

int Team::work(Index member) noexcept {
    int done = 0;
    for (std::uint64_t call = call_.load(std::memory_order_acquire); (call & mask) != 0;) {
        // Of this call, if the part is ours below; of a later one, it is not.
        const Part part = part_.load(std::memory_order_relaxed);
        const void* const context = context_.load(std::memory_order_relaxed);
        const Index own = member * parts_.load(std::memory_order_relaxed) / members_;
        const std::uint64_t from_own = call & mask & (~std::uint64_t{0} << own);
        const Index p = std::countr_zero(from_own != 0 ? from_own : call & mask);
        const std::uint64_t rest = call & ~(std::uint64_t{1} << p);
        if (!call_.compare_exchange_weak(call, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
        part(context, p, member);
        ++done;
        call = call_.load(std::memory_order_acquire);
    }
    return done;
}

void Team::serve(Index member) noexcept {
    for (;;) {
        const std::uint64_t number = number_of(call_);
        if (over_) return;
        if (const int done = work(member); done > 0) {
            ended_ += done;
            if (awaited_) ended_.notify_one();
        }
        await_call(number);
    }
}

void Team::await_call(std::uint64_t number) noexcept {
    const auto has_come = [&] { return number_of(call_) != number; };
    if (spin(has_come)) return;
    ++asleep_;
    for (std::uint32_t rung = bell_; !has_come(); rung = bell_) bell_.wait(rung);
    --asleep_;
}

void Team::await_ends(int begun) noexcept {
    if (spin([&] { return ended_.load(std::memory_order_acquire) == begun; })) return;
    awaited_ = true;
    for (int ended = ended_; ended != begun; ended = ended_) ended_.wait(ended);
    awaited_ = false;
}

Team*& team_of_thread() noexcept {
    thread_local Team* team = nullptr;
    return team;
}

}  // namespace backsweep::cpu
