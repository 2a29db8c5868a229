// SPDX-License-Identifier: MIT
#include "backsweep/data/sequences.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "check_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

namespace backsweep {

namespace {

std::size_t index(Index i) {
    return static_cast<std::size_t>(i);
}

/// The order of 0 .. items.size() - 1 by Fisher and Yates' shuffle, a function of (seed, epoch).
void shuffle(std::vector<Index>& items, std::uint64_t seed, Index epoch) {
    const Random random(seed, 0);
    for (std::size_t k = items.size(); k > 1; --k)
        std::swap(items[k - 1],
                  items[random.below(static_cast<std::uint32_t>(k), static_cast<std::uint64_t>(epoch), k)]);
}

}  // namespace

template <class Real>
std::string Sequences<Real>::problem() const {
    if (begins.empty() || begins.front() != 0 || count() < 1)
        return fmt::format(
            "{}: begins must start with 0 and have one entry more than there are sequences, at least one; it has {}",
            name, begins.size());
    if (count() > 0xffffffff) return fmt::format("{}: at most 2^32 - 1 sequences, got {}", name, count());
    for (Index s = 0; s < count(); ++s)
        if (length(s) < 1)
            return fmt::format("{}: sequence {} has {} steps; leave sequences without a step out", name, s, length(s));
    if (features < 0 || targets < 0)
        return fmt::format("{}: features and targets must be 0 or more, got {} and {}", name, features, targets);
    const Index steps = begins.back(), answers = one_target ? count() : steps;
    const auto size = [&](const char* what, std::size_t has, Index wants, const char* shape) -> std::string {
        if (has == 0 || static_cast<Index>(has) == wants) return {};
        return fmt::format("{}: {} must have the shape {}, {} elements, but has {}", name, what, shape, wants, has);
    };
    const char* const answer = one_target ? "[sequence]" : "[step]";
    const char* const answers_of = one_target ? "[sequence][target]" : "[step][target]";
    for (std::string why : {size("tokens", tokens.size(), steps, "[step]"),
                            size("inputs", inputs.size(), steps * features, "[step][feature]"),
                            size("classes", classes.size(), answers, answer),
                            size("values", values.size(), answers * targets, answers_of),
                            size("weights", weights.size(), steps, "[step]")})
        if (!why.empty()) return why;
    if (tokens.empty() == inputs.empty())
        return fmt::format("{}: either tokens or inputs are wanted, but {} given", name,
                           tokens.empty() ? "none are" : "both are");
    if (one_target && !weights.empty())
        return name + ": with one target a sequence only its last step has a loss; leave weights empty";
    return {};
}

std::string SequenceBatches::problem() const {
    if (batch < 1) return fmt::format("batch must be 1 sequence or more, got {}", batch);
    if (window < 0) return fmt::format("window must be 1 step or more, or 0 for the longest sequence, got {}", window);
    return {};
}

template <class Real>
struct SequenceSource<Real>::Cache {
    std::mutex mutex;
    std::shared_ptr<const Epoch> epoch;
};

template <class Real>
SequenceSource<Real>::SequenceSource(Sequences<Real> set, const SequenceBatches& batches)
    : set_(std::move(set)),
      batches_(batches),
      cache_(std::make_shared<Cache>()) {
    for (const std::string& why : {set_.problem(), batches_.problem()})
        if (!why.empty()) throw InvalidArgument(why);
    for (Index s = 0; s < set_.count(); ++s) longest_ = std::max(longest_, set_.length(s));
    if (batches_.window == 0) batches_.window = longest_;
    batches_.window = std::min(batches_.window, longest_);
    order_.resize(index(set_.count()));
    std::iota(order_.begin(), order_.end(), Index{0});
    if (batches_.groups == SequenceBatches::Groups::by_length)
        std::stable_sort(order_.begin(), order_.end(),
                         [&](Index a, Index b) { return set_.length(a) < set_.length(b); });
    windows_ = static_cast<Index>(epoch(0)->pieces.size());
}

template <class Real>
Index SequenceSource<Real>::longest_of(const Epoch& epoch, Index group) const {
    const Index first = group * batches_.batch, last = std::min(first + batches_.batch, set_.count());
    Index longest = 0;
    for (Index k = first; k < last; ++k) longest = std::max(longest, set_.length(epoch.order[index(k)]));
    return longest;
}

/// Whoever asks for another epoch than the last one asked for makes it; all its numbers are the same every time.
template <class Real>
std::shared_ptr<const typename SequenceSource<Real>::Epoch> SequenceSource<Real>::epoch(Index number) const {
    const std::lock_guard lock(cache_->mutex);
    if (cache_->epoch && cache_->epoch->number == number) return cache_->epoch;
    Epoch e;
    e.number = number;
    e.order = order_;
    const bool mix_all = batches_.shuffle && whole() && batches_.groups == SequenceBatches::Groups::in_order;
    if (mix_all) shuffle(e.order, batches_.seed, number);
    std::vector<Index> groups(index(1 + (set_.count() - 1) / batches_.batch));
    std::iota(groups.begin(), groups.end(), Index{0});
    if (batches_.shuffle && !mix_all) shuffle(groups, batches_.seed, number);
    for (const Index g : groups)
        for (Index first = 0, longest = longest_of(e, g); first < longest; first += batches_.window)
            e.pieces.push_back({g, first});
    cache_->epoch = std::make_shared<const Epoch>(std::move(e));
    return cache_->epoch;
}

template <class Real>
std::int64_t SequenceSource<Real>::step_bytes() const noexcept {
    const auto reals = static_cast<std::int64_t>(sizeof(Real));
    return static_cast<std::int64_t>(sizeof(Mark)) + (set_.tokens.empty() ? 0 : 4) + set_.features * reals +
           (set_.classes.empty() ? 0 : 4) + set_.targets * reals +
           (set_.weights.empty() && !set_.one_target ? 0 : reals);
}

template <class Real>
bool SequenceSource<Real>::fresh(Index window) const noexcept {
    return epoch(window / windows_)->pieces[index(window % windows_)].first == 0;
}

template <class Real>
Index SequenceSource<Real>::sequence(Index window, Index column) const {
    const auto e = epoch(window / windows_);
    const Index place = e->pieces[index(window % windows_)].group * batches_.batch + column;
    return place < set_.count() ? e->order[index(place)] : -1;
}

template <class Real>
double SequenceSource<Real>::filler() const {
    const auto e = epoch(0);
    Index positions = 0;
    for (const Piece& piece : e->pieces)
        positions += std::min(batches_.window, longest_of(*e, piece.group) - piece.first) * batches_.batch;
    return 1.0 - static_cast<double>(set_.begins.back()) / static_cast<double>(positions);
}

template <class Real>
void SequenceSource<Real>::read(const Cut& cut, Batch<Real>& batch) const {
    check_cut(cut, name(), batches_.batch);
    const auto e = epoch(cut.window / windows_);
    const Piece piece = e->pieces[index(cut.window % windows_)];
    const Index last = std::min(piece.first + batches_.window, longest_of(*e, piece.group));
    batch.clear();
    batch.first = std::max<Index>(0, piece.first - cut.look_back);
    batch.steps = last - batch.first;
    batch.batch = cut.sequences.size();
    batch.loss_from = piece.first - batch.first;

    const Index B = batch.batch, positions = batch.steps * B, F = set_.features, K = set_.targets;
    batch.marks.resize(positions);
    std::fill(batch.marks.begin(), batch.marks.end(), Mark::filler);
    batch.tokens.assign(set_.tokens.empty() ? 0 : positions, 0);
    batch.inputs.assign(positions * F, Real{0});
    batch.classes.assign(set_.classes.empty() ? 0 : positions, 0);
    batch.values.assign(positions * K, Real{0});
    batch.weights.assign(set_.weights.empty() && !set_.one_target ? 0 : positions, Real{0});
    for (Index b = 0; b < B; ++b) {
        const Index place = piece.group * batches_.batch + cut.sequences.first + b;
        if (place >= set_.count()) continue;
        const Index s = e->order[index(place)], begin = set_.begins[index(s)], length = set_.length(s);
        for (Index t = 0; t < batch.steps && batch.first + t < length; ++t) {
            const Index at = batch.first + t, from = begin + at, p = t * B + b;
            const bool answered = !set_.one_target || at + 1 == length;
            const Index answer = set_.one_target ? s : from;
            batch.marks[p] = at == 0 ? Mark::first : Mark::step;
            if (!set_.tokens.empty()) batch.tokens[p] = set_.tokens[index(from)];
            if (!set_.inputs.empty()) std::copy_n(set_.inputs.data() + from * F, F, batch.inputs.data() + p * F);
            if (answered && !set_.classes.empty()) batch.classes[p] = set_.classes[index(answer)];
            if (answered && !set_.values.empty())
                std::copy_n(set_.values.data() + answer * K, K, batch.values.data() + p * K);
            if (!batch.weights.empty())
                batch.weights[p] = !set_.weights.empty() ? set_.weights[index(from)] : answered ? Real{1} : Real{0};
        }
    }
}

template struct Sequences<float>;
template struct Sequences<double>;
template class SequenceSource<float>;
template class SequenceSource<double>;

}  // namespace backsweep
