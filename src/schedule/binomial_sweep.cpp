// SPDX-License-Identifier: MIT
#include "schedule/binomial_sweep.hpp"

#include "backsweep/base/error.hpp"
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

template <AdvanceRule rule>
[[gnu::always_inline]] inline BinomialSweep::Step BinomialSweep::next_step(BinomialPlace& place, Index left) {
    Step step;
    step.length = place.advance(left, step.place, [](const BinomialPlace& here, Index links, Index third) {
        if constexpr (rule == AdvanceRule::fewest_writes) {
            return BinomialPlace::fewest_writes(here, links, third);
        } else if constexpr (rule == AdvanceRule::longest) {
            return std::min({links - 1, here.whole, links - here.diagonal});
        } else {
            const Index r = here.r;
            const Wide above = wide_mul_div(here.diagonal, here.s + r - 1, r);  // B(s - 1, r)
            const Index least = above < static_cast<Wide>(links) ? links - static_cast<Index>(above) : 1;
            return std::max({Index{1}, here.whole - here.diagonal, least});
        }
    });
    return step;
}

/// The same with the advance that ends on the multiple of `align` nearest to where Revolve's own ends, if an optimal
/// one keeps a state on a multiple.
BinomialSweep::Step BinomialSweep::aligned_step(BinomialPlace& place, Index left, Index at, Index align) {
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

BinomialSweep::BinomialSweep(Index steps, Index slots, AdvanceRule rule, bool needs_state, Index align)
    : way_{steps, needs_state},
      rule_(rule),
      align_(align),
      completes_(false) {
    slots = std::clamp<Index>(way_.links() - 1, 1, slots);
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
    : way_{steps},
      slots_(static_cast<std::int32_t>(slots)),
      rule_(AdvanceRule::fewest_writes),
      completes_(true),
      kept_(std::move(kept)),
      dropped_(std::move(dropped)),
      names_(std::move(names)),
      levels_(make_stack<Level>(static_cast<Index>(kept_.size()) + slots)) {
    begin();
}

void BinomialSweep::begin() {
    drops_ = 0;
    at_ = completes_ ? way_.links() : 0;
    end_ = way_.links();
    place_ = completes_ ? BinomialPlace{} : BinomialPlace::of(end_, slots_);
    depth_ = 0;
    kept_here_ = false;
    way_.turned = false;
    finished_ = false;
    std::int32_t taken = 0;
    for (const auto& [state, launch] : kept_) {
        const bool in_ram = state.slot.tier == Tier::ram;
        BinomialPlace place{};
        if (!launch) {
            const auto above = std::find_if(kept_.begin() + static_cast<std::ptrdiff_t>(depth_) + 1, kept_.end(),
                                            [](const Kept& each) { return !each.launch; });
            const Index end = above == kept_.end() ? end_ : above->state.step;
            // A state on another tier is a slot of its own.
            place = BinomialPlace::of(end - state.step, slots_ - taken + (in_ram ? 0 : 1));
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
    BinomialPlace place = place_;
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
            to = way_.advance(to, at, at + step.length);
            at += step.length;
            place = step.place;
            kept_here = false;
            continue;
        }
        if (left == 1) {
            to = way_.reverse(to, at);
        } else {  // no link at all, or the first sweep lies before
            *to++ = emit::turn(way_.steps);
            way_.turned = true;
        }
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
