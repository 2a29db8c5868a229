// SPDX-License-Identifier: MIT
#include "schedule/binomial_sweep.hpp"

#include "backsweep/base/error.hpp"
#include "schedule/binomial.hpp"
#include "schedule/emit.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace backsweep {
namespace {

template <class Level>
std::unique_ptr<Level[]> make_stack(Index size) {
    try {
        return std::make_unique_for_overwrite<Level[]>(static_cast<std::size_t>(size));
    } catch (const std::bad_alloc&) {
        throw InvalidArgument("revolve: the stack of " + std::to_string(size) + " slots wants " +
                              std::to_string(size * static_cast<Index>(sizeof(Level))) +
                              " bytes, which the system refuses; give fewer slots");
    }
}

}  // namespace

/// Lowers `place` until it fits `left` >= 2 links, chooses the advance, and finds the place behind it. Inlined into the
/// walks: a call costs a third of the time an action takes.
template <AdvanceRule rule>
[[gnu::always_inline]] inline BinomialSweep::Step BinomialSweep::next_step(Place& place, Index left) {
    const Index s = place.s;
    const Place behind{1, 1, 1, place.s - 1};
    if (s == 1) return {left - 1, behind};
    if (left <= s + 1) return {1, behind};
    while (place.whole >= left) {
        place.whole -= place.diagonal;  // B(s, r - 2) = B(s, r - 1) - B(s - 1, r - 1)
        place.diagonal = mul_div(place.diagonal, place.r - 1, s + place.r - 2);
        --place.r;
    }
    const Index r = place.r;
    const Index third = mul_div(place.diagonal, s - 1, s + r - 2);  // B(s - 2, r - 1)
    Index length = 0;
    if constexpr (rule == AdvanceRule::fewest_writes) {  // [GW00, p. 34]
        if (left - place.whole <= third) {
            length = place.whole - place.diagonal;
        } else if (left - place.whole < place.diagonal + third) {
            length = left - place.diagonal - third;
        } else {
            length = place.whole;
        }
    } else if constexpr (rule == AdvanceRule::longest) {
        length = std::min({left - 1, place.whole, left - place.diagonal});
    } else {
        const Wide above = wide_mul_div(place.diagonal, s + r - 1, r);
        const Index least = above < static_cast<Wide>(left) ? left - static_cast<Index>(above) : 1;  // B(s - 1, r)
        length = std::max({Index{1}, place.whole - place.diagonal, least});
    }
    return {length, {place.diagonal, third, place.r, place.s - 1}};
}

/// The same with the advance that ends on the multiple of `align` nearest to where Revolve's own ends, if an optimal
/// one keeps a state on a multiple.
BinomialSweep::Step BinomialSweep::aligned_step(Place& place, Index left, Index at, Index align) {
    Step step = next_step<AdvanceRule::fewest_writes>(place, left);
    const Index shortest = next_step<AdvanceRule::shortest>(place, left).length;
    const Index longest = std::min(next_step<AdvanceRule::longest>(place, left).length, left - 2);
    const Index below = step.length - (at + step.length) % align;
    // align may be so large that the next multiple has no number.
    const bool below_fits = below >= shortest && below <= longest;
    const bool above_fits = align <= longest - below && below + align >= shortest;
    if (below_fits && (!above_fits || step.length - below <= below + align - step.length)) {
        step.length = below;
    } else if (above_fits) {
        step.length = below + align;
    }
    return step;
}

BinomialSweep::Place BinomialSweep::place_of(Index links, Index slots) {
    const auto s = static_cast<std::int32_t>(slots);
    if (s == 1 || links <= slots + 1) return {1, 1, 1, s};
    const Index r = repetitions(links, slots);
    return {binomial(slots, r - 1), binomial(slots - 1, r - 1), static_cast<std::uint32_t>(r), s};
}

BinomialSweep::BinomialSweep(Index steps, Index slots, AdvanceRule rule, bool needs_state, Index align)
    : steps_(steps),
      links_(steps + (needs_state ? 1 : 0)),
      rule_(rule),
      align_(align),
      needs_state_(needs_state),
      completes_(false) {
    slots = std::clamp<Index>(links_ - 1, 1, slots);
    if (slots > std::numeric_limits<std::int32_t>::max()) {
        throw InvalidArgument("revolve: " + std::to_string(slots) +
                              " slots are more than the 2147483647 that have numbers; give fewer slots");
    }
    slots_ = static_cast<std::int32_t>(slots);
    levels_ = make_stack<Level>(slots);
    begin();
}

BinomialSweep::BinomialSweep(Index steps, Index slots, std::vector<Kept> kept, std::vector<Stored> dropped,
                             std::vector<std::int32_t> names)
    : steps_(steps),
      links_(steps),
      slots_(static_cast<std::int32_t>(slots)),
      rule_(AdvanceRule::fewest_writes),
      needs_state_(false),
      completes_(true),
      kept_(std::move(kept)),
      dropped_(std::move(dropped)),
      names_(std::move(names)),
      levels_(make_stack<Level>(static_cast<Index>(kept_.size()) + slots)) {
    begin();
}

void BinomialSweep::begin() {
    drops_ = 0;
    at_ = completes_ ? links_ : 0;
    end_ = links_;
    place_ = completes_ ? Place{} : place_of(links_, slots_);
    depth_ = 0;
    kept_here_ = false;
    turned_ = false;
    finished_ = false;
    std::int32_t taken = 0;
    for (const auto& [state, launch] : kept_) {
        const bool in_ram = state.slot.tier == Tier::ram;
        Place place{};
        if (!launch) {
            const auto above = std::find_if(kept_.begin() + static_cast<std::ptrdiff_t>(depth_) + 1, kept_.end(),
                                            [](const Kept& each) { return !each.launch; });
            const Index end = above == kept_.end() ? links_ : above->state.step;
            // A state on another tier is a slot of its own.
            place = place_of(end - state.step, slots_ - taken + (in_ram ? 0 : 1));
        }
        levels_[depth_++] = {state.step, place, state.slot.tier, state.slot.index};
        if (in_ram) ++taken;
    }
}

std::size_t BinomialSweep::generate(std::span<Action> out) {
    std::size_t written = 0;
    while (drops_ < dropped_.size() && written < out.size()) {
        const Stored& state = dropped_[drops_++];
        out[written++] = emit::drop_state(state.step, state.slot);
    }
    const std::span<Action> rest = out.subspan(written);
    if (rest.size() < reach) return written;
    switch (rule_) {
        case AdvanceRule::fewest_writes:
            return written + walk<AdvanceRule::fewest_writes>(rest);
        case AdvanceRule::longest:
            return written + walk<AdvanceRule::longest>(rest);
        case AdvanceRule::shortest:
            return written + walk<AdvanceRule::shortest>(rest);
        case AdvanceRule::aligned:
            return written + walk<AdvanceRule::aligned>(rest);
        case AdvanceRule::fewest_disk:
            break;
    }
    return written;
}

template <AdvanceRule rule>
std::size_t BinomialSweep::walk(std::span<Action> out) {
    Action* to = out.data();
    Action* const last_start = to + (out.size() - reach);
    // Locals, or every action written would force them back to memory.
    Index at = at_;
    Index end = end_;
    Place place = place_;
    std::size_t depth = depth_;
    bool kept_here = kept_here_;
    while (to <= last_start) {
        if (finished_) {
            *to++ = emit::done();
            break;
        }
        const Index left = end - at;
        if (left >= 2) {
            Step step;
            if constexpr (rule == AdvanceRule::aligned) {
                step = aligned_step(place, left, at, align_);
            } else {
                step = next_step<rule>(place, left);
            }
            if (!kept_here) {
                const auto k = static_cast<std::size_t>(slots_ - place.s);
                const Slot slot{Tier::ram, k < names_.size() ? names_[k] : slots_ - place.s};
                *to++ = emit::save(at, slot);
                levels_[depth++] = {at, place, slot.tier, slot.index};
            } else {
                levels_[depth - 1].place = place;
            }
            *to++ = emit::advance(at, at + step.length);
            at += step.length;
            place = step.place;
            kept_here = false;
            continue;
        }
        const bool runs = left == 1 && (turned_ || !needs_state_);
        if (runs) *to++ = turned_ ? emit::tape(at) : emit::record(at);
        if (!turned_) *to++ = emit::turn(steps_);
        turned_ = true;
        if (runs) *to++ = emit::reverse(at);
        end = at;
        if (depth == 0) {
            finished_ = true;
            continue;
        }
        const Level& top = levels_[depth - 1];
        const Slot slot{top.tier, top.index};
        at = top.step;
        if (top.place.r == 0) {
            // The foot's rule alone might stop short of the launch; its longest advance reaches beyond.
            Level& foot = levels_[depth - 2];
            const Step step = next_step<AdvanceRule::longest>(foot.place, end - foot.step);
            *to++ = emit::take(at, slot);
            *to++ = emit::advance(at, foot.step + step.length);
            at = foot.step + step.length;
            place = step.place;
            kept_here = false;
            --depth;
            continue;
        }
        kept_here = end - at > 1;
        if (kept_here) {
            place = top.place;
            *to++ = emit::load(at, slot);
        } else {
            *to++ = emit::take(at, slot);
            --depth;
        }
    }
    at_ = at;
    end_ = end;
    place_ = place;
    depth_ = depth;
    kept_here_ = kept_here;
    return static_cast<std::size_t>(to - out.data());
}

}  // namespace backsweep
