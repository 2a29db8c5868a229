// Training by full or truncated back-propagation through time [Werbos90, WP90] under one plan in bounded memory.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/chain/execution.hpp"
#include "backsweep/data/batches.hpp"
#include "backsweep/nn/network.hpp"
#include "backsweep/nn/time_chain.hpp"
#include "backsweep/plan/plan.hpp"
#include "backsweep/store/disk_store.hpp"
#include "backsweep/train/clip.hpp"
#include "backsweep/train/optimizer.hpp"
#include "backsweep/train/rate.hpp"
#include "backsweep/train/snapshot.hpp"
#include "backsweep/train/windows.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace backsweep {

/// How a network is trained on a source. k1, the steps of an update, is the source's window.
struct TrainOptions {
    /// Which run of the steps before an update's own the gradient goes through, where look_back > 0.
    enum class LookBack {
        recompute,  ///< the window is run again with the present parameters: the exact gradient of its loss
        once        ///< the textbook form: each step keeps the parameters of its first run
    };
    /// What is compared when links run again.
    enum class Verify {
        off,
        slots,  ///< Execution::verify: states and tapes in RAM slots, and states that are reached again
        steps   ///< TimeChain::verify besides: each layer's output, carry and loss, which names step and layer
    };

    Index look_back = 0;     ///< k2 - k1: steps before an update's own that its gradient reaches back
    LookBack form = LookBack::recompute;
    bool carry = true;       ///< the state goes on from window to window; false: every window starts afresh
    WindowSpec windows;      ///< of random length only where the source is divisible()
    Index chunk = 0;         ///< steps a link; divides k1 and k2 where look_back > 0. 0: the planner chooses. Bits depend on it
    Index shards = 0;        ///< parts of a batch that sweep side by side; 0: min(batch, 4). Bits depend on it
    Index threads = 1;       ///< for the shards; beyond them, for the large products of each. Bits do not depend on it
    Index micro_batches = 1; ///< parts of a batch that sweep one after the other; divides the batch
    OptimizerSpec optimizer;
    RateSpec rate;
    ClipSpec clip;
    ScheduleOptions schedule{.family = "auto"};  ///< "auto": make_plan; else this family with its options
    Budget budget;
    bool plan_memories = true;  ///< the planner chooses where the rows that attention remembers live
    MemoryPlaces memories;      ///< or they live there; bits do not depend on it
    bool plan_depth = true;     ///< the planner chooses how the layers of a link are kept, beside the marks of `depth`
    DepthOptions depth;         ///< or they are kept so; bits do not depend on it
    /// Commits within an update: after a kill, a trainer that is made and restored alike goes on in the middle of it. Both 0: none.
    struct Commit {
        Index links = 0;       ///< after so many links were first reached, or reversed
        double seconds = 0.0;  ///< after so many seconds

        bool on() const noexcept { return links > 0 || seconds > 0.0; }
    } commit;
    /// What a limit on disk, or commits, are for.
    struct Scratch {
        std::string folder{};  ///< of slots, logs and journals on disk; made if absent. One trainer of a seed and cut commits there at a time
        Compression compression = Compression::none;
        Precision precision = Precision::exact;  ///< of states in slots; anything else changes bits
        std::shared_ptr<Throttle> throttle{};    ///< of all shards together; none: as fast as the disk is
        double bandwidth = 5e8;                  ///< bytes a second, read or written, without it
        double speed = 1e10;                     ///< counted operations a second that this is weighed against
    } scratch;
    Verify verify = Verify::off;  ///< its bytes are in no prediction; bits do not depend on it
    std::uint64_t seed = 0;

    /// Empty if valid, else what is wrong, what was given and what to do.
    std::string problem() const;
    /// What is left to the planner: "chunk, schedule"; empty: nothing.
    std::string open() const;
};

class Workers;

/// What one update did.
struct UpdateReport {
    Index update = 0;            ///< its number, from 1
    Index first = 0, steps = 0;  ///< the steps of the sequences whose losses it counts
    double loss = 0.0;           ///< as the reduction says, over these steps
    double positions = 0.0;      ///< what a mean is divided by; 0: nothing had a loss, and no parameter changed
    double gradient_norm = 0.0;  ///< before clipping
    double rate = 0.0;
    Counts counts;               ///< of all shards and micro-batches
};

/// An action that the sweep of a shard has played.
struct Played {
    Index update = 0;  ///< under way, from 1
    Index shard = 0, micro_batch = 0;
    Action action{};
    double begin = 0.0, end = 0.0;  ///< seconds of the steady clock
};

/// The loss of a source under some parameters.
struct Evaluation {
    double loss = 0.0;
    double positions = 0.0;
    Index windows = 0;
};

/// Owns parameters, gradients, moments, chains and carry; network and source are the caller's and outlive it.
/// An update that throws has changed no parameter, moment or carry.
template <class Real>
class Trainer {
public:
    /// Parameters start from options.seed. Without a plan one is made. Throws InvalidArgument (options.problem(), options that
    /// do not fit the source) or NoPlan.
    Trainer(const Network<Real>& network, const Source<Real>& source, TrainOptions options);
    Trainer(const Network<Real>& network, const Source<Real>& source, TrainOptions options, Plan plan);
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// One update over the next window.
    UpdateReport update();
    /// Updates until `count` more windows are done; `each` may be empty.
    void run(Index count, const std::function<void(const UpdateReport&)>& each = {});
    /// A metric, such as a validation loss, for the rate law plateau. Throws as RateSpec::after does.
    void observe(double metric) { plateau_ = options_.rate.after(metric, plateau_); }
    const Plateau& plateau() const noexcept { return plateau_; }
    /// Calls f after every action of every sweep, from the thread of its shard: for one shard in order, for several at the same
    /// time. Stays set; an empty f ends it. What f throws ends the update.
    void observe_actions(const std::function<void(const Played&)>& f);

    const Plan& plan() const noexcept { return plan_; }
    const TrainOptions& options() const noexcept { return options_; }
    /// Updates made so far: the number of the next window.
    Index updates() const noexcept { return updates_; }
    /// Whole runs through the source so far.
    Index epoch() const noexcept { return epoch_; }

    std::span<Real> parameters() noexcept { return parameters_.span(); }
    std::span<const Real> parameters() const noexcept { return parameters_.span(); }
    /// Of the last update, after clipping.
    std::span<const Real> gradients() const noexcept;
    /// The state that the next window starts from, of one shard of one micro-batch: one block as in Network::state().
    std::span<const Real> carry(Index micro_batch, Index shard) const;
    /// Before the first update: where the sequences begin, zero unless written to.
    std::span<Real> carry(Index micro_batch, Index shard);

    /// Peak bytes of each kind so far, added up over the shards; equal to plan().predicted once a full window was done.
    Bytes measured() const;
    Bytes live() const;
    /// Kinds of which more was held than the plan foretells, in words; empty: none. With assertions (no NDEBUG) an update that
    /// ends so throws an Error with these words; verify modes, whose bytes are in no plan, say nothing.
    std::string overrun() const;
    /// Where each shard's sweep went on in the update in which a killed process was, or began; empty without commits, and
    /// until that update is done.
    const std::vector<Recovery>& recoveries() const noexcept { return recoveries_; }
    /// Of one shard: what it does not share with the others. May be asked while it sweeps.
    Bytes live(Index shard) const;
    Index shards() const noexcept { return static_cast<Index>(shards_.size()); }
    /// Sums over all updates so far.
    const Counts& counts() const noexcept { return counts_; }

    /// Everything that the next updates depend on.
    Snapshot snapshot() const;
    /// Goes on from a snapshot, with the same bits. Throws InvalidArgument if it is of another model, optimizer or plan.
    void restore(const Snapshot& snapshot);

private:
    struct Shard;

    /// The next window begins at the beginning of the sequences.
    bool fresh() const { return random_windows() ? position_ == 0 : source_->fresh(updates_); }
    bool random_windows() const noexcept { return options_.windows.law != WindowSpec::Law::fixed; }
    void over_shards(const std::function<void(Shard&)>& f);
    void sweep(Shard& shard, const WindowCut& cut, double scale);
    std::vector<const Real*> versions(Index first, Index links) const;

    const Network<Real>* network_;
    const Source<Real>* source_;
    TrainOptions options_;
    Plan plan_;
    Ledger ledger_;  // what the shards share
    Buffer<Real> parameters_;
    Buffer<Real> prepared_;  // of them, for every shard; empty where links have versions
    std::deque<Buffer<Real>> older_;  // form `once`: the parameters of earlier updates, oldest first
    Optimizer<Real> optimizer_;
    Plateau plateau_;
    std::vector<std::unique_ptr<Shard>> shards_;
    Index updates_ = 0;
    Index epoch_ = 0;
    bool under_way_ = false;  // an update has begun and not ended
    std::vector<Recovery> recoveries_;  // by shard
    Index silent_ = 0;    // windows since the last that had a loss
    Index position_ = 0;  // windows of random length: the next one's first step
    Counts counts_;
    std::unique_ptr<Workers> workers_;
};

/// What a training of options that leave nothing open holds and costs, in counted operations.
template <class Real>
Workload workload(const Network<Real>& network, const Source<Real>& source, const TrainOptions& options);

/// Sizes of the shards of `batch` sequences: at most one apart, larger ones first. `shards` 0: min(batch, 4).
std::vector<Index> shard_sizes(Index batch, Index shards);

/// The loss over one epoch of a source, forward only, one tape a shard. With the batch, chunk and shards of a training
/// it has the same bits as that training's loss.
template <class Real>
Evaluation evaluate(const Network<Real>& network, std::span<const Real> parameters, const Source<Real>& source, Index chunk,
                    Index shards = 0, Index threads = 1, bool carry = true);

}  // namespace backsweep
