// SPDX-License-Identifier: MIT
#include "schedule/split_sweep.hpp"

#include "schedule/emit.hpp"

#include <utility>

namespace backsweep {

SplitSweep::SplitSweep(Index steps, std::vector<Split> splits, bool restart, bool needs_state, Index ram)
    : way_{steps, needs_state},
      splits_(std::move(splits)),
      restart_(restart),
      ram_(ram) {
    begin();
    std::array<Action, 64> walked;
    while (walked[generate(walked) - 1].verb != Verb::done) {}
    begin();
}

void SplitSweep::begin() {
    frames_.clear();
    met_ = 0;
    used_ = 0;
    now_ = {{0, way_.links()}, Origin::nowhere, 0};
    way_.turned = false;
    finished_ = false;
}

Slot SplitSweep::slot(std::int32_t number) const {
    if (number < ram_) return {Tier::ram, number};
    return {Tier::disk, static_cast<std::int32_t>(number - ram_)};
}

std::size_t SplitSweep::generate(std::span<Action> out) {
    Action* to = out.data();
    const Action* const last_start = to + (out.size() - reach);
    while (to <= last_start) {
        if (finished_) {
            *to++ = emit::done();
            break;
        }
        if (now_.links.size() >= 2) {
            to = split(to);
        } else if (now_.links.size() == 1) {
            to = way_.reverse(to, now_.links.first);
            now_.links = {};
        } else {
            to = resume(to);
        }
    }
    return static_cast<std::size_t>(to - out.data());
}

Action* SplitSweep::split(Action* to) {
    const Split split = splits_[met_++];
    const Index first = now_.links.first;
    const Index kept = first + split.links;
    const Index target = split.tape ? kept - 1 : kept;
    if (target > first) {
        if (now_.origin == Origin::nowhere) {
            *to++ = emit::save(first, slot(used_));
            now_.origin = Origin::state;
            now_.slot = used_++;
        }
        frames_.push_back({{first, target}, now_.origin, now_.slot});
        to = way_.advance(to, first, target);
    }
    const Index last = now_.links.last;
    now_ = {{kept, last}, Origin::nowhere, 0};
    if (!split.tape) return to;
    if (kept == last) {
        now_.links.first = target;
        return to;
    }
    *to++ = emit::record(target);
    *to++ = emit::stow(target, slot(used_));
    frames_.push_back({{target, target}, Origin::tape, used_});
    if (restart_) {
        now_.origin = Origin::tape;
        now_.slot = used_;
    }
    ++used_;
    return to;
}

/// Down to the next tape or segment.
Action* SplitSweep::resume(Action* to) {
    if (frames_.empty()) {
        if (!way_.turned) *to++ = emit::turn(way_.steps);  // no link at all
        way_.turned = true;
        finished_ = true;
        return to;
    }
    now_ = frames_.back();
    frames_.pop_back();
    const Index first = now_.links.first;
    const Slot from = slot(now_.slot);
    if (now_.links.empty()) {
        *to++ = emit::fetch(first, from);
        *to++ = emit::reverse(first);
        --used_;
        return to;
    }
    if (now_.origin == Origin::tape) {
        *to++ = emit::restart(first, from);
        return to;
    }
    const bool again = now_.links.size() >= 2 && !(splits_[met_].tape && splits_[met_].links == 1);
    if (again) {
        *to++ = emit::load(first, from);
    } else {
        *to++ = emit::take(first, from);
        now_.origin = Origin::nowhere;
        --used_;
    }
    return to;
}

}  // namespace backsweep
