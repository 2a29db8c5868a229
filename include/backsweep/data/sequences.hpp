// Sequences of unequal length in batches: side by side behind fillers, cut into windows, each state its sequence's own.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/data/batches.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace backsweep {

/// Sequences in memory, one behind the other: sequence s has the steps [begins[s], begins[s + 1]). Arrays are [step] or
/// [step][feature]; those that the model has no use for are empty.
template <class Real>
struct Sequences {
    std::string name = "sequences";
    std::vector<Index> begins{0};  ///< one more than there are sequences, rising
    std::vector<std::int32_t> tokens;
    std::vector<Real> inputs;
    std::vector<std::int32_t> classes;
    std::vector<Real> values;
    std::vector<Real> weights;  ///< of each step's loss; empty: all 1
    Index features = 0;         ///< of inputs
    Index targets = 0;          ///< of values
    /// classes or values have one entry a sequence, the target of its last step; the others have no loss.
    bool one_target = false;

    Index count() const noexcept { return static_cast<Index>(begins.size()) - 1; }
    Index length(Index s) const {
        return begins[static_cast<std::size_t>(s) + 1] - begins[static_cast<std::size_t>(s)];
    }
    /// Appends a sequence of so many steps; its data are appended by the caller.
    void append(Index steps) { begins.push_back(begins.back() + steps); }

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// How sequences stand side by side.
struct SequenceBatches {
    enum class Groups {
        in_order,  ///< neighbours of the set; a shuffle mixes all sequences where the window holds the longest, and the
                   ///< order of the groups where not, since states go on from window to window
        by_length  ///< sequences of similar length, so that there are few fillers; a shuffle mixes the order of the
                   ///< groups
    };
    Index batch = 32;  ///< the last group may have fewer sequences; the rest is filler
    Index window = 0;  ///< steps; 0: the longest sequence
    Groups groups = Groups::in_order;
    bool shuffle = false;    ///< in another order every epoch, a function of seed and epoch
    std::uint64_t seed = 1;  ///< of the shuffle

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
};

/// Group after group; of a group, window after window. A window has marks: `first` where a sequence begins, `filler`
/// behind its end, so that its state is its own whatever stood in its column before.
template <class Real>
class SequenceSource final : public Source<Real> {
public:
    /// Throws InvalidArgument: problem() of either.
    SequenceSource(Sequences<Real> set, const SequenceBatches& batches);

    const std::string& name() const noexcept override { return set_.name; }
    Index batch() const noexcept override { return batches_.batch; }
    Index window() const noexcept override { return batches_.window; }
    Index windows() const noexcept override { return windows_; }
    Index length() const noexcept override { return longest_; }
    std::int64_t step_bytes() const noexcept override;
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override;
    void read(const Cut& cut, Batch<Real>& batch) const override;

    const Sequences<Real>& set() const noexcept { return set_; }
    /// The sequence in a column of a window, -1: none.
    Index sequence(Index window, Index column) const;
    /// Share of an epoch's positions that are filler.
    double filler() const;

private:
    /// A window: its group, and its first step there.
    struct Piece {
        Index group, first;
    };
    struct Epoch {
        Index number = -1;
        std::vector<Index> order;  // of the sequences; group g has those from g x batch on
        std::vector<Piece> pieces;
    };
    struct Cache;

    std::shared_ptr<const Epoch> epoch(Index number) const;
    Index longest_of(const Epoch& epoch, Index group) const;
    bool whole() const noexcept { return batches_.window >= longest_; }

    Sequences<Real> set_;
    SequenceBatches batches_;
    Index longest_ = 0;
    Index windows_ = 0;
    std::vector<Index> order_;  // unshuffled
    std::shared_ptr<Cache> cache_;
};

}  // namespace backsweep
