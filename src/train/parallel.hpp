// Runs independent parts on threads; what they compute does not depend on how many there are.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"
#include "nn/cpu/team.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace backsweep {

/// Threads that stay from one call to the next, and with them their scratch. One caller at a time.
class Workers {
public:
    /// The caller's thread is one of `threads`; the others begin where they are first needed.
    explicit Workers(Index threads) noexcept : threads_(std::max<Index>(1, threads)) {}
    Workers(Workers&&) = delete;
    Workers& operator=(Workers&&) = delete;
    ~Workers() {
        used_ = 0;
        call();
    }

    /// f(0), ..., f(parts - 1), part p on thread p mod threads. Threads that are left over are dealt evenly, as teams
    /// for the products of the others. Rethrows the exception of the lowest part that threw, after all have ended.
    void run(Index parts, const std::function<void(Index)>& f) {
        failures_.assign(static_cast<std::size_t>(parts), nullptr);
        parts_ = parts;
        f_ = &f;
        used_ = std::clamp<Index>(parts, 1, threads_);
        deal();
        while (static_cast<Index>(others_.size()) + 1 < used_) {
            const auto t = static_cast<Index>(others_.size()) + 1;
            others_.emplace_back([this, t, calls = calls_.load()] { serve(t, calls); });
        }
        call();
        work(0);
        for (std::size_t left = left_; left > 0; left = left_) left_.wait(left);
        for (const std::exception_ptr& failure : std::exchange(failures_, {}))
            if (failure) std::rethrow_exception(failure);
    }

private:
    void deal() {
        if (static_cast<Index>(teams_.size()) == used_) return;
        teams_.clear();
        for (Index t = 0; t < used_; ++t) {
            const Index members = threads_ / used_ + (t < threads_ % used_ ? 1 : 0);
            teams_.push_back(members > 1 ? std::make_unique<cpu::Team>(members) : nullptr);
        }
    }
    void call() {
        left_ = others_.size();
        ++calls_;
        calls_.notify_all();
    }
    void serve(Index thread, std::uint64_t calls) {
        for (;;) {
            calls_.wait(calls);
            calls = calls_;
            if (used_ == 0) return;
            work(thread);
            if (--left_ == 0) left_.notify_one();
        }
    }
    void work(Index thread) {
        if (thread >= used_) return;
        const cpu::TeamScope scope(teams_[static_cast<std::size_t>(thread)].get());
        for (Index p = thread; p < parts_; p += used_) {
            try {
                (*f_)(p);
            } catch (...) {
                failures_[static_cast<std::size_t>(p)] = std::current_exception();
            }
        }
    }

    Index threads_;
    // Written between calls alone.
    Index parts_ = 0, used_ = 1;
    const std::function<void(Index)>* f_ = nullptr;
    std::vector<std::exception_ptr> failures_;
    std::vector<std::unique_ptr<cpu::Team>> teams_;  // by thread
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::size_t> left_{0};  // threads that have not ended the call
    std::vector<std::jthread> others_;  // the last member: they end before the rest does
};

}  // namespace backsweep
