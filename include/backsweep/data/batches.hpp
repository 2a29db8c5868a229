// What a training run reads: windows of many sequences side by side, each a function of its number.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/ledger.hpp"
#include "backsweep/base/range.hpp"
#include "backsweep/nn/layer.hpp"

#include <cstdint>
#include <string>

namespace backsweep {

/// One window of some sequences. Arrays are [step][batch] or [step][batch][feature]; those that a source has no use for
/// are empty. A batch may be filled again and again and keeps its capacity. Its ledger must outlive it.
template <class Real>
struct Batch {
    explicit Batch(Ledger& ledger = Ledger::process()) noexcept
        : tokens(Kind::data, ledger),
          inputs(Kind::data, ledger),
          classes(Kind::data, ledger),
          values(Kind::data, ledger),
          weights(Kind::data, ledger),
          marks(Kind::data, ledger) {}

    /// No steps and no arrays; the capacity stays.
    void clear() noexcept {
        steps = batch = first = loss_from = 0;
        tokens.resize(0);
        classes.resize(0);
        marks.resize(0);
        for (Buffer<Real>* array : {&inputs, &values, &weights}) array->resize(0);
    }

    Index steps = 0;
    Index batch = 0;
    Index first = 0;      ///< first step, counted from the start of the sequences
    Index loss_from = 0;  ///< steps before this one were looked back at: they have no loss here

    Buffer<std::int32_t> tokens;   ///< inputs of a model that starts with an embedding
    Buffer<Real> inputs;           ///< inputs of other models
    Buffer<std::int32_t> classes;  ///< targets of cross_entropy
    Buffer<Real> values;           ///< targets of other losses
    Buffer<Real> weights;          ///< weight of each position, or empty: all 1
    Buffer<Mark> marks;            ///< or empty: no fillers, and sequences begin only where Source::fresh() says so
};

/// Which part of which window is wanted.
struct Cut {
    Index window = 0;     ///< counted from the start of the run, through all epochs
    Range sequences;      ///< of 0 .. batch(): the columns of one shard or micro-batch
    Index look_back = 0;  ///< steps before the window that are wanted too; fewer come at the start of the sequences
    Range steps{};        ///< if not empty: these steps of the sequences instead of the window's (Source::divisible())
};

/// A stream of windows. Immutable: read() is a function of its arguments, and any number of threads may call it.
/// To resume, keep the number of the next window.
template <class Real>
class Source {
public:
    virtual ~Source() = default;

    /// For messages and reports.
    virtual const std::string& name() const noexcept = 0;
    /// Sequences side by side.
    virtual Index batch() const noexcept = 0;
    /// Steps of a window; the last of an epoch may be shorter.
    virtual Index window() const noexcept = 0;
    /// Windows of an epoch.
    virtual Index windows() const noexcept = 0;
    /// Steps of the sequences: no window with its look-back is longer. An upper bound will do.
    virtual Index length() const noexcept { return windows() * window(); }
    /// Whether the sequences may be cut anywhere, so that Cut::steps is heard.
    virtual bool divisible() const noexcept { return false; }
    /// Bytes that read() puts into a batch for one step of one sequence: what a plan counts for the data.
    virtual std::int64_t step_bytes() const noexcept = 0;
    /// Pairs of input and target an epoch that fit into no window, because all sequences have the same length.
    virtual Index remainder() const noexcept = 0;
    /// Whether the sequences begin with this window, so that the carry starts anew.
    virtual bool fresh(Index window) const noexcept = 0;
    /// Fills `batch`; throws InvalidArgument if there is no such cut.
    virtual void read(const Cut& cut, Batch<Real>& batch) const = 0;
};

}  // namespace backsweep
