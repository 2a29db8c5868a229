// What a training of given options is: whether it fits network and source, how its batch is cut, what it holds and
// costs.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/store/disk_store.hpp"
#include "backsweep/train/trainer.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace backsweep {

inline Index ceil_div(Index a, Index b) {
    return a < 1 ? 0 : 1 + (a - 1) / b;
}

/// Throws InvalidArgument for a loss of last steps where a window, which goes on in the next, does not hold its
/// sequences.
void check_whole(const ModelSpec& model, Index window, const std::string& source);
/// Throws InvalidArgument for a model that reads whole sequences where a source cuts its own.
template <class Real>
void check_whole(const ModelSpec& model, const Source<Real>& source);

/// How the sequences of a batch are cut: micro-batches one after the other, each into shards side by side.
struct Cuts {
    Index micro_batches;
    std::vector<Index> sizes;   // of the shards
    std::vector<Index> firsts;  // first sequence of a shard within its micro-batch
    Index micro;                // sequences of a micro-batch

    Cuts(Index batch, Index micro_batches_, Index shards)
        : micro_batches(micro_batches_),
          sizes(shard_sizes(batch / micro_batches_, shards)),
          micro(batch / micro_batches_) {
        Index first = 0;
        for (const Index size : sizes) firsts.push_back(std::exchange(first, first + size));
    }
    Index shards() const { return static_cast<Index>(sizes.size()); }
    Range sequences(Index m, Index shard) const {
        const Index first = m * micro + firsts[static_cast<std::size_t>(shard)];
        return {first, first + sizes[static_cast<std::size_t>(shard)]};
    }
};

template <class Real>
Window<Real> window_of(const Batch<Real>& batch) {
    const auto data = [](const auto& v) { return v.empty() ? nullptr : v.data(); };
    Window<Real> w;
    w.first = batch.first;
    w.steps = batch.steps;
    w.tokens = data(batch.tokens);
    w.inputs = data(batch.inputs);
    w.classes = data(batch.classes);
    w.values = data(batch.values);
    w.weights = data(batch.weights);
    w.marks = data(batch.marks);
    w.loss_from = batch.loss_from;
    return w;
}

/// Steps of the longest window, its look-back included.
template <class Real>
Index longest_window(const Source<Real>& source, const TrainOptions& o) {
    return std::min(o.windows.most(source.window()) + std::min(o.look_back, source.length()), source.length());
}

/// k2 / k1, rounded up: how many versions of the parameters one window of form `once` sees.
template <class Real>
Index versions_kept(const Source<Real>& source, const TrainOptions& o) {
    return o.look_back > 0 && o.form == TrainOptions::LookBack::once
               ? ceil_div(source.window() + o.look_back, source.window())
               : 1;
}

/// Throws InvalidArgument: options.problem(), or options that do not fit network or source. A chunk, depth or places
/// that are left to the planner are not looked at.
template <class Real>
void check(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o);

/// What a link costs under a program for its layers; `batch`: the sequences of a shard.
using ProgramOf = std::function<const DepthProgram&(Index batch)>;
using PricesOf = std::function<const std::vector<Work>&(Index batch)>;
/// Of options that leave nothing open and passed check().
template <class Real>
Workload workload(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o,
                  const ProgramOf& program, const PricesOf& prices);

/// Operations of every layer on a link, and 8 more a parameter that a call reads: what short links lose.
template <class Real>
std::vector<Work> counted_work(const Network<Real>& network, Index steps, Index batch);

/// The store of a shard whose states take so many bytes.
DiskStoreOptions store_options(const TrainOptions& o, Index shard, std::int64_t state, Index slots);
/// Of what lies on disk: that of another run is not taken for this one's.
std::uint64_t run_fingerprint(const TrainOptions& o);
/// Bytes of a record of a shard's journal at most; `parameters`: bytes of its gradients.
std::int64_t journal_bytes(const TimeChainSizes& sizes, std::int64_t parameters, Index links, Index micro_batches,
                           Index disk_slots);

}  // namespace backsweep
