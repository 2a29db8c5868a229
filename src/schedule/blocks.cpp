// SPDX-License-Identifier: MIT
#include "schedule/blocks.hpp"

#include "schedule/emit.hpp"

#include <utility>

namespace backsweep {
namespace {

Slot ram(Index index) {
    return {Tier::ram, static_cast<std::int32_t>(index)};
}

}  // namespace

std::vector<std::map<Index, Index>> ranges_by_length(Index steps, const Cut& outermost, Index deeper, Index count) {
    std::vector<std::map<Index, Index>> levels{{{steps, 1}}};
    for (Index level = 0; level <= deeper; ++level) {
        std::map<Index, Index> blocks;
        for (const auto& [links, times] : levels.back()) {
            const Cut cut = level == 0 ? outermost : Cut::into(count, links);
            if (cut.count > 1) blocks[cut.length] += times * (cut.count - 1);
            blocks[cut.last(links)] += times;
        }
        levels.push_back(std::move(blocks));
    }
    return levels;
}

BlockSlots Blocks::slots(Index steps, const Cut& outermost, Index deeper, Index count, bool needs_state) {
    BlockSlots slots{outermost.count - 1, 0, 0};
    Index longest = 0;
    if (outermost.starts.empty()) {
        const auto levels = ranges_by_length(steps, outermost, deeper, count);
        longest = levels.back().rbegin()->first;
        std::map<Index, Index> starts;  // kept at once in a block, by its length
        for (std::size_t level = levels.size() - 1; level-- > 0;) {
            std::map<Index, Index> above;
            for (const auto& [links, times] : levels[level]) {
                const Cut cut = level == 0 ? outermost : Cut::into(count, links);
                Index& kept = above[links];
                kept = cut.count - 1 + starts[cut.last(links)];
                // A block below the last one takes its own start or cuts on from it.
                if (cut.count > 1) kept = std::max(kept, cut.count - 2 + starts[cut.length]);
            }
            starts = std::move(above);
        }
        slots.starts = starts[steps];
    } else {
        for (Index block = 0; block < outermost.count; ++block) {
            longest = std::max(longest, outermost.end(block, steps) - outermost.start(block));
        }
    }
    slots.states = needs_state ? longest : 0;
    slots.tapes = std::max<Index>(longest - 1, 0);
    return slots;
}

Blocks::Blocks(Index steps, Cut outermost, Index deeper, Index count, bool needs_state)
    : steps_(steps),
      outermost_(std::move(outermost)),
      depth_(1 + deeper),
      count_(count),
      needs_state_(needs_state),
      slots_(slots(steps, outermost_, deeper, count, needs_state)) {
    levels_.reserve(static_cast<std::size_t>(depth_));
    begin();
}

void Blocks::begin() {
    levels_.clear();
    phase_ = Phase::descend;
    now_ = {0, steps_};
    held_ = false;
    kept_ = 0;
    turned_ = false;
}

Index Blocks::start(const Level& level, Index block) const {
    return &level == levels_.data() ? outermost_.start(block) : level.range.first + block * level.length;
}

/// Where x_link lies for its reverse: the block's own start where it was kept, the others behind all starts.
Slot Blocks::state_slot(Index link) const {
    return link == now_.first && held_ ? ram(kept_) : ram(slots_.starts + link - now_.first);
}

std::size_t Blocks::generate(std::span<Action> out) {
    Action* to = out.data();
    const Action* const last_start = to + (out.size() - reach);
    while (to <= last_start) {
        switch (phase_) {
            case Phase::descend:
                to = descend(to);
                break;
            case Phase::sweep:
                to = sweep(to);
                break;
            case Phase::record:
                to = record(to, last_start);
                break;
            case Phase::reverse:
                to = reverse(to, last_start);
                break;
            case Phase::done:
                *to++ = emit::done();
                return static_cast<std::size_t>(to - out.data());
        }
    }
    return static_cast<std::size_t>(to - out.data());
}

/// From the start of a block into its own blocks, if it has any.
Action* Blocks::descend(Action* to) {
    if (now_.empty()) {
        *to++ = emit::turn(steps_);
        phase_ = Phase::done;
        return to;
    }
    if (static_cast<Index>(levels_.size()) == depth_) {
        if (held_) --kept_;
        link_ = now_.first;
        tapes_ = slots_.starts + slots_.states - now_.first;
        phase_ = Phase::record;
        return to;
    }
    const bool outermost = levels_.empty();
    const Cut cut = outermost ? Cut{outermost_.count, outermost_.length, {}} : Cut::into(count_, now_.size());
    levels_.push_back({now_, cut.count, cut.length, 0});
    if (cut.count == 1) return to;
    if (held_) {
        *to++ = emit::load(now_.first, ram(kept_ - 1));
        held_ = false;
    } else {
        *to++ = emit::save(now_.first, ram(kept_++));
    }
    Level& level = levels_.back();
    *to++ = emit::advance(now_.first, start(level, 1));
    level.block = 1;
    phase_ = Phase::sweep;
    return to;
}

/// One block advanced, its start kept; from the last one it goes down.
Action* Blocks::sweep(Action* to) {
    Level& level = levels_.back();
    const Index first = start(level, level.block);
    if (level.block + 1 == level.count) {
        now_ = {first, level.range.last};
        phase_ = Phase::descend;
        return to;
    }
    *to++ = emit::save(first, ram(kept_++));
    *to++ = emit::advance(first, start(level, ++level.block));
    return to;
}

/// The links of an innermost block on the way up.
Action* Blocks::record(Action* to, const Action* last_start) {
    const Index final_link = now_.last - 1;
    const auto bring_state = [&](Index link) {
        if (held_ && link == now_.first) {
            const bool kept = needs_state_ && link < final_link;
            *to++ = kept ? emit::load(link, state_slot(link)) : emit::take(link, state_slot(link));
        } else if (needs_state_ && !(link == final_link && turned_)) {
            *to++ = emit::save(link, state_slot(link));
        }
    };
    Index link = link_;
    for (; link < final_link && to <= last_start; ++link) {
        bring_state(link);
        *to++ = emit::record(link);
        *to++ = emit::stow(link, ram(tapes_ + link));
    }
    link_ = link;
    if (to > last_start) return to;
    bring_state(link_);
    if (turned_) {
        *to++ = emit::tape(link_);
    } else {
        *to++ = emit::record(link_);
        *to++ = emit::turn(steps_);
        turned_ = true;
        if (needs_state_) *to++ = emit::take(link_, state_slot(link_));
    }
    *to++ = emit::reverse(link_);
    phase_ = Phase::reverse;
    return to;
}

/// The links of the block on the way down, then the block below.
Action* Blocks::reverse(Action* to, const Action* last_start) {
    Index link = link_;
    while (link > now_.first && to <= last_start) {
        --link;
        *to++ = emit::fetch(link, ram(tapes_ + link));
        if (needs_state_) *to++ = emit::take(link, state_slot(link));
        *to++ = emit::reverse(link);
    }
    link_ = link;
    if (link > now_.first) return to;
    while (!levels_.empty() && levels_.back().block == 0) levels_.pop_back();
    if (levels_.empty()) {
        phase_ = Phase::done;
        return to;
    }
    Level& level = levels_.back();
    const Index last = start(level, level.block);
    now_ = {start(level, --level.block), last};
    held_ = true;
    phase_ = Phase::descend;
    return to;
}

}  // namespace backsweep
