// SPDX-License-Identifier: MIT
#include "backsweep/train/trainer.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/loss.hpp"
#include "backsweep/train/plan_json.hpp"
#include "backsweep/train/spec_json.hpp"
#include "backsweep/train/planner.hpp"
#include "parallel.hpp"
#include "train/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace backsweep {

namespace {

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

std::uint64_t window_seed(std::uint64_t seed, Index window) {
    return Random(seed, 0xffffffff).bits(0, static_cast<std::uint64_t>(window));
}

/// What the gradient of a sweep is a function of, besides x_0.
template <class Real>
std::uint64_t sweep_fingerprint(const Buffer<Real>& parameters, const Batch<Real>& batch) {
    const auto bytes = [](const auto& array) {
        return blob(const_cast<std::remove_const_t<std::remove_reference_t<decltype(*array.data())>>*>(array.data()),
                    static_cast<std::size_t>(array.size()));
    };
    const std::array<Blob, 7> all{bytes(parameters),    bytes(batch.tokens),  bytes(batch.inputs), bytes(batch.classes),
                                  bytes(batch.values),  bytes(batch.weights), bytes(batch.marks)};
    return fingerprint(all);
}

}  // namespace

template <class Real>
struct Trainer<Real>::Shard {
    using Chain = TimeChain<Real>;
    using State = typename Chain::State;

    Shard(const Network<Real>& network, Index number_, Index batch, const TrainOptions& o, const Plan& plan)
        : number(number_),
          links(plan.schedule.steps),
          chain(network, batch, o.chunk, ledger, o.memories, o.depth),
          run(chain, schedule_for(plan, plan.schedule.steps)),
          gradients(network.parameters().size(), Kind::gradients, ledger) {
        chain.verify(o.verify == TrainOptions::Verify::steps);
        run.verify(o.verify != TrainOptions::Verify::off);
        for (Index m = 0; m < o.micro_batches; ++m) batches.emplace_back(ledger);
        chain.add_to(gradients.data());
        if (!o.carry) return;
        for (Index m = 0; m < o.micro_batches; ++m) {
            starts.push_back(chain.zero());
            nexts.push_back(chain.zero());
        }
    }

    /// The files of its slots and its journal.
    void open(const Network<Real>& network, Index batch, Index steps, const TrainOptions& o, const Plan& plan) {
        if (plan.disk_slots > 0) {
            const MemoryLayout layout = memory_layout(network, batch, std::min(o.chunk, steps), o.memories);
            store.emplace(store_options(o, number, layout.state * static_cast<std::int64_t>(sizeof(Real)), plan.disk_slots), ledger);
            run.use(Tier::disk, *store);
        }
        if (o.commit.on()) {
            const TimeChainSizes sizes = time_chain_sizes(network, steps, batch, o.chunk, o.carry, o.memories, o.depth);
            const Index links_in_all = plan.schedule.steps;
            const std::uint64_t of = run_fingerprint(o);
            journal.emplace(JournalOptions{std::filesystem::path(o.scratch.folder) / fmt::format("shard{}-{:016x}.journal", number, of), of,
                                           journal_bytes(sizes, gradients.bytes(), links_in_all, o.micro_batches, plan.disk_slots)});
            CommitOptions commit{.links = o.commit.links, .seconds = o.commit.seconds};
            losses.assign(static_cast<std::size_t>(o.micro_batches), 0.0);
            commit.more = [this] {
                std::vector<Blob> all{blob(losses.data(), losses.size()), blob(&swept, 1)};
                for (State& next : nexts) all.push_back(blob(next.carry.data(), static_cast<std::size_t>(next.carry.size())));
                return all;
            };
            run.commit_to(*journal, std::move(commit));
            pending = Commits::sweep_in(*journal);
        }
    }

    Index number;
    Index micro_batch = 0;  // that is swept
    Index links;            // of the schedule that `run` follows
    Ledger ledger;
    Chain chain;
    std::optional<DiskStore> store;  // of the schedule's slots on disk
    std::optional<Journal> journal;
    std::optional<std::uint64_t> pending;  // the sweep that a killed process was in: those before it commit nothing
    Recovery recovery;
    std::uint64_t swept = 0;  // fingerprint of the parameters and data of the sweep under way
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
    : Trainer(network, source, options, Planner<Real>(network, source, options).best()) {}

template <class Real>
Trainer<Real>::Trainer(const Network<Real>& network, const Source<Real>& source, TrainOptions options, Plan plan)
    : network_(&network),
      source_(&source),
      options_(planned(std::move(options), plan, network.memories().size())),
      plan_(std::move(plan)),
      parameters_(network.parameters().size(), Kind::parameters, ledger_),
      prepared_(options_.form == TrainOptions::LookBack::once ? 0 : network.prepared(), Kind::parameters, ledger_),
      optimizer_(options_.optimizer, network.parameters(), ledger_),
      workers_(std::make_unique<Workers>(options_.threads)) {
    check(network, source, options_);
    const Plan fresh = price(workload(network, source, options_), plan_.schedule);
    if (plan_.chunk != fresh.chunk || plan_.schedule.steps != fresh.schedule.steps || plan_.predicted != fresh.predicted)
        throw InvalidArgument("the plan is of another run: it is for " + std::to_string(plan_.schedule.steps) + " links of " +
                              std::to_string(plan_.chunk) + " steps and " + std::to_string(plan_.predicted.total()) + " bytes, this run has " +
                              std::to_string(fresh.schedule.steps) + " links of " + std::to_string(fresh.chunk) + " steps and " +
                              std::to_string(fresh.predicted.total()) + " bytes; make a plan for this run");
    network.start(options_.seed, parameters_.span());
    const Cuts cuts(source.batch(), options_.micro_batches, options_.shards);
    const Index steps = longest_window(source, options_);
    shards_.resize(static_cast<std::size_t>(cuts.shards()));
    // Each by the thread that will sweep it: memory lies near the core that first writes to it.
    workers_->run(cuts.shards(), [&](Index s) {
        const auto i = static_cast<std::size_t>(s);
        shards_[i] = std::make_unique<Shard>(network, s, cuts.sizes[i], options_, plan_);
    });
    // In order: of two processes that begin at once in one folder the one that has the first file gets all.
    for (const auto& shard : shards_)
        shard->open(network, cuts.sizes[static_cast<std::size_t>(shard->number)], steps, options_, plan_);
}

template <class Real>
Trainer<Real>::~Trainer() {
    if (under_way_) return;  // what lies on disk may be gone on from
    for (const auto& shard : shards_) {
        if (shard->store && options_.commit.on()) shard->store->remove();
        if (shard->journal) shard->journal->remove();
    }
}

template <class Real>
void Trainer<Real>::over_shards(const std::function<void(Shard&)>& f) {
    workers_->run(static_cast<Index>(shards_.size()), [&](Index s) { f(*shards_[static_cast<std::size_t>(s)]); });
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
    shard.losses.assign(shard.batches.size(), 0.0);
    shard.counts = {};
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const bool begins = !options_.carry || (updates_ > 0 && fresh());
    const bool goes_on = options_.carry && !(random_windows() ? position_ + cut.steps == source_->length() : source_->fresh(updates_ + 1));
    if (goes_on) check_whole(network_->spec(), updates_, source_->name());
    for (std::size_t m = 0; m < shard.batches.size(); ++m) {
        const Batch<Real>& batch = shard.batches[m];
        shard.micro_batch = static_cast<Index>(m);
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
            shard.chain.use(parameters_.data(), prepared_.size() > 0 ? prepared_.data() : nullptr);
        if (links != std::exchange(shard.links, links)) shard.run.follow(schedule_for(plan_, links));
        if (goes_on) {
            // The next window begins look_back steps before the end of this one, or where this one does.
            const Index next = std::max<Index>(0, batch.first + batch.steps - options_.look_back) - batch.first;
            const Index link = std::min(links, ceil_div(next, options_.chunk));
            shard.run.watch(link, [&, m, link](const typename Shard::State& x) { shard.chain.carry_over(link, x, shard.nexts[m]); });
        } else {
            shard.run.watch(-1, {});
        }
        const auto number = static_cast<std::uint64_t>(updates_ * options_.micro_batches) + m;
        if (shard.journal && (!shard.pending || number >= *shard.pending)) {
            const std::uint64_t now = shard.swept = sweep_fingerprint(parameters_, shard.batches[m]);
            const Recovery recovery = shard.run.recover(number);
            if (shard.swept != now)
                throw InvalidArgument("the journals in '" + options_.scratch.folder + "' are of a sweep with other parameters or data (update " +
                                      std::to_string(updates_ + 1) + "): resume the run that they belong to, or take another folder, or delete them");
            if (std::exchange(shard.pending, std::nullopt) || shard.recovery.text.empty()) shard.recovery = recovery;
        } else {
            shard.run.forward();
        }
        shard.run.backward();
        shard.losses[m] = shard.chain.loss();
        shard.counts += shard.run.counts();
    }
}

template <class Real>
UpdateReport Trainer<Real>::update() {
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    under_way_ = true;
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
    if (prepared_.size() > 0) network_->prepare(parameters_.data(), prepared_.data());
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
    under_way_ = false;
#ifndef NDEBUG
    if (const std::string over = overrun(); !over.empty()) throw Error(over);
#endif
    const auto goes_on = [](const auto& shard) { return !shard->pending; };
    if (options_.commit.on() && recoveries_.empty() && std::all_of(shards_.begin(), shards_.end(), goes_on))
        for (const auto& shard : shards_) recoveries_.push_back(shard->recovery);
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
std::string Trainer<Real>::overrun() const {
    if (options_.verify != TrainOptions::Verify::off) return {};
    const Bytes held = measured();
    std::string over;
    for (std::size_t k = 0; k < kind_count; ++k) {
        const std::int64_t more = held.by_kind[k] - plan_.predicted.by_kind[k];
        if (more <= 0) continue;
        over += over.empty() ? "more was held than the plan foretells: " : ", ";
        over += to_string(static_cast<Kind>(k));
        over += " by " + std::to_string(more) + " bytes";
    }
    if (!over.empty()) over += "; does the source give more than its step_bytes()?";
    return over;
}

template <class Real>
Bytes Trainer<Real>::live(Index shard) const {
    if (shard < 0 || shard >= shards())
        throw InvalidArgument("there is no shard " + std::to_string(shard) + ": this run has " + std::to_string(shards()));
    return shards_[static_cast<std::size_t>(shard)]->ledger.live();
}

template <class Real>
void Trainer<Real>::observe_actions(const std::function<void(const Played&)>& f) {
    for (const auto& s : shards_) {
        if (!f) {
            s->run.observe({});
            continue;
        }
        s->run.observe([this, f, &shard = *s](const Action& action, double begin, double end) {
            f({updates_ + 1, shard.number, shard.micro_batch, action, begin, end});
        });
    }
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
    Buffer<Real> prepared(network.prepared(), Kind::parameters);
    if (prepared.size() > 0) network.prepare(parameters.data(), prepared.data());
    std::vector<std::unique_ptr<Part>> parts(static_cast<std::size_t>(cuts.shards()));
    Workers workers(threads);
    workers.run(cuts.shards(), [&](Index s) {
        const auto i = static_cast<std::size_t>(s);
        parts[i] = std::make_unique<Part>(network, cuts.sizes[i], chunk);
        parts[i]->chain.use(parameters.data(), prepared.size() > 0 ? prepared.data() : nullptr);
        parts[i]->start = parts[i]->chain.zero();
    });

    Evaluation total;
    double sum = 0.0;
    for (Index w = 0; w < source.windows(); ++w) {
        workers.run(cuts.shards(), [&](Index s) {
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
template Evaluation evaluate(const Network<float>&, std::span<const float>, const Source<float>&, Index, Index, Index, bool);
template Evaluation evaluate(const Network<double>&, std::span<const double>, const Source<double>&, Index, Index, Index, bool);

}  // namespace backsweep
