// SPDX-License-Identifier: MIT
#include "train/workload.hpp"

#include "backsweep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace backsweep {

/// Throws InvalidArgument for a loss of last steps where a window, which goes on in the next, does not hold its
/// sequences.
void check_whole(const ModelSpec& model, Index window, const std::string& source) {
    if (model.loss.at == LossSpec::At::last)
        throw InvalidArgument("a loss of last steps wants windows that hold whole sequences, but window " +
                              std::to_string(window) + " of " + source +
                              " goes on in the next; take longer windows, or a loss of every step and weights that are "
                              "0 before the last");
}

/// Throws InvalidArgument for a model that reads whole sequences where a source cuts its own.
template <class Real>
void check_whole(const ModelSpec& model, const Source<Real>& source) {
    if (model.segmentable() && model.loss.at == LossSpec::At::every) return;
    if (source.divisible()) return;  // a window of a stream is what the user calls a sequence
    for (Index w = 1; w < source.windows(); ++w)
        if (!source.fresh(w))
            throw InvalidArgument(
                std::string(model.segmentable() ? "a loss of last steps"
                                                : "a bidirectional layer, or full attention,") +
                " reads whole sequences, but window " + std::to_string(w) + " of " + source.name() +
                " goes on with those of the one before; take windows as long as the longest sequence");
}

template <class Real>
void check(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o) {
    if (std::string why = o.problem(); !why.empty()) throw InvalidArgument(why);
    if (std::string why = o.memories.problem(network.memories().size()); !why.empty()) throw InvalidArgument(why);
    const std::vector<std::string> layers = layer_names(network);
    if (std::string why = o.depth.problem(layers, network.links()); !why.empty()) throw InvalidArgument(why);
    for (const std::string& layer : layers)
        if (o.depth.place && o.depth.place(layer) != Tier::ram)
            throw InvalidArgument(
                "depth.place sends what layer '" + layer + "' reads to tier " + to_string(o.depth.place(layer)) +
                ", but a trainer has no store for it; sweep with a TimeChain of your own and use(store)");
    if (network.spec().context())
        throw InvalidArgument(
            "this model attends to a context, which a source does not give; sweep it with a TimeChain of your own");
    if (o.look_back > 0) {
        if (o.chunk > 0 && (source.window() % o.chunk != 0 || o.look_back % o.chunk != 0))
            throw InvalidArgument(
                "chunk must divide the steps of an update and the look-back, got chunk = " + std::to_string(o.chunk) +
                ", steps = " + std::to_string(source.window()) + ", look_back = " + std::to_string(o.look_back) +
                "; a window begins where a link begins");
        if (!o.carry)
            throw InvalidArgument("look_back = " + std::to_string(o.look_back) +
                                  " has no effect without carry; leave one of them out");
    }
    if (o.windows.law != WindowSpec::Law::fixed) {
        if (!source.divisible())
            throw InvalidArgument("windows of random length want sequences that may be cut anywhere, but those of " +
                                  source.name() + " may not; take fixed windows");
        if (o.look_back > 0)
            throw InvalidArgument("look_back = " + std::to_string(o.look_back) +
                                  " wants fixed windows; leave one of them out");
        if (!o.carry)
            throw InvalidArgument("windows of random length want a carry from one to the next; leave one of them out");
        if (o.chunk > 0)
            if (std::string why = o.windows.problem(source.window(), o.chunk); !why.empty()) throw InvalidArgument(why);
    }
    if (!network.spec().segmentable()) {
        const Index steps = source.window();
        if (o.carry)
            throw InvalidArgument(
                "a bidirectional layer, or full attention, reads whole sequences, so no state goes on to a next "
                "window; set carry to false");
        if (o.chunk > 0 && o.chunk < steps)
            throw InvalidArgument("a bidirectional layer is not cut in time: chunk must be at least the window's " +
                                  std::to_string(steps) + " steps, got " + std::to_string(o.chunk));
    }
    check_whole(network.spec(), source);
    if (o.form == TrainOptions::LookBack::once)
        for (Index w = 1; w < source.windows(); ++w)
            if (source.fresh(w))
                throw InvalidArgument("the form `once` keeps the parameters of one run of sequences, but window " +
                                      std::to_string(w) + " of " + source.name() +
                                      " begins others; take the form recompute, or a batch that holds all sequences");
    if (o.form == TrainOptions::LookBack::once && network.spec().random())
        throw InvalidArgument(
            "the form `once` keeps each step's first run, but dropout has other masks in every window; take the form "
            "recompute, or no dropout");
    if (source.batch() % o.micro_batches != 0)
        throw InvalidArgument("micro_batches must divide the batch, got " + std::to_string(o.micro_batches) + " for " +
                              std::to_string(source.batch()) + " sequences");
    if (network.spec().loss.reduction == LossSpec::Reduction::none)
        throw InvalidArgument("training wants one loss, but this model's reduction is none; take mean or sum");
}

std::vector<Index> shard_sizes(Index batch, Index shards) {
    const Index count = std::min(batch, shards == 0 ? Index{4} : shards);
    std::vector<Index> sizes;
    for (Index s = 0; s < count; ++s) sizes.push_back(batch / count + (s < batch % count ? 1 : 0));
    return sizes;
}

std::string TrainOptions::problem() const {
    const auto least = [](const char* name, Index value, Index bound) -> std::string {
        if (value >= bound) return {};
        return std::string(name) + " must be at least " + std::to_string(bound) + ", got " + std::to_string(value);
    };
    for (std::string why : {least("look_back", look_back, 0), least("chunk", chunk, 0), least("shards", shards, 0),
                            least("threads", threads, 1), least("micro_batches", micro_batches, 1), optimizer.problem(),
                            rate.problem(), clip.problem()})
        if (!why.empty()) return why;
    if (rate.momentum_at(0) && !optimizer.has_momentum())
        return std::string("the one-cycle rate moves a momentum, but ") + optimizer.name() +
               " has none; give it one, or set cycle_momentum to false";
    if (form == LookBack::once && look_back == 0)
        return "the form `once` has no effect without look_back; give look_back, or take recompute";
    for (const auto& [name, limit] : {std::pair{"ram", budget.ram}, std::pair{"time_axis", budget.time_axis}})
        if (limit != Budget::unlimited && limit < 1)
            return std::string("the limit ") + name + " must be at least 1 byte, got " + std::to_string(limit);
    if (budget.disk != Budget::unlimited && budget.disk < 0)
        return "the limit disk must be 0 or more bytes, got " + std::to_string(budget.disk);
    if (const bool wanted = budget.disk != 0 || commit.on(); scratch.folder.empty() == wanted)
        return wanted ? std::string("a limit on disk, or commits, want a folder there; name one in scratch.folder")
                      : "the scratch folder '" + scratch.folder +
                            "' has no effect without a limit on disk or commits; give budget.disk";
    if (commit.links < 0 || !(commit.seconds >= 0.0) || !std::isfinite(commit.seconds))
        return "commits come after links >= 0 or seconds >= 0, got " + std::to_string(commit.links) + " and " +
               std::to_string(commit.seconds);
    for (const auto& [name, value] : {std::pair{"bandwidth", scratch.bandwidth}, std::pair{"speed", scratch.speed}})
        if (!(value > 0.0) || !std::isfinite(value))
            return std::string("scratch.") + name + " must be above 0, got " + std::to_string(value);
    if (plan_depth && (depth.family != DepthOptions::Family::store_all || depth.period != 0 || depth.slots != 0 ||
                       depth.budget != 0 || !depth.work.empty()))
        return "depth.family, period, slots, budget and work have no effect where the planner chooses the depth; set "
               "plan_depth to false";
    if (plan_memories && memories != MemoryPlaces{})
        return "places of memories have no effect where the planner chooses them; set plan_memories to false";
    if (schedule.needs_state || !schedule.loss)
        return "the schedule of a training has a loss and needs no state; leave these two options at their defaults";
    if (schedule.family == "auto" && (schedule.slots != 0 || schedule.period != 0 || !schedule.rule.empty()))
        return "slots, period and rule have no effect with schedule \"auto\"; name the family that they are for";
    return {};
}

std::string TrainOptions::open() const {
    std::string all;
    for (const auto& [name, is_open] :
         {std::pair{"chunk", chunk == 0}, std::pair{"schedule", schedule.family == "auto"},
          std::pair{"depth", plan_depth}, std::pair{"memories", plan_memories}})
        if (is_open) all += (all.empty() ? "" : ", ") + std::string(name);
    return all;
}

template <class Real>
std::vector<Work> counted_work(const Network<Real>& network, Index steps, Index batch) {
    std::vector<Work> all;
    for (Index l = 0; l < network.depth(); ++l) {
        const Layer<Real>& layer = network.layer(l);
        Work work = layer.work(steps, batch);
        Index parameters = 0;
        for (const ParameterShape& p : layer.parameters()) parameters += p.size();
        // A layer that looks few of its parameters up does as little work a step.
        const double read = 8.0 * std::min(static_cast<double>(parameters), layer.work(1, batch).forward);
        work.forward += read;
        work.reverse += 2.0 * read;
        all.push_back(work);
    }
    return all;
}

DiskStoreOptions store_options(const TrainOptions& o, Index shard, std::int64_t state, Index slots) {
    DiskStoreOptions store;
    store.folder = o.scratch.folder;
    store.name = "shard" + std::to_string(shard);
    store.slots = slots;
    store.slot_bytes = ExecutionBase::header_bytes() + state;
    store.compression = o.scratch.compression;
    store.precision = o.scratch.precision;
    store.keep = o.commit.on();
    store.run = run_fingerprint(o);
    store.throttle = o.scratch.throttle;
    return store;
}

std::uint64_t run_fingerprint(const TrainOptions& o) {
    // What is known before anything is planned; sizes and x_0 are compared when a sweep goes on.
    std::array<std::int64_t, 5> about{static_cast<std::int64_t>(o.seed), o.chunk, o.shards, o.micro_batches,
                                      o.look_back};
    const Blob blob{reinterpret_cast<std::byte*>(about.data()), sizeof about};
    return fingerprint(std::span(&blob, 1));
}

std::int64_t journal_bytes(const TimeChainSizes& sizes, std::int64_t parameters, Index links, Index micro_batches,
                           Index disk_slots) {
    const std::int64_t sums = parameters + links * static_cast<std::int64_t>(sizeof(double)),
                       more = micro_batches * (sizes.between + static_cast<std::int64_t>(sizeof(double))) +
                                   static_cast<std::int64_t>(sizeof(std::uint64_t));
    return Commits::record_bytes(disk_slots, sizes.state, sizes.adjoint, sums + more);
}

template <class Real>
Workload workload(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o,
                  const ProgramOf& program, const PricesOf& prices) {
    const Cuts cuts(source.batch(), o.micro_batches, o.shards);
    const std::int64_t parameters = network.parameters().size() * static_cast<std::int64_t>(sizeof(Real));
    Workload w;
    w.remakes = true;
    w.steps = longest_window(source, o);
    w.chunk = o.chunk;
    w.advance = w.record = w.reverse = 0.0;
    for (Index s = 0; s < cuts.shards(); ++s) {
        const Index size = cuts.sizes[static_cast<std::size_t>(s)];
        const TimeChainSizes sizes =
            time_chain_sizes(network, w.steps, size, o.chunk, o.carry, o.memories, program(size));
        const LinkWork work = link_work(program(size), prices(size));
        w.advance += work.advance;
        w.record += work.record;
        w.reverse += work.reverse;
        w.state += sizes.state;
        // With carry, x_0 and the next x_0 of every micro-batch.
        w.always[Kind::carry] += sizes.working + (o.carry ? 2 * o.micro_batches * sizes.between : 0);
        w.tape += sizes.tape;
        w.tape_carry += sizes.tape_carry;
        w.always[Kind::workspace] += sizes.workspace;
        w.always[Kind::log] += sizes.log;
        if (o.form == TrainOptions::LookBack::once) w.always[Kind::parameters] += sizes.prepared;  // by every shard
        w.always[Kind::gradients] += parameters;
        w.disk += memory_file_bytes(network, size, w.steps, o.carry, o.memories);
        if (o.commit.on() && o.budget.disk != 0)
            w.disk += 2 * journal_bytes(sizes, parameters, w.links(), o.micro_batches, w.links());
        if (o.budget.disk == 0) continue;
        const std::int64_t one = DiskStore::file_bytes(store_options(o, s, sizes.state, 1)),
                           two = DiskStore::file_bytes(store_options(o, s, sizes.state, 2));
        w.disk_slot += two - one;
        w.disk_file += one - (two - one);
        w.buffers += DiskStore::buffer_bytes(store_options(o, s, sizes.state, 1));
    }
    // Prices are of the link that there is; a workload's are of a full one, of which a short one takes its share.
    const double full = std::max(1.0, static_cast<double>(w.chunk) / static_cast<double>(w.steps));
    w.advance *= full;
    w.record *= full;
    w.reverse *= full;
    const double bandwidth = o.scratch.throttle
                                 ? std::min(o.scratch.bandwidth, o.scratch.throttle->bytes_per_second())
                                 : o.scratch.bandwidth;
    w.write = w.read = static_cast<double>(w.disk_slot) / bandwidth * o.scratch.speed;
    w.disk_buffers = store_options(o, 0, w.state, 1).buffers;
    w.always[Kind::parameters] += parameters * versions_kept(source, o);
    if (o.form != TrainOptions::LookBack::once)
        w.always[Kind::parameters] += network.prepared() * static_cast<std::int64_t>(sizeof(Real));
    w.always[Kind::moments] = parameters * o.optimizer.moments();
    w.always[Kind::data] = w.steps * source.batch() * source.step_bytes();
    return w;
}

template <class Real>
Workload workload(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o) {
    check(network, source, o);
    if (const std::string open = o.open(); !open.empty())
        throw InvalidArgument("a workload is of options that leave nothing to the planner, but these leave " + open +
                              "; fill them in with planned()");
    const Index window = longest_window(source, o);
    std::map<Index, DepthProgram> programs;
    std::map<Index, std::vector<Work>> prices;
    const Index link = std::min(o.chunk, window);
    for (const Index size : Cuts(source.batch(), o.micro_batches, o.shards).sizes)
        if (programs.find(size) == programs.end()) {
            programs.emplace(size, depth_program(network, link, size, o.depth));
            prices.emplace(size, counted_work(network, link, size));
        }
    return workload<Real>(
        network, source, o, [&](Index batch) -> const DepthProgram& { return programs.at(batch); },
        [&](Index batch) -> const std::vector<Work>& { return prices.at(batch); });
}

#define BACKSWEEP_INSTANTIATE(Real)                                                                              \
    template void check_whole(const ModelSpec&, const Source<Real>&);                                            \
    template void check(const Network<Real>&, const Source<Real>&, const TrainOptions&);                         \
    template Workload workload(const Network<Real>&, const Source<Real>&, const TrainOptions&);                  \
    template Workload workload(const Network<Real>&, const Source<Real>&, const TrainOptions&, const ProgramOf&, \
                               const PricesOf&);                                                                 \
    template std::vector<Work> counted_work(const Network<Real>&, Index, Index);
BACKSWEEP_INSTANTIATE(float)
BACKSWEEP_INSTANTIATE(double)
#undef BACKSWEEP_INSTANTIATE

}  // namespace backsweep
