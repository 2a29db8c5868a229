// SPDX-License-Identifier: MIT
#include "schedule/binomial_walk.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

Index first_advance(BinomialPlace& place, Index left, SweepRule rule, BinomialPlace& behind) {
    return place.advance(left, behind, [rule](const BinomialPlace& here, Index links, Index third) {
        if (rule == SweepRule::fewest_writes) return BinomialPlace::fewest_writes(here, links, third);
        const Index above = links - here.whole;
        const Index shorter = here.whole - here.diagonal;  // B(s, r - 2)
        const Index beside = here.diagonal - third;        // B(s - 1, r - 2)
        if (above <= beside) return shorter + above;
        if (above <= third + beside) return shorter + beside;
        return above <= here.diagonal + third ? links - here.diagonal - third : here.whole;
    });
}

}  // namespace

BinomialWalk::BinomialWalk(Index slots, Slot first, SweepRule rule) : slots_(slots), first_(first), rule_(rule) {
    static_assert(std::is_trivially_default_constructible_v<Depth>);
    try {
        depths_ = std::make_unique_for_overwrite<Depth[]>(static_cast<std::size_t>(slots));
    } catch (const std::bad_alloc&) {
        throw InvalidArgument("the stack of " + std::to_string(slots) + " slots wants " +
                              std::to_string(slots * static_cast<Index>(sizeof(Depth))) +
                              " bytes, which the system refuses; give fewer slots");
    }
}

BinomialWalk::BinomialWalk(std::vector<Slot> places, SweepRule rule)
    : BinomialWalk(static_cast<Index>(places.size()), {}, rule) {
    places_ = std::move(places);
}

void BinomialWalk::begin(Index first, Index last) {
    depth_ = 0;
    at_ = first;
    end_ = last;
    place_ = BinomialPlace::of(last - first, slots_);
    kept_here_ = false;
    walking_ = true;
}

Action* BinomialWalk::begin(Action* to, Index first, Index last, Slot base) {
    begin(first, last);
    kept_here_ = last - first > 1;
    if (kept_here_) depths_[static_cast<std::size_t>(depth_++)] = {first, place_, base.tier, base.index};
    *to++ = kept_here_ ? emit::load(first, base) : emit::take(first, base);
    return to;
}

Action* BinomialWalk::walk(Action* to, const Action* last_start, WayBack& way) {
    if (!walking_) return to;
    // Locals, or every action written would force them back to memory.
    Index at = at_;
    Index end = end_;
    BinomialPlace place = place_;
    Index depth = depth_;
    bool kept_here = kept_here_;
    while (to <= last_start) {
        if (const Index left = end - at; left >= 2) {
            BinomialPlace behind;
            const Index length = first_advance(place, left, rule_, behind);
            if (!kept_here) {
                const Slot to_slot = slot(depth);
                depths_[static_cast<std::size_t>(depth++)] = {at, place, to_slot.tier, to_slot.index};
                *to++ = emit::save(at, to_slot);
            } else {
                depths_[static_cast<std::size_t>(depth - 1)].place = place;
            }
            to = way.advance(to, at, at + length);
            at += length;
            place = behind;
            kept_here = false;
            continue;
        }
        to = way.reverse(to, at);
        end = at;
        if (depth == 0) {
            walking_ = false;
            break;
        }
        const Depth& top = depths_[static_cast<std::size_t>(depth - 1)];
        at = top.step;
        kept_here = end - at > 1;
        if (kept_here) {
            place = top.place;
            *to++ = emit::load(at, top.slot());
        } else {
            *to++ = emit::take(at, top.slot());
            --depth;
        }
    }
    at_ = at;
    end_ = end;
    place_ = place;
    depth_ = depth;
    kept_here_ = kept_here;
    return to;
}

std::vector<DepthCount> count_depths(std::span<const BlockRun> blocks, Index slots, SweepRule rule) {
    // How often the walk stands at this depth with so many links left: beside a state just saved, or one read again.
    struct Visits {
        Index fresh = 0;
        Index read = 0;
    };
    using Segments = std::map<Index, Visits, std::greater<>>;
    Segments here;
    for (const BlockRun& block : blocks) {
        if (block.links >= 2 && block.count > 0) here[block.links].fresh += block.count;
    }
    std::vector<DepthCount> counts;
    for (; !here.empty(); --slots) {
        DepthCount& count = counts.emplace_back();
        Segments above;
        // Longest first: what is read again is shorter than what it was, and comes later.
        for (auto segment = here.begin(); segment != here.end(); ++segment) {
            const auto [left, visits] = *segment;
            const Index all = visits.fresh + visits.read;
            count.writes += visits.fresh;
            if (slots == 1) {
                count.reads += all * (left - 1);
                continue;
            }
            count.reads += all;
            BinomialPlace place = BinomialPlace::of(left, slots);
            BinomialPlace behind;
            const Index length = first_advance(place, left, rule, behind);
            if (left - length >= 2) above[left - length].fresh += all;
            if (length >= 2) here[length].read += all;
        }
        here = std::move(above);
    }
    return counts;
}

}  // namespace backsweep
