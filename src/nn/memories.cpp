// SPDX-License-Identifier: MIT
#include "backsweep/nn/memories.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/nn/dual.hpp"

#include <algorithm>
#include <utility>

namespace backsweep {

std::string MemoryPlaces::problem(std::size_t memories) const {
    if (!places.empty() && places.size() != memories)
        return "one place for each of the " + std::to_string(memories) + " memories of this model is wanted, got " +
               std::to_string(places.size());
    const bool files = std::count(places.begin(), places.end(), MemoryPlace::file) > 0;
    if (files && folder.empty()) return "a memory in a file wants a folder; name one";
    if (!files && !folder.empty())
        return "the folder '" + folder + "' has no effect without a memory in a file; leave it out";
    return {};
}

template <class Real>
MemoryLayout memory_layout(const Network<Real>& network, Index batch, Index steps, const MemoryPlaces& places) {
    const std::vector<MemoryShape>& memories = network.memories();
    MemoryLayout l;
    l.state = l.between = l.adjoint = network.carry() * batch;
    const auto put = [](std::vector<Index>& offsets, Index& size, bool there, Index count) {
        offsets.push_back(there ? size : -1);
        if (there) size += count;
    };
    for (std::size_t m = 0; m < memories.size(); ++m) {
        const Index row = memories[m].features * batch, kept = memories[m].rows * row;
        const Index segment = aligned<Real>(kept + steps * row);
        const bool in_state = places.of(m) == MemoryPlace::state, gradient = memories[m].gradient;
        put(l.in_state, l.state, in_state, kept);
        put(l.in_between, l.between, true, kept);
        put(l.in_adjoint, l.adjoint, gradient, kept);
        put(l.in_area, l.area, in_state, segment);
        put(l.in_darea, l.darea, gradient, segment);
    }
    l.carry_alone = l.state == network.carry() * batch && l.adjoint == l.state;
    l.between += network.remembered() * batch;
    l.seen = memories.empty() ? 0 : (2 * network.remembered() + 1) * batch;
    return l;
}

template <class Real>
std::int64_t memory_log_bytes(const Network<Real>& network, Index batch, Index steps, Index chunk, bool carried,
                              const MemoryPlaces& places) {
    Index elements = 0;
    const std::vector<MemoryShape>& memories = network.memories();
    for (std::size_t m = 0; m < memories.size(); ++m) {
        const Index all = steps + (carried ? memories[m].rows : 0), near = memories[m].rows + std::min(chunk, steps);
        const Index row = memories[m].features * batch;
        if (places.of(m) == MemoryPlace::log) elements += all * row;
        if (places.of(m) == MemoryPlace::file) elements += std::min(all, near) * row;
    }
    return elements * static_cast<std::int64_t>(sizeof(Real));
}

template <class Real>
std::int64_t memory_file_bytes(const Network<Real>& network, Index batch, Index steps, bool carried,
                               const MemoryPlaces& places) {
    Index elements = 0;
    const std::vector<MemoryShape>& memories = network.memories();
    for (std::size_t m = 0; m < memories.size(); ++m)
        if (places.of(m) == MemoryPlace::file)
            elements += (steps + (carried ? memories[m].rows : 0)) * memories[m].features * batch;
    return elements * static_cast<std::int64_t>(sizeof(Real));
}

template <class Real>
Memories<Real>::Memories(const Network<Real>& network, Index batch, Index chunk, MemoryPlaces places, Ledger& ledger)
    : network_(&network),
      batch_(batch),
      chunk_(chunk),
      places_(std::move(places)),
      ledger_(&ledger),
      flags_(Kind::workspace, ledger),
      seen_(Kind::workspace, ledger),
      scratch_(Kind::workspace, ledger),
      rows_(memories().size()),
      drows_(memories().size()) {
    if (const std::string why = places_.problem(memories().size()); !why.empty()) throw InvalidArgument(why);
    for (std::size_t m = 0; m < memories().size(); ++m)
        logs_.emplace_back(ledger, places_.of(m) == MemoryPlace::file ? places_.folder : std::string{});
    layout_ = memory_layout(network, batch, 0, places_);
}

template <class Real>
void Memories<Real>::show(Index steps, const Mark* marks, const std::uint8_t* key_padding, bool begins) {
    layout_ = memory_layout(*network_, batch_, std::min(chunk_, steps), places_);
    steps_ = steps;
    marks_ = marks;
    key_padding_ = key_padding;
    begins_ = begins;
    if (memories().empty()) return;
    scratch_.reserve(std::max(layout_.area, layout_.darea));
    flags_.reserve(network_->remembered() * batch_);
    seen_.reserve((network_->remembered() + 1) * batch_);
}

template <class Real>
Real* Memories<Real>::logged_row(std::size_t memory, Index step) {
    return logs_[memory].data() + (step + (carried_ ? memories()[memory].rows : 0)) * row(memory);
}

template <class Real>
void Memories<Real>::first(const Real* between, Real* state) const {
    if (!between) {
        std::fill_n(state, layout_.state, Real{0});
        return;
    }
    std::copy_n(between, network_->carry() * batch_, state);
    for (std::size_t m = 0; m < memories().size(); ++m)
        if (!logged(m))
            std::copy_n(between + layout_.in_between[m], memories()[m].rows * row(m), state + layout_.in_state[m]);
}

template <class Real>
void Memories<Real>::start(const Real* between, Real* state) {
    first(between, state);
    if (memories().empty()) return;
    carried_ = between != nullptr;
    for (std::size_t m = 0; m < memories().size(); ++m) {
        const Index rows = memories()[m].rows, kept = rows * row(m), window = steps_ * row(m);
        if (logged(m)) logs_[m].reserve(window + (carried_ ? kept : 0), kept + std::min(chunk_, steps_) * row(m));
        if (between && logged(m)) std::copy_n(between + layout_.in_between[m], kept, logged_row(m, -rows));
    }
    const Index flags = network_->remembered() * batch_;
    flags_.resize(flags);
    for (Index k = 0; carried_ && k < flags; ++k) flags_[k] = between[layout_.between - flags + k] != Real{0};
}

/// seen_ of the rows before `step`: a key is seen by the sequences that go on at that step. Rows that none sees count
/// only where an earlier one is seen, so that what a segment computes does not depend on where windows are cut.
template <class Real>
void Memories<Real>::remember(Index step) {
    const Index most = network_->remembered();
    std::uint8_t* const goes_on = seen_.data() + most * batch_;
    seen_.resize((most + 1) * batch_);
    std::fill_n(goes_on, batch_, std::uint8_t{1});
    remembered_ = 0;
    for (Index back = 1; back <= most; ++back) {
        const Index t = step - back;
        if (t < 0 && (!carried_ || begins_ || most + t < 0)) break;
        bool any = false, on = false;
        for (Index b = 0; b < batch_; ++b) {
            bool seen = goes_on[b] != 0;
            if (t < 0) {
                seen = seen && flags_[(most + t) * batch_ + b] != 0;
            } else {
                const Mark mark = marks_ ? marks_[t * batch_ + b] : Mark::step;
                seen = seen && mark != Mark::filler && !(key_padding_ && key_padding_[t * batch_ + b] != 0);
                if (mark == Mark::first || (begins_ && t == 0)) goes_on[b] = 0;
            }
            seen_[(most - back) * batch_ + b] = seen;
            any = any || seen;
            on = on || goes_on[b] != 0;
        }
        if (any) remembered_ = back;
        if (!on) break;
    }
}

template <class Real>
void Memories<Real>::between(Index step, const Real* state, Real* between) {
    std::copy_n(state, network_->carry() * batch_, between);
    if (memories().empty()) return;
    remember(step);
    for (std::size_t m = 0; m < memories().size(); ++m) {
        const Index rows = memories()[m].rows;
        Real* const to = between + layout_.in_between[m];
        if (!logged(m)) {
            std::copy_n(state + layout_.in_state[m], rows * row(m), to);
            continue;
        }
        const Index there = std::min(rows, step + (carried_ ? rows : 0));
        std::fill_n(to, (rows - there) * row(m), Real{0});
        if (there > 0) std::copy_n(logged_row(m, step - there), there * row(m), to + (rows - there) * row(m));
    }
    const Index most = network_->remembered(), flags = most * batch_, unseen = (most - remembered_) * batch_;
    Real* const to = between + layout_.between - flags;
    for (Index k = 0; k < flags; ++k) to[k] = k >= unseen && seen_[k] != 0 ? Real{1} : Real{0};
}

template <class Real>
void Memories<Real>::point(Segment<Real>& at, Index step, Index steps, Real* area) {
    if (memories().empty()) return;
    remember(step);
    at.remembered = remembered_;
    at.seen = seen_.data() + (network_->remembered() - remembered_) * batch_;
    for (std::size_t m = 0; m < memories().size(); ++m) {
        rows_[m] = logged(m) ? logged_row(m, step - before(m)) : area + layout_.in_area[m];
        if (places_.of(m) != MemoryPlace::file) continue;
        const Index first = rows_[m] - logs_[m].data();
        logs_[m].resident(first, first + (before(m) + steps) * row(m));
    }
}

template <class Real>
void Memories<Real>::load(const Real* state) {
    for (std::size_t m = 0; m < memories().size(); ++m)
        if (!logged(m))
            std::copy_n(state + layout_.in_state[m] + (memories()[m].rows - before(m)) * row(m), before(m) * row(m),
                        rows_[m]);
}

template <class Real>
void Memories<Real>::keep(Index steps, Real* state) const {
    for (std::size_t m = 0; m < memories().size(); ++m) {
        if (logged(m)) continue;
        const Index rows = memories()[m].rows, has = before(m) + steps, kept = std::min(rows, has);
        Real* const to = state + layout_.in_state[m];
        std::fill_n(to, (rows - kept) * row(m), Real{0});
        std::copy_n(rows_[m] + (has - kept) * row(m), kept * row(m), to + (rows - kept) * row(m));
    }
}

template <class Real>
void Memories<Real>::spread(Index steps, const Real* adjoint) {
    for (std::size_t m = 0; m < memories().size(); ++m) {
        if (!memories()[m].gradient) continue;
        const Index rows = memories()[m].rows, has = before(m) + steps, kept = std::min(rows, has);
        drows_[m] = scratch_.data() + layout_.in_darea[m];
        std::fill_n(drows_[m], (has - kept) * row(m), Real{0});
        std::copy_n(adjoint + layout_.in_adjoint[m] + (rows - kept) * row(m), kept * row(m),
                    drows_[m] + (has - kept) * row(m));
    }
}

template <class Real>
void Memories<Real>::collect(Real* adjoint) const {
    for (std::size_t m = 0; m < memories().size(); ++m) {
        if (!memories()[m].gradient) continue;
        const Index unseen = (memories()[m].rows - before(m)) * row(m);
        Real* const to = adjoint + layout_.in_adjoint[m];
        std::fill_n(to, unseen, Real{0});
        std::copy_n(drows_[m], before(m) * row(m), to + unseen);
    }
}

template class Memories<float>;
template class Memories<double>;
template class Memories<Dual<double>>;
template MemoryLayout memory_layout(const Network<float>&, Index, Index, const MemoryPlaces&);
template MemoryLayout memory_layout(const Network<double>&, Index, Index, const MemoryPlaces&);
template MemoryLayout memory_layout(const Network<Dual<double>>&, Index, Index, const MemoryPlaces&);
template std::int64_t memory_log_bytes(const Network<float>&, Index, Index, Index, bool, const MemoryPlaces&);
template std::int64_t memory_log_bytes(const Network<double>&, Index, Index, Index, bool, const MemoryPlaces&);
template std::int64_t memory_log_bytes(const Network<Dual<double>>&, Index, Index, Index, bool, const MemoryPlaces&);
template std::int64_t memory_file_bytes(const Network<float>&, Index, Index, bool, const MemoryPlaces&);
template std::int64_t memory_file_bytes(const Network<double>&, Index, Index, bool, const MemoryPlaces&);
template std::int64_t memory_file_bytes(const Network<Dual<double>>&, Index, Index, bool, const MemoryPlaces&);

}  // namespace backsweep
