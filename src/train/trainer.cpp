// SPDX-License-Identifier: MIT
#include "backsweep/train/trainer.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/loss.hpp"
#include "backsweep/train/plan_json.hpp"
#include "backsweep/train/spec_json.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

namespace backsweep {

namespace {

Index ceil_div(Index a, Index b) { return a < 1 ? 0 : 1 + (a - 1) / b; }

/// A batch's share of what a mean of its losses is divided by; positions behind loss_from count, each by its weight. The
/// shares of shards and micro-batches are added up.
template <class Real>
double divisor(const ModelSpec& model, const Batch<Real>& batch) {
    const auto data = [](const auto& v) { return v.empty() ? nullptr : v.data(); };
    Segment<Real> all;
    all.steps = batch.steps;
    all.batch = batch.batch;
    all.classes = data(batch.classes);
    all.weights = data(batch.weights);
    all.marks = data(batch.marks);
    all.loss_from = batch.loss_from;
    LossSpec mean = model.loss;
    mean.reduction = LossSpec::Reduction::mean;
    return loss_divisor(mean, model.outputs(), all);
}

bool is_mean(const ModelSpec& model) {
    return model.loss.reduction == LossSpec::Reduction::mean;
}

/// Throws InvalidArgument for a sum of weights that is no number to divide by.
void check_positions(double positions, Index window, const std::string& source) {
    if (!(positions >= 0.0) || !std::isfinite(positions))
        throw InvalidArgument("the weights of the positions of window " + std::to_string(window) + " of " + source + " add up to " +
                              std::to_string(positions) + "; weights are finite and not negative");
}

/// Throws InvalidArgument, naming the shape wanted, if a source gave an array of another; one that is missing is the time
/// chain's to refuse.
template <class Real>
void check_shapes(const ModelSpec& model, const Batch<Real>& batch, const std::string& source) {
    const auto check = [&](const char* what, const auto& array, Index features) {
        const Index has = array.size(), places = batch.steps * batch.batch, wants = places * std::max<Index>(1, features);
        if (has == 0 || has == wants) return;
        const auto axis = [](Index size) { return '[' + std::to_string(size) + ']'; };
        const bool feature = features > 0;
        throw InvalidArgument(source + " gives " + std::to_string(has) + " " + what + ", but this model wants the shape [step][batch]" +
                              (feature ? "[feature]" : "") + " = " + axis(batch.steps) + axis(batch.batch) + (feature ? axis(features) : "") +
                              "; one answer a sequence is brought into it by at_last_steps (nn/loss.hpp)");
    };
    if (model.inputs() > 0)
        check("inputs", batch.inputs, model.inputs());
    else
        check("tokens", batch.tokens, 0);
    if (model.targets() > 0)
        check("values", batch.values, model.targets());
    else
        check("classes", batch.classes, 0);
    check("weights", batch.weights, 0);
    check("marks", batch.marks, 0);
}

/// Throws InvalidArgument for a loss of last steps where a window, which goes on in the next, does not hold its sequences.
void check_whole(const ModelSpec& model, Index window, const std::string& source) {
    if (model.loss.at == LossSpec::At::last)
        throw InvalidArgument("a loss of last steps wants windows that hold whole sequences, but window " + std::to_string(window) + " of " +
                              source + " goes on in the next; take longer windows, or a loss of every step and weights that are 0 before the last");
}

/// Throws InvalidArgument for a model that reads whole sequences where a source cuts its own.
template <class Real>
void check_whole(const ModelSpec& model, const Source<Real>& source) {
    if (model.segmentable() && model.loss.at == LossSpec::At::every) return;
    if (source.divisible()) return;  // a window of a stream is what the user calls a sequence
    for (Index w = 1; w < source.windows(); ++w)
        if (!source.fresh(w))
            throw InvalidArgument(std::string(model.segmentable() ? "a loss of last steps" : "a bidirectional layer, or full attention,") +
                                  " reads whole sequences, but window " + std::to_string(w) + " of " + source.name() +
                                  " goes on with those of the one before; take windows as long as the longest sequence");
}

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

/// How the sequences of a batch are cut: micro-batches one after the other, each into shards side by side.
struct Cuts {
    Index micro_batches;
    std::vector<Index> sizes;   // of the shards
    std::vector<Index> firsts;  // first sequence of a shard within its micro-batch
    Index micro;                // sequences of a micro-batch

    Cuts(Index batch, Index micro_batches_, Index shards)
        : micro_batches(micro_batches_), sizes(shard_sizes(batch / micro_batches_, shards)), micro(batch / micro_batches_) {
        Index first = 0;
        for (const Index size : sizes) firsts.push_back(std::exchange(first, first + size));
    }
    Index shards() const { return static_cast<Index>(sizes.size()); }
    Range sequences(Index m, Index shard) const {
        const Index first = m * micro + firsts[static_cast<std::size_t>(shard)];
        return {first, first + sizes[static_cast<std::size_t>(shard)]};
    }
};

/// k2 / k1, rounded up: how many versions of the parameters one window of form `once` sees.
template <class Real>
Index versions_kept(const Source<Real>& source, const TrainOptions& o) {
    return o.look_back > 0 && o.form == TrainOptions::LookBack::once ? ceil_div(source.window() + o.look_back, source.window()) : 1;
}

template <class Real>
void check(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o) {
    if (std::string why = o.problem(); !why.empty()) throw InvalidArgument(why);
    if (std::string why = o.memories.problem(network.memories().size()); !why.empty()) throw InvalidArgument(why);
    const std::vector<std::string> layers = layer_names(network);
    if (std::string why = o.depth.problem(layers); !why.empty()) throw InvalidArgument(why);
    for (const std::string& layer : layers)
        if (o.depth.place && o.depth.place(layer) != Tier::ram)
            throw InvalidArgument("depth.place sends what layer '" + layer + "' reads to tier " + to_string(o.depth.place(layer)) +
                                  ", but a trainer has no store for it; sweep with a TimeChain of your own and use(store)");
    if (network.spec().context())
        throw InvalidArgument("this model attends to a context, which a source does not give; sweep it with a TimeChain of your own");
    if (o.look_back > 0) {
        if (source.window() % o.chunk != 0 || o.look_back % o.chunk != 0)
            throw InvalidArgument("chunk must divide the steps of an update and the look-back, got chunk = " + std::to_string(o.chunk) +
                                  ", steps = " + std::to_string(source.window()) + ", look_back = " + std::to_string(o.look_back) +
                                  "; a window begins where a link begins");
        if (!o.carry) throw InvalidArgument("look_back = " + std::to_string(o.look_back) + " has no effect without carry; leave one of them out");
    }
    if (o.windows.law != WindowSpec::Law::fixed) {
        if (!source.divisible())
            throw InvalidArgument("windows of random length want sequences that may be cut anywhere, but those of " + source.name() +
                                  " may not; take fixed windows");
        if (o.look_back > 0) throw InvalidArgument("look_back = " + std::to_string(o.look_back) + " wants fixed windows; leave one of them out");
        if (!o.carry) throw InvalidArgument("windows of random length want a carry from one to the next; leave one of them out");
        if (std::string why = o.windows.problem(source.window(), o.chunk); !why.empty()) throw InvalidArgument(why);
    }
    if (!network.spec().segmentable()) {
        const Index steps = source.window();
        if (o.carry)
            throw InvalidArgument("a bidirectional layer, or full attention, reads whole sequences, so no state goes on to a next window; set carry to false");
        if (o.chunk < steps)
            throw InvalidArgument("a bidirectional layer is not cut in time: chunk must be at least the window's " + std::to_string(steps) +
                                  " steps, got " + std::to_string(o.chunk));
    }
    check_whole(network.spec(), source);
    if (o.form == TrainOptions::LookBack::once)
        for (Index w = 1; w < source.windows(); ++w)
            if (source.fresh(w))
                throw InvalidArgument("the form `once` keeps the parameters of one run of sequences, but window " + std::to_string(w) + " of " +
                                      source.name() + " begins others; take the form recompute, or a batch that holds all sequences");
    if (o.form == TrainOptions::LookBack::once && network.spec().random())
        throw InvalidArgument("the form `once` keeps each step's first run, but dropout has other masks in every window; take the form "
                              "recompute, or no dropout");
    if (source.batch() % o.micro_batches != 0)
        throw InvalidArgument("micro_batches must divide the batch, got " + std::to_string(o.micro_batches) + " for " +
                              std::to_string(source.batch()) + " sequences");
    if (network.spec().loss.reduction == LossSpec::Reduction::none)
        throw InvalidArgument("training wants one loss, but this model's reduction is none; take mean or sum");
}

std::uint64_t window_seed(std::uint64_t seed, Index window) {
    return Random(seed, 0xffffffff).bits(0, static_cast<std::uint64_t>(window));
}

template <class Real>
Plan plan_for(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o) {
    const Workload w = workload(network, source, o);
    if (o.schedule.family == "auto") return make_plan(w, o.budget);
    Plan plan = price(w, o.schedule);
    const auto over = [&](const char* what, std::int64_t needs, std::int64_t offered) {
        if (offered != Budget::unlimited && needs > offered)
            throw NoPlan("schedule " + o.schedule.family + " does not fit: " + what + ": needs " + bytes_in_words(needs) + " (" +
                         std::to_string(needs) + " bytes), offered " + bytes_in_words(offered) + " (" + std::to_string(offered) +
                         " bytes); offer that much, or let the planner choose (family \"auto\")");
    };
    over("ram", plan.predicted.total(), o.budget.ram);
    over("time axis", plan.predicted.time_axis(), o.budget.time_axis);
    return plan;
}

}  // namespace

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
    for (std::string why : {least("look_back", look_back, 0), least("chunk", chunk, 1), least("shards", shards, 0),
                            least("threads", threads, 1), least("micro_batches", micro_batches, 1), optimizer.problem(), rate.problem(),
                            clip.problem()})
        if (!why.empty()) return why;
    if (rate.momentum_at(0) && !optimizer.has_momentum())
        return std::string("the one-cycle rate moves a momentum, but ") + optimizer.name() + " has none; give it one, or set cycle_momentum to false";
    if (form == LookBack::once && look_back == 0) return "the form `once` has no effect without look_back; give look_back, or take recompute";
    for (const auto& [name, limit] : {std::pair{"ram", budget.ram}, std::pair{"time_axis", budget.time_axis}})
        if (limit != Budget::unlimited && limit < 1) return std::string("the limit ") + name + " must be at least 1 byte, got " + std::to_string(limit);
    if (schedule.needs_state || !schedule.loss) return "the schedule of a training has a loss and needs no state; leave these two options at their defaults";
    if (schedule.family == "auto" && (schedule.slots != 0 || schedule.period != 0 || !schedule.rule.empty()))
        return "slots, period and rule have no effect with schedule \"auto\"; name the family that they are for";
    return {};
}

template <class Real>
Workload workload(const Network<Real>& network, const Source<Real>& source, const TrainOptions& o) {
    check(network, source, o);
    const Cuts cuts(source.batch(), o.micro_batches, o.shards);
    const std::int64_t parameters = network.parameters().size() * static_cast<std::int64_t>(sizeof(Real));
    Workload w;
    w.steps = std::min(o.windows.most(source.window()) + std::min(o.look_back, source.length()), source.length());
    w.chunk = o.chunk;
    for (const Index size : cuts.sizes) {
        const TimeChainSizes s = time_chain_sizes(network, w.steps, size, o.chunk, o.carry, o.memories, o.depth);
        w.state += s.state;
        w.reverse = std::max(w.reverse, 2.0 + s.replayed);
        // The working state and the adjoint; with carry, x_0 and the next x_0 of every micro-batch.
        w.always[Kind::carry] += s.state + s.adjoint + (o.carry ? 2 * o.micro_batches * s.between : 0);
        w.tape += s.tape;
        w.always[Kind::workspace] += s.workspace;
        w.always[Kind::log] += s.log;
        w.always[Kind::gradients] += parameters;
    }
    w.always[Kind::parameters] = parameters * versions_kept(source, o);
    w.always[Kind::moments] = parameters * o.optimizer.moments();
    w.always[Kind::data] = w.steps * source.batch() * source.step_bytes();
    return w;
}

template <class Real>
struct Trainer<Real>::Shard {
    using Chain = TimeChain<Real>;
    using State = typename Chain::State;

    Shard(const Network<Real>& network, Index number_, Index batch, Index micro_batches, const TrainOptions& o, const Plan& plan, bool carry)
        : number(number_),
          links(plan.schedule.steps),
          chain(network, batch, o.chunk, ledger, o.memories, o.depth),
          run(chain, make_schedule(plan.schedule)),
          gradients(network.parameters().size(), Kind::gradients, ledger) {
        for (Index m = 0; m < micro_batches; ++m) batches.emplace_back(ledger);
        chain.add_to(gradients.data());
        if (!carry) return;
        for (Index m = 0; m < micro_batches; ++m) {
            starts.push_back(chain.zero());
            nexts.push_back(chain.zero());
        }
    }

    Index number;
    Index links;  // of the schedule that `run` follows
    Ledger ledger;
    Chain chain;
    Execution<Chain> run;
    Buffer<Real> gradients;
    std::vector<State> starts, nexts;    // by micro-batch: the carry before this window, and before the next
    std::vector<Batch<Real>> batches;    // by micro-batch
    std::vector<double> losses;          // by micro-batch
    double divisor = 0.0;
    Counts counts;
};

template <class Real>
Trainer<Real>::Trainer(const Network<Real>& network, const Source<Real>& source, TrainOptions options)
    : Trainer(network, source, options, plan_for(network, source, options)) {}

template <class Real>
Trainer<Real>::Trainer(const Network<Real>& network, const Source<Real>& source, TrainOptions options, Plan plan)
    : network_(&network),
      source_(&source),
      options_(std::move(options)),
      plan_(std::move(plan)),
      parameters_(network.parameters().size(), Kind::parameters, ledger_),
      optimizer_(options_.optimizer, network.parameters(), ledger_) {
    check(network, source, options_);
    const Plan fresh = price(workload(network, source, options_), plan_.schedule);
    if (plan_.chunk != fresh.chunk || plan_.schedule.steps != fresh.schedule.steps || plan_.predicted != fresh.predicted)
        throw InvalidArgument("the plan is of another run: it is for " + std::to_string(plan_.schedule.steps) + " links of " +
                              std::to_string(plan_.chunk) + " steps and " + std::to_string(plan_.predicted.total()) + " bytes, this run has " +
                              std::to_string(fresh.schedule.steps) + " links of " + std::to_string(fresh.chunk) + " steps and " +
                              std::to_string(fresh.predicted.total()) + " bytes; make a plan for this run");
    network.start(options_.seed, parameters_.span());
    const Cuts cuts(source.batch(), options_.micro_batches, options_.shards);
    for (Index s = 0; s < cuts.shards(); ++s)
        shards_.push_back(std::make_unique<Shard>(network, s, cuts.sizes[static_cast<std::size_t>(s)], options_.micro_batches, options_, plan_,
                                                  options_.carry));
}

template <class Real>
Trainer<Real>::~Trainer() = default;

template <class Real>
void Trainer<Real>::over_shards(const std::function<void(Shard&)>& f) {
    in_parallel(static_cast<Index>(shards_.size()), options_.threads, [&](Index s) { f(*shards_[static_cast<std::size_t>(s)]); });
}

template <class Real>
std::vector<const Real*> Trainer<Real>::versions(Index first, Index links) const {
    std::vector<const Real*> versions;
    const Index now = updates_ % source_->windows();
    for (Index link = 0; link < links; ++link) {
        const Index age = now - (first + link * options_.chunk) / source_->window();
        versions.push_back(age == 0 ? parameters_.data() : older_[older_.size() - static_cast<std::size_t>(age)].data());
    }
    return versions;
}

template <class Real>
void Trainer<Real>::sweep(Shard& shard, const WindowCut& cut, double scale) {
    shard.gradients.fill(Real{0});
    shard.losses.clear();
    shard.counts = {};
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const bool begins = !options_.carry || (updates_ > 0 && fresh());
    const bool goes_on = options_.carry && !(random_windows() ? position_ + cut.steps == source_->length() : source_->fresh(updates_ + 1));
    if (goes_on) check_whole(network_->spec(), updates_, source_->name());
    for (std::size_t m = 0; m < shard.batches.size(); ++m) {
        const Batch<Real>& batch = shard.batches[m];
        Window<Real> window = window_of(batch);
        window.scale = scale;
        window.begins = network_->spec().learned_state() && (!options_.carry || batch.first == 0);
        window.seed = window_seed(options_.seed, updates_);
        window.sequence = cuts.sequences(static_cast<Index>(m), shard.number).first;
        window.factors = cut.factors;
        if (begins)
            shard.chain.start_from_zero();
        else
            shard.chain.start_from(shard.starts[m]);
        shard.chain.show(window);
        const Index links = *shard.chain.length();
        if (options_.form == TrainOptions::LookBack::once)
            shard.chain.use(versions(batch.first, links));
        else
            shard.chain.use(parameters_.data());
        if (links != std::exchange(shard.links, links)) shard.run.follow(make_schedule(schedule_for(plan_, links)));
        if (goes_on) {
            // The next window begins look_back steps before the end of this one, or where this one does.
            const Index next = std::max<Index>(0, batch.first + batch.steps - options_.look_back) - batch.first;
            const Index link = std::min(links, ceil_div(next, options_.chunk));
            shard.run.watch(link, [&, m, link](const typename Shard::State& x) { shard.chain.carry_over(link, x, shard.nexts[m]); });
        } else {
            shard.run.watch(-1, {});
        }
        shard.run.forward();
        shard.run.backward();
        shard.losses.push_back(shard.chain.loss());
        shard.counts += shard.run.counts();
    }
}

template <class Real>
UpdateReport Trainer<Real>::update() {
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    WindowCut cut;
    Range steps;
    if (random_windows()) {
        cut = cut_window(options_.windows, source_->window(), options_.chunk, source_->length() - position_, options_.seed, updates_);
        steps = {position_, position_ + cut.steps};
    }
    over_shards([&](Shard& shard) {
        shard.divisor = 0.0;
        for (Index m = 0; m < cuts.micro_batches; ++m) {
            Batch<Real>& batch = shard.batches[static_cast<std::size_t>(m)];
            source_->read({updates_, cuts.sequences(m, shard.number), options_.look_back, steps}, batch);
            check_shapes(network_->spec(), batch, source_->name());
            shard.divisor += divisor(network_->spec(), batch);
        }
    });
    double positions = 0.0;
    for (const auto& shard : shards_) positions += shard->divisor;
    check_positions(positions, updates_, source_->name());
    const bool mean = is_mean(network_->spec()), counts = positions > 0.0;
    if (!counts && ++silent_ >= source_->windows())
        throw NumericError("the last " + std::to_string(silent_) + " windows of " + source_->name() +
                           " have no position with a loss, so that nothing is learnt; is everything ignored or weighted by 0?");
    if (counts) silent_ = 0;
    const double divisor = mean && counts ? positions : 1.0;
    // artbp: the sum of the gradients of all windows is unbiased, so each is divided by the same number: the positions of
    // a window of mean length.
    const double window = static_cast<double>(source_->window());
    const double constant = window * static_cast<double>(source_->batch() * std::max<Index>(1, network_->spec().targets()));
    const bool unbiased = mean && options_.windows.law == WindowSpec::Law::artbp;
    over_shards([&](Shard& shard) { sweep(shard, cut, 1.0 / (unbiased ? constant : divisor)); });

    UpdateReport report;
    const Batch<Real>& seen = shards_.front()->batches.front();
    report.update = updates_ + 1;
    report.first = seen.first + seen.loss_from;
    report.steps = seen.steps - seen.loss_from;
    report.positions = positions;
    double sum = 0.0;
    for (Index m = 0; m < cuts.micro_batches; ++m)
        for (const auto& shard : shards_) sum += shard->losses[static_cast<std::size_t>(m)];
    report.loss = sum / divisor;
    for (const auto& shard : shards_) report.counts += shard->counts;

    Buffer<Real>& gradients = shards_.front()->gradients;
    for (std::size_t s = 1; s < shards_.size(); ++s)
        for (Index k = 0; k < gradients.size(); ++k) gradients[k] += shards_[s]->gradients[k];
    report.gradient_norm = clip(options_.clip, network_->parameters(), gradients.span());
    report.rate = options_.rate.at(updates_, plateau_);
    if (options_.windows.law == WindowSpec::Law::normal) report.rate *= static_cast<double>(cut.steps) / window;

    if (const Index kept = versions_kept(*source_, options_) - 1; kept > 0) {
        if (static_cast<Index>(older_.size()) < kept)
            older_.push_back(parameters_);
        else {
            older_.push_back(std::move(older_.front()));
            older_.pop_front();
            older_.back() = parameters_;
        }
    }
    // A window without a loss carries the state on and changes nothing else.
    if (counts) optimizer_.step(parameters_.span(), gradients.span(), report.rate, options_.rate.momentum_at(updates_));
    for (const auto& shard : shards_)
        for (std::size_t m = 0; m < shard->starts.size(); ++m) swap(shard->starts[m], shard->nexts[m]);
    ++updates_;
    if (!random_windows()) {
        epoch_ = updates_ / source_->windows();
    } else if ((position_ += cut.steps) == source_->length()) {
        position_ = 0;
        ++epoch_;
    }
    counts_ += report.counts;
    return report;
}

template <class Real>
void Trainer<Real>::run(Index count, const std::function<void(const UpdateReport&)>& each) {
    for (Index k = 0; k < count; ++k) {
        const UpdateReport report = update();
        if (each) each(report);
    }
}

template <class Real>
std::span<const Real> Trainer<Real>::gradients() const noexcept {
    return shards_.front()->gradients.span();
}

template <class Real>
Bytes Trainer<Real>::measured() const {
    Bytes sum = ledger_.peak();
    for (const auto& shard : shards_) sum += shard->ledger.peak();
    return sum;
}

template <class Real>
Bytes Trainer<Real>::live() const {
    Bytes sum = ledger_.live();
    for (const auto& shard : shards_) sum += shard->ledger.live();
    return sum;
}

template <class Real>
std::span<const Real> Trainer<Real>::carry(Index micro_batch, Index shard) const {
    const Index shards = static_cast<Index>(shards_.size()), micro_batches = options_.carry ? options_.micro_batches : 0;
    if (micro_batch < 0 || micro_batch >= micro_batches || shard < 0 || shard >= shards)
        throw InvalidArgument("there is no carry of micro-batch " + std::to_string(micro_batch) + ", shard " + std::to_string(shard) +
                              ": this run keeps " + std::to_string(micro_batches) + " x " + std::to_string(shards));
    return shards_[static_cast<std::size_t>(shard)]->starts[static_cast<std::size_t>(micro_batch)].carry.span();
}

template <class Real>
std::span<Real> Trainer<Real>::carry(Index micro_batch, Index shard) {
    const std::span<const Real> kept = std::as_const(*this).carry(micro_batch, shard);
    return {const_cast<Real*>(kept.data()), kept.size()};
}

namespace {

std::string carry_name(std::size_t micro_batch, std::size_t shard) {
    return "carry.micro" + std::to_string(micro_batch) + ".shard" + std::to_string(shard);
}

std::string version_name(std::size_t age) { return "version" + std::to_string(age) + "."; }

}  // namespace

template <class Real>
Snapshot Trainer<Real>::snapshot() const {
    Snapshot s;
    s.update = updates_;
    s.epoch = epoch();
    s.step = random_windows() ? position_ : updates_ % source_->windows() * source_->window();
    s.seed = options_.seed;
    s.model = network_->spec();
    s.optimizer = options_.optimizer;
    s.rate = options_.rate;
    s.plateau = plateau_;
    s.clip = options_.clip;
    s.windows = options_.windows;
    s.plan = to_json(plan_);
    s.add_parameters<Real>(network_->parameters(), parameters_.span());
    s.add_optimizer(network_->parameters(), optimizer_);
    for (std::size_t k = 0; k < shards_.size(); ++k)
        for (std::size_t m = 0; m < shards_[k]->starts.size(); ++m) {
            const Buffer<Real>& carry = shards_[k]->starts[m].carry;
            s.add<Real>(carry_name(m, k), {carry.size()}, carry.span());
        }
    for (std::size_t v = 0; v < older_.size(); ++v)
        s.add_parameters<Real>(network_->parameters(), older_[v].span(), version_name(older_.size() - v));
    return s;
}

template <class Real>
void Trainer<Real>::restore(const Snapshot& s) {
    s.require(network_->spec());
    if (const std::string plan = to_json(plan_); s.plan != plan)
        throw InvalidArgument(s.source + " was made under another plan: " + s.plan + "; this run's is " + plan +
                              "; give the trainer the snapshot's plan (plan_from_json)");
    if (s.seed != options_.seed)
        throw InvalidArgument(s.source + " was made with seed " + std::to_string(s.seed) + ", this run has " + std::to_string(options_.seed) +
                              "; take the snapshot's");
    for (const auto& [what, theirs, ours] : {std::tuple{"rate", to_json(s.rate), to_json(options_.rate)},
                                             std::tuple{"clipping", to_json(s.clip), to_json(options_.clip)},
                                             std::tuple{"law of windows", to_json(s.windows), to_json(options_.windows)}})
        if (theirs != ours)
            throw InvalidArgument(s.source + " was made with another " + what + ": " + theirs + "; this run's is " + ours + "; take the snapshot's");

    // All into new memory first, so that a snapshot that lacks something changes nothing.
    const ParameterLayout& layout = network_->parameters();
    Buffer<Real> parameters(layout.size(), Kind::parameters);
    s.read_parameters<Real>(layout, parameters.span());
    std::vector<std::vector<Buffer<Real>>> carries(shards_.size());
    for (std::size_t k = 0; k < shards_.size(); ++k)
        for (std::size_t m = 0; m < shards_[k]->starts.size(); ++m) {
            carries[k].emplace_back(shards_[k]->starts[m].carry.size(), Kind::carry);
            s.read<Real>(carry_name(m, k), carries[k].back().span());
        }
    std::deque<Buffer<Real>> older;
    const Index kept = std::min(versions_kept(*source_, options_) - 1, s.update);
    for (Index age = kept; age > 0; --age) {
        older.emplace_back(layout.size(), Kind::parameters, ledger_);
        s.read_parameters<Real>(layout, older.back().span(), version_name(static_cast<std::size_t>(age)));
    }
    s.read_optimizer(layout, optimizer_);

    parameters_ = parameters;
    older_ = std::move(older);
    plateau_ = s.plateau;
    for (std::size_t k = 0; k < shards_.size(); ++k)
        for (std::size_t m = 0; m < carries[k].size(); ++m) shards_[k]->starts[m].carry = carries[k][m];
    updates_ = s.update;
    epoch_ = s.epoch;
    position_ = random_windows() ? s.step : 0;
}

template <class Real>
Evaluation evaluate(const Network<Real>& network, std::span<const Real> parameters, const Source<Real>& source, Index chunk, Index shards,
                    Index threads, bool carry) {
    if (static_cast<Index>(parameters.size()) != network.parameters().size())
        throw InvalidArgument("evaluate wants " + std::to_string(network.parameters().size()) + " parameters, got " +
                              std::to_string(parameters.size()));
    check_whole(network.spec(), source);
    if (carry && !network.spec().segmentable())
        throw InvalidArgument("a bidirectional layer, or full attention, reads whole sequences, so no state goes on to a next window; set carry to false");
    using State = typename TimeChain<Real>::State;
    struct Part {
        Part(const Network<Real>& network, Index batch, Index chunk) : chain(network, batch, chunk) {}
        TimeChain<Real> chain;
        Batch<Real> data;
        Index links = 0;
        std::unique_ptr<Execution<TimeChain<Real>>> run;
        State start;
        double divisor = 0.0;
    };
    const Cuts cuts(source.batch(), 1, shards);
    std::vector<std::unique_ptr<Part>> parts;
    for (const Index size : cuts.sizes) {
        parts.push_back(std::make_unique<Part>(network, size, chunk));
        parts.back()->chain.use(parameters.data());
        parts.back()->start = parts.back()->chain.zero();
    }

    Evaluation total;
    double sum = 0.0;
    for (Index w = 0; w < source.windows(); ++w) {
        in_parallel(cuts.shards(), threads, [&](Index s) {
            Part& part = *parts[static_cast<std::size_t>(s)];
            source.read({w, cuts.sequences(0, s), 0}, part.data);
            check_shapes(network.spec(), part.data, source.name());
            if (carry && !source.fresh(w + 1)) check_whole(network.spec(), w, source.name());
            part.divisor = divisor(network.spec(), part.data);
            if (!carry || source.fresh(w))
                part.chain.start_from_zero();
            else
                part.chain.start_from(part.start);
            Window<Real> window = window_of(part.data);
            window.training = false;
            window.begins = network.spec().learned_state() && (!carry || window.first == 0);
            part.chain.show(window);
            const Index links = *part.chain.length();
            if (links != std::exchange(part.links, links)) {
                ScheduleOptions options;
                options.family = "forward_only";
                options.steps = links;
                part.run = std::make_unique<Execution<TimeChain<Real>>>(part.chain, make_schedule(options));
            }
            part.run->forward();
            part.chain.carry_over(links, part.run->state(), part.start);
        });
        for (const auto& part : parts) sum += part->chain.loss();
        for (const auto& part : parts) total.positions += part->divisor;
    }
    check_positions(total.positions, source.windows() - 1, source.name());
    if (is_mean(network.spec()) && total.positions == 0.0)
        throw NumericError(source.name() + " has no position with a loss: a mean over nothing; is everything ignored or weighted by 0?");
    total.windows = source.windows();
    total.loss = is_mean(network.spec()) ? sum / total.positions : sum;
    return total;
}

template class Trainer<float>;
template class Trainer<double>;
template Workload workload(const Network<float>&, const Source<float>&, const TrainOptions&);
template Workload workload(const Network<double>&, const Source<double>&, const TrainOptions&);
template Evaluation evaluate(const Network<float>&, std::span<const float>, const Source<float>&, Index, Index, Index, bool);
template Evaluation evaluate(const Network<double>&, std::span<const double>, const Source<double>&, Index, Index, Index, bool);

}  // namespace backsweep
