// SPDX-License-Identifier: MIT
#include "backsweep/train/planner.hpp"

#include "backsweep/base/error.hpp"
#include "train/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace backsweep {

namespace {

constexpr std::array depth_names{"store_all", "sqrt", "slots", "optimal"};
constexpr std::array place_names{"log", "file", "state"};

std::string key_of(const DepthOptions& d) {
    return fmt::format("{} {} {} {}", static_cast<int>(d.family), d.period, d.slots, d.budget);
}

DepthChoice choice_of(const DepthOptions& d) {
    DepthChoice choice{depth_names[static_cast<std::size_t>(d.family)], d.period, d.slots, d.budget, {}};
    for (const Work& w : d.work) choice.work.insert(choice.work.end(), {w.forward, w.reverse});
    return choice;
}

/// All memories in one place.
MemoryPlaces all_in(MemoryPlace place, std::size_t memories, const std::string& folder) {
    if (place == MemoryPlace::log) return {};
    return {std::vector<MemoryPlace>(memories, place), place == MemoryPlace::file ? folder : std::string{}};
}

/// "log"; places one by one are told in their order.
std::string name_of(const MemoryPlaces& places, std::size_t memories) {
    if (memories == 0) return {};
    std::string all;
    for (std::size_t m = 0; m < memories; ++m) {
        if (m > 0) all += ' ';
        all += place_names[static_cast<std::size_t>(places.of(m))];
    }
    const std::string first = place_names[static_cast<std::size_t>(places.of(0))];
    for (std::size_t m = 1; m < memories; ++m)
        if (places.of(m) != places.of(0)) return all;
    return first;
}

/// Of all lengths of links those that are timed: powers of two, the shortest and the longest. Between them the seconds
/// of a link lie on a line, nearly; and a search among many lengths would find the one that was timed luckily.
std::vector<Index> knots(std::vector<Index> links) {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    const Index least = links.front(), most = links.back();
    std::erase_if(links, [&](Index k) { return k != least && k != most && (k & (k - 1)) != 0; });
    return links;
}

/// "tape 1.00 MiB, log 8.00 MiB": what a plan holds, the most first.
std::string parts_of(const Plan& plan) {
    std::vector<std::pair<std::int64_t, const char*>> parts;
    for (std::size_t k = 0; k < kind_count; ++k)
        if (plan.predicted.by_kind[k] > 0)
            parts.emplace_back(plan.predicted.by_kind[k], to_string(static_cast<Kind>(k)));
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string all = fmt::format("{} ({} bytes", bytes_in_words(plan.predicted.total()), plan.predicted.total());
    for (const auto& [bytes, name] : parts) all += fmt::format(", {} {}", name, bytes_in_words(bytes));
    return all + ")";
}

}  // namespace

/// A form with options that leave nothing but the schedule open.
template <class Real>
struct Planner<Real>::Way {
    const Form* form = nullptr;
    TrainOptions options;
};

/// The least that a layer was seen to take.
template <class Real>
struct Planner<Real>::Seconds {
    double advance = std::numeric_limits<double>::infinity(), record = advance, reverse = advance;

    void take(const Seconds& other) {
        advance = std::min(advance, other.advance);
        record = std::min(record, other.record);
        reverse = std::min(reverse, other.reverse);
    }
};

template <class Real>
struct Planner<Real>::Found {
    struct Candidate {
        Plan plan;
        Way way;
    };
    std::optional<Candidate> best;
    std::optional<Candidate> smallest;  // passes the limits the least
    std::vector<Candidate> good;        // the best of every way, for the optimum along the depth

    double below() const { return best ? best->plan.cost : std::numeric_limits<double>::infinity(); }
    void consider(const Offer& offer, const Way& way, const Budget& budget) {
        if (offer.smallest) {
            const double over = excess(*offer.smallest, budget),
                         least = smallest ? excess(smallest->plan, budget) : 0.0;
            if (!smallest || over < least ||
                (over == least && over > 0.0 && offer.smallest->predicted.total() < smallest->plan.predicted.total()))
                smallest = Candidate{*offer.smallest, way};
        }
        if (!offer.best) return;
        good.push_back({*offer.best, way});
        if (!best || cheaper(*offer.best, best->plan)) best = good.back();
    }
};

template <class Real>
Planner<Real>::Planner(const Network<Real>& network, const Source<Real>& source, TrainOptions options, std::string save)
    : source_(&source),
      options_(std::move(options)) {
    check(network, source, options_);
    // Files that the options name themselves are no matter of the limit on disk.
    if (options_.scratch.folder.empty() && !options_.memories.folder.empty()) options_.budget.disk = Budget::unlimited;
    forms_.push_back({std::move(save), &network});
}

template <class Real>
void Planner<Real>::add(const Network<Real>& form, std::string save) {
    if (form.parameters().size() != forms_.front().network->parameters().size() ||
        form.links() != forms_.front().network->links())
        throw InvalidArgument("a form of a model has its parameters and links, but '" + save + "' has " +
                              std::to_string(form.parameters().size()) + " parameters in " +
                              std::to_string(form.links()) + " links, the model " +
                              std::to_string(forms_.front().network->parameters().size()) + " in " +
                              std::to_string(forms_.front().network->links()));
    for (const Form& known : forms_)
        if (known.save == save)
            throw InvalidArgument("two forms of a model are called '" + save + "'; give them names");
    forms_.push_back({std::move(save), &form});
}

template <class Real>
std::vector<Index> Planner<Real>::chunks() const {
    if (options_.chunk > 0) return {options_.chunk};
    const Network<Real>& network = *forms_.front().network;
    const Index window = longest_window(*source_, options_);
    if (!network.spec().segmentable()) return {std::max<Index>(1, source_->window())};
    constexpr Index longest = 256;
    std::vector<Index> all;
    for (Index k = 1; k <= longest; k *= 2) all.push_back(std::min(k, window));
    for (Index links = 1; links <= 16; ++links) all.push_back(ceil_div(window, links));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    // The whole window, layers outside, pays where what goes between two layers is less than their carries.
    Index width = 1;
    for (Index l = 0; l < network.depth(); ++l) width = std::max(width, network.layer(l).footprint(1, 1).outputs);
    const Index whole = window * width < network.carry() ? window : 0;
    std::erase_if(all, [&](Index chunk) {
        if (chunk > longest && chunk != whole) return true;
        if (options_.look_back > 0 && (source_->window() % chunk != 0 || options_.look_back % chunk != 0)) return true;
        return options_.windows.law != WindowSpec::Law::fixed &&
               !options_.windows.problem(source_->window(), chunk).empty();
    });
    std::reverse(all.begin(), all.end());  // long links cost the least where they fit
    return all;
}

/// Those that leave `budget` aside, rising recomputation.
template <class Real>
std::vector<DepthOptions> Planner<Real>::depths(const Form& form) const {
    if (!options_.plan_depth) return {options_.depth};
    const Index links = form.network->links();
    std::vector<DepthOptions> all{options_.depth};
    for (Index period = links - 1; period >= 1; --period) {
        if (period > 1 && (links - 1) / period == (links - 1) / (period - 1)) continue;  // the shorter has less of both
        all.push_back(options_.depth);
        all.back().family = DepthOptions::Family::sqrt;
        all.back().period = period;
    }
    for (Index slots = std::min<Index>(links - 1, 24); slots >= 0; slots = slots > 8 ? slots * 3 / 4 : slots - 1) {
        all.push_back(options_.depth);
        all.back().family = DepthOptions::Family::slots;
        all.back().slots = slots;
    }
    return all;
}

template <class Real>
std::vector<MemoryPlaces> Planner<Real>::places(const Form& form) const {
    const std::size_t memories = form.network->memories().size();
    if (!options_.plan_memories || memories == 0) return {options_.memories};
    std::vector<MemoryPlaces> all{all_in(MemoryPlace::log, memories, {}), all_in(MemoryPlace::state, memories, {})};
    if (options_.budget.disk != 0) all.push_back(all_in(MemoryPlace::file, memories, options_.scratch.folder));
    return all;
}

template <class Real>
const DepthProgram& Planner<Real>::program(const Way& way, Index batch) const {
    const Index chunk = way.options.chunk;
    const std::string key = fmt::format("{} {} {} {}", way.form->save, chunk, batch, key_of(way.options.depth));
    std::unique_ptr<DepthProgram>& known = programs_[key];
    if (!known) {
        const Index window = longest_window(*source_, options_);
        known = std::make_unique<DepthProgram>(
            depth_program(*way.form->network, std::min(chunk, window), batch, way.options.depth));
    }
    return *known;
}

template <class Real>
const std::vector<Work>& Planner<Real>::prices(const Form& form, Index chunk, Index batch) const {
    std::vector<Work>& known = prices_[fmt::format("{} {} {}", form.save, chunk, batch)];
    if (known.empty() && runs_ > 0)
        throw InvalidArgument("links of " + std::to_string(chunk) +
                              " steps were not timed; name the chunk in the planner's own options");
    if (known.empty()) known = counted_work(*form.network, chunk, batch);
    return known;
}

template <class Real>
Workload Planner<Real>::workload_of(const Way& way) const {
    const Index window = longest_window(*source_, options_);
    const Index link = std::min(way.options.chunk, window);
    Workload w = workload<Real>(
        *way.form->network, *source_, way.options,
        [&](Index batch) -> const DepthProgram& { return program(way, batch); },
        [&](Index batch) -> const std::vector<Work>& { return prices(*way.form, link, batch); });
    if (runs_ > 0) w.write /= way.options.scratch.speed, w.read /= way.options.scratch.speed;  // seconds, as all else
    return w;
}

template <class Real>
Plan Planner<Real>::finished(Plan plan, const Way& way) const {
    plan.save = way.form->save;
    plan.depth = choice_of(way.options.depth);
    plan.memories = name_of(way.options.memories, way.form->network->memories().size());
    plan.measured = runs_ > 0;
    Way least = way;
    least.form = &forms_.front();
    least.options.depth = DepthOptions{};
    const Workload w = workload_of(least);
    plan.least_cost = static_cast<double>(w.steps) / static_cast<double>(w.chunk) * (w.record + w.reverse);
    return plan;
}

/// By the schedule that is given, or any.
template <class Real>
Offer Planner<Real>::offered(const Way& way, const Budget& budget, double below) const {
    const Workload w = workload_of(way);
    if (options_.schedule.family == "auto") return offer(w, budget, below);
    Offer one;
    one.smallest = backsweep::price(w, options_.schedule);
    if (fits(*one.smallest, budget)) one.best = one.smallest;
    return one;
}

template <class Real>
void Planner<Real>::look(const Budget& budget, Found& found) const {
    std::string none;
    for (const Form& form : forms_)
        for (const MemoryPlaces& places : this->places(form))
            for (const Index chunk : chunks())
                for (const DepthOptions& depth : depths(form)) {
                    Way way{&form, options_};
                    way.options.memories = places;
                    way.options.chunk = chunk;
                    way.options.depth = depth;
                    try {
                        const Offer offer = offered(way, budget, found.below());
                        found.consider(offer, way, budget);
                        if (offer.best && offer.best->advances == 0 && depth.family == DepthOptions::Family::store_all)
                            break;
                    } catch (const NoPlan& e) {  // links too long for the bytes that the options give the depth
                        none = e.what();
                    }
                }
    if (!found.smallest) throw NoPlan(none);
}

/// The optimum along the depth: in what good plans leave, and on links that fit in no other way.
template <class Real>
void Planner<Real>::refine(const Budget& budget, Found& found) const {
    if (!options_.plan_depth || forms_.front().network->links() < 3) return;
    if (budget.ram == Budget::unlimited && budget.time_axis == Budget::unlimited) return;
    // The bytes of all shards together; a shard has its share by its sequences.
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const double share = static_cast<double>(cuts.sizes.front()) / static_cast<double>(cuts.micro);
    const auto left_by = [&](const Bytes& bytes) {
        std::int64_t left = std::numeric_limits<std::int64_t>::max();
        if (budget.ram != Budget::unlimited) left = budget.ram - bytes.total();
        if (budget.time_axis != Budget::unlimited) left = std::min(left, budget.time_axis - bytes.time_axis());
        return left;
    };
    // The optimum within `more` bytes beside those of the way's own program.
    const auto try_with = [&](const Way& of, std::int64_t more) {
        const DepthProgram& program = this->program(of, cuts.sizes.front());
        Way way = of;
        way.options.depth = options_.depth;
        way.options.depth.family = DepthOptions::Family::optimal;
        way.options.depth.budget = (program.rest + program.scratch) * static_cast<std::int64_t>(sizeof(Real)) +
                                   static_cast<std::int64_t>(std::floor(static_cast<double>(more) * share));
        if (way.options.depth.budget < 1) return;
        if (runs_ > 0) {
            const Index link = std::min(way.options.chunk, longest_window(*source_, options_));
            way.options.depth.work = prices(*way.form, link, cuts.sizes.front());
        }
        try {
            found.consider(offered(way, budget, found.below()), way, budget);
        } catch (const NoPlan&) {}
    };

    std::stable_sort(found.good.begin(), found.good.end(),
                     [](const auto& a, const auto& b) { return cheaper(a.plan, b.plan); });
    constexpr std::size_t most = 6;
    std::size_t tried = 0;
    const std::vector<typename Found::Candidate> good = found.good;
    for (const auto& candidate : good) {
        if (tried == most) break;
        if (candidate.plan.predicted[Kind::tape] == 0) continue;
        const Workload w = workload_of(candidate.way);
        const Index tapes = candidate.plan.predicted[Kind::tape] / std::max<std::int64_t>(1, w.tape);
        if (tapes != 1) continue;  // several tapes rest side by side: their bytes are not one link's
        ++tried;
        try_with(candidate.way, left_by(candidate.plan.predicted));
    }

    struct Long {
        Way way;
        Workload workload;
        double cost;  // at least
    };
    std::vector<Long> longer;
    for (const Form& form : forms_)
        for (const MemoryPlaces& places : this->places(form))
            for (const Index chunk : chunks()) {
                Way way{&form, options_};
                way.options.memories = places;
                way.options.chunk = chunk;
                const Workload w = workload_of(way);
                const double cost =
                    static_cast<double>(w.steps) / static_cast<double>(w.chunk) * (w.record + w.reverse);
                if (cost < found.below()) longer.push_back({way, w, cost});
            }
    std::stable_sort(longer.begin(), longer.end(), [](const Long& a, const Long& b) { return a.cost < b.cost; });
    // As many as take a moment: an optimum takes the cube of the layers.
    const double layers = static_cast<double>(forms_.front().network->depth());
    auto left_to_try = static_cast<Index>(std::clamp(4e5 / (layers * layers * layers), 12.0, 400.0));
    for (const auto& [way, w, cost] : longer) {
        if (left_to_try <= 0 || cost >= found.below()) break;
        const Index links = w.links();
        Bytes held = w.always;
        held[Kind::tape] += links * (w.tape + w.tape_carry);
        try_with(way, left_by(held) / links), --left_to_try;
        constexpr Index parts = 6;
        Index before = 0;
        for (Index part = 1; part <= parts; ++part) {
            const Index states = std::max<Index>(1, (links - 1) * part / parts);
            if (links == 1 || states == std::exchange(before, states)) continue;
            held = w.always;
            held[Kind::tape] += w.tape + w.tape_carry;
            held[Kind::slots] += (states - 1) * w.state;
            try_with(way, left_by(held)), --left_to_try;
        }
    }
}

template <class Real>
Plan Planner<Real>::best(const Budget& budget) const {
    Found found;
    look(budget, found);
    refine(budget, found);
    if (found.best) return finished(found.best->plan, found.best->way);
    const Plan least = finished(found.smallest->plan, found.smallest->way);
    const std::string& family = options_.schedule.family;
    throw NoPlan(fmt::format("{}: {}. The least that works is {}{}",
                             family == "auto" ? "nothing fits" : fmt::format("schedule {} does not fit", family),
                             shortfall(least, budget), parts_of(least), would_buy(budget, least)));
}

/// What other choices would need at least, where that is less.
template <class Real>
std::string Planner<Real>::would_buy(const Budget& budget, const Plan& least) const {
    std::string all;
    const auto with = [&](const char* change, const std::function<void(TrainOptions&)>& make) {
        TrainOptions other = options_;
        make(other);
        Planner planner(*forms_.front().network, *source_, other, forms_.front().save);
        for (std::size_t f = 1; f < forms_.size(); ++f) planner.add(*forms_[f].network, forms_[f].save);
        Budget limits = budget;
        if (limits.disk == 0) limits.disk = other.budget.disk;
        const Plan plan = planner.smallest(limits);
        if (excess(plan, limits) < excess(least, budget))
            all += fmt::format("{}{} {} ({} bytes{})", all.empty() ? "; less is needed with " : ", with ", change,
                               bytes_in_words(plan.predicted.total()), plan.predicted.total(),
                               plan.disk > 0 ? fmt::format(", {} on disk", bytes_in_words(plan.disk)) : "");
    };
    if (options_.chunk > 0) with("chunk left to the planner:", [](TrainOptions& o) { o.chunk = 0; });
    if (options_.schedule.family != "auto")
        with("the schedule left to the planner:",
             [](TrainOptions& o) { o.schedule = ScheduleOptions{.family = "auto"}; });
    if (!options_.plan_depth)
        with("the depth left to the planner:", [](TrainOptions& o) {
            const DepthOptions marks = std::exchange(o.depth, {});
            o.depth.always = marks.always, o.depth.never = marks.never, o.depth.checkpoint = marks.checkpoint;
            o.plan_depth = true;
        });
    if (!options_.plan_memories && !forms_.front().network->memories().empty())
        with("the places of memories left to the planner:",
             [](TrainOptions& o) { o.memories = {}, o.plan_memories = true; });
    if (budget.disk == 0)
        with("room on disk:", [](TrainOptions& o) {
            o.budget.disk = Budget::unlimited;
            o.scratch.folder = ".";
        });
    return all;
}

template <class Real>
Plan Planner<Real>::smallest(const Budget& budget) const {
    Budget none = budget;
    none.ram = 1;
    Found found;
    look(none, found);
    return finished(found.smallest->plan, found.smallest->way);
}

template <class Real>
std::vector<Plan> Planner<Real>::front(Index points) const {
    Budget budget = options_.budget;
    budget.ram = budget.time_axis = Budget::unlimited;
    const Plan fastest = best(budget), least = smallest(budget);
    std::vector<Plan> all{least, fastest};
    const double from = static_cast<double>(least.predicted.total()),
                 to = static_cast<double>(fastest.predicted.total());
    for (Index k = 0; k < points && from < to; ++k) {
        budget.ram = static_cast<std::int64_t>(
            std::ceil(from * std::pow(to / from, static_cast<double>(k) / static_cast<double>(points))));
        all.push_back(best(budget));
    }
    return pareto(std::move(all));
}

template <class Real>
double Planner<Real>::lower_bound(std::int64_t bytes) const {
    // Of every layer: what is kept of a step where it is not run again, and the run that this spares.
    struct Part {
        double bytes = 0.0, work = 0.0;
    };
    const Index window = longest_window(*source_, options_);
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const double links = static_cast<double>(window),
                 parameters = static_cast<double>(forms_.front().network->parameters().size()) *
                              static_cast<double>(sizeof(Real));
    double best = std::numeric_limits<double>::infinity();
    for (const Form& form : forms_) {
        double cost = 0.0;
        double left =
            static_cast<double>(bytes) - parameters * static_cast<double>(versions_kept(*source_, options_) +
                                                                          cuts.shards() + options_.optimizer.moments());
        std::vector<Part> parts;
        for (Index l = 0; l < form.network->depth(); ++l) {
            Part part;
            const bool again =
                l < form.network->carry_depth();  // the others run once whatever is kept of the time axis
            for (const Index size : cuts.sizes) {
                const Footprint f = form.network->layer(l).footprint(1, size);
                const Work work = form.network->layer(l).work(1, size);
                cost += links * (work.forward + work.reverse);
                part.bytes += links * static_cast<double>(f.tape * static_cast<Index>(sizeof(Real)));
                part.work += again ? links * work.forward : 0.0;
            }
            parts.push_back(part);
        }
        std::sort(parts.begin(), parts.end(),
                  [](const Part& a, const Part& b) { return a.work * b.bytes > b.work * a.bytes; });
        for (const Part& part : parts) {
            const double share = part.bytes <= 0.0 ? 1.0 : std::clamp(left / part.bytes, 0.0, 1.0);
            left -= part.bytes * share;
            cost += part.work * (1.0 - share);
        }
        best = std::min(best, cost);
    }
    return best;
}

template <class Real>
Plan Planner<Real>::price(const TrainOptions& options, const std::string& save) const {
    check(*forms_.front().network, *source_, options);
    if (const std::string open = options.open(); !open.empty())
        throw InvalidArgument("a price is of options that leave nothing to the planner, but these leave " + open);
    for (const Form& form : forms_)
        if (form.save == save) {
            Way way{&form, options};
            return finished(backsweep::price(workload_of(way), options.schedule), way);
        }
    throw InvalidArgument("this planner knows no form '" + save + "'; add it");
}

/// Links are timed where memories are filled.
template <class Real>
Index Planner<Real>::steps_timed(const Form& form, Index link) const {
    Index rows = 0;
    for (const MemoryShape& memory : form.network->memories()) rows = std::max(rows, memory.rows);
    const Index window = longest_window(*source_, options_);
    return link * std::min(1 + ceil_div(rows, link), std::max<Index>(1, window / link));
}

/// How the layers of a link are kept while they are timed, so that no more is held than the limit allows: in full, or
/// with fewer tapes side by side. None: not even so.
template <class Real>
std::optional<DepthOptions> Planner<Real>::way_to_time(Index link) const {
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const std::int64_t parameters =
        forms_.front().network->parameters().size() * static_cast<std::int64_t>(sizeof(Real));
    using Family = DepthOptions::Family;
    for (const DepthOptions& depth :
         {DepthOptions{}, DepthOptions{.family = Family::sqrt}, DepthOptions{.family = Family::slots, .slots = 0}}) {
        std::int64_t most = 0;
        for (const Form& form : forms_) {
            const Index steps = steps_timed(form, link), batch = cuts.sizes.front();
            const TimeChainSizes s = time_chain_sizes(*form.network, steps, batch, link, false, {}, depth);
            most = std::max(most, 2 * s.state + s.adjoint + s.tape + s.tape_carry + s.workspace + s.log + s.prepared +
                                      steps * batch * source_->step_bytes());
        }
        if (options_.budget.ram == Budget::unlimited || 2 * parameters + most <= options_.budget.ram) return depth;
    }
    return {};
}

/// Seconds of every layer on one full link of the first window; into `least` what is less.
template <class Real>
void Planner<Real>::time(const Form& form, Index link, const DepthOptions& depth, std::size_t shard,
                         const Real* parameters, Real* gradients, std::vector<Seconds>& least) const {
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    Batch<Real> batch;
    source_->read({0, cuts.sequences(0, static_cast<Index>(shard)), 0}, batch);
    Window<Real> shown = window_of(batch);
    const Index links = std::min(steps_timed(form, link) / link, std::max<Index>(1, shown.steps / link));
    const Range last{links - 1, links};
    shown.steps = std::min(shown.steps, links * link);
    shown.begins = form.network->spec().learned_state();
    TimeChain<Real> chain(*form.network, cuts.sizes[shard], link, Ledger::process(), {}, depth);
    chain.use(parameters);
    chain.add_to(gradients);
    chain.show(shown);
    typename TimeChain<Real>::State x = chain.initial();
    typename TimeChain<Real>::Tape tape;
    typename TimeChain<Real>::Adjoint adjoint;
    if (last.first > 0) chain.advance({0, last.first}, x);
    const typename TimeChain<Real>::State before = x;
    for (const bool timed : {false, true}) {  // the first touches the memory
        chain.measure(timed);
        chain.advance(last, x);
        x = before;
        chain.record(last, x, tape);
        chain.seed(x, adjoint);
        chain.reverse(last, x, tape, adjoint);
        x = before;
    }
    const std::vector<Work> now = chain.measured();
    least.resize(now.size());
    for (std::size_t l = 0; l < now.size(); ++l)
        least[l].take({now[l].forward - now[l].spared, now[l].forward, now[l].reverse});
}

template <class Real>
void Planner<Real>::measure(Index runs) {
    if (runs < 1) throw InvalidArgument("layers are timed at least once, got runs = " + std::to_string(runs));
    runs_ = 0;
    const Network<Real>& network = *forms_.front().network;
    const Cuts cuts(source_->batch(), options_.micro_batches, options_.shards);
    const Index window = longest_window(*source_, options_);
    std::vector<Index> links;
    for (const Index chunk : chunks()) links.push_back(std::min(chunk, window));
    std::vector<Index> timed = knots(links);
    // No more is held than the limit allows, so long as two lengths are left: those beyond lie on the line through
    // them.
    while (timed.size() > 2 && !way_to_time(timed.back())) timed.pop_back();
    std::map<Index, DepthOptions> ways;
    for (const Index link : timed)
        ways[link] = way_to_time(link).value_or(DepthOptions{.family = DepthOptions::Family::slots, .slots = 0});
    Buffer<Real> parameters(network.parameters().size(), Kind::parameters),
        gradients(parameters.size(), Kind::gradients);
    network.start(options_.seed, parameters.span());
    std::map<std::tuple<Index, Index, std::size_t>, std::vector<Seconds>> least;  // of links, batch and form
    // In turn, so that what else the machine does meets all alike; it only ever adds, so the least is the measure.
    for (Index run = 0; run < runs; ++run)
        for (const Index link : timed)
            for (std::size_t s = 0; s < cuts.sizes.size(); ++s)
                if (s == 0 || cuts.sizes[s] != cuts.sizes[s - 1])
                    for (std::size_t f = 0; f < forms_.size(); ++f)
                        time(forms_[f], link, ways.at(link), s, parameters.data(), gradients.data(),
                             least[{link, cuts.sizes[s], f}]);
    // What is the same in several forms takes the same: layers that keep as much, and what an advance does.
    for (auto& [key, known] : least) {
        const auto& [link, size, form] = key;
        for (std::size_t f = 0; f < form; ++f)
            for (Index l = 0; l < std::min(forms_[form].network->depth(), forms_[f].network->depth()); ++l) {
                Seconds &a = known[static_cast<std::size_t>(l)],
                        &b = least.at({link, size, f})[static_cast<std::size_t>(l)];
                const Footprint one = forms_[form].network->layer(l).footprint(link, size),
                                other = forms_[f].network->layer(l).footprint(link, size);
                if (one.outputs != other.outputs) continue;  // a head, of which the other form has its loss apart
                if (one == other) a.take(b), b.take(a);
                a.advance = b.advance = std::min(a.advance, b.advance);
            }
    }
    for (std::size_t f = 0; f < forms_.size(); ++f)
        for (const Index link : links)
            for (const Index size : cuts.sizes) {
                const auto above = std::min(std::lower_bound(timed.begin(), timed.end(), link), std::prev(timed.end())),
                           below = *above == link ? above : std::prev(above);
                const double share =
                    *above == *below ? 0.0 : static_cast<double>(*above - link) / static_cast<double>(*above - *below);
                std::vector<Work> known;
                for (std::size_t l = 0; l < static_cast<std::size_t>(forms_[f].network->depth()); ++l) {
                    const Seconds &a = least.at({*above, size, f})[l], &b = least.at({*below, size, f})[l];
                    const auto between = [&](double Seconds::*part) {
                        return std::max(0.0, std::lerp(a.*part, b.*part, share));
                    };
                    const double record = between(&Seconds::record);
                    known.push_back(
                        {record, between(&Seconds::reverse), std::max(0.0, record - between(&Seconds::advance))});
                }
                prices_[fmt::format("{} {} {}", forms_[f].save, link, size)] = std::move(known);
            }
    runs_ = runs;
}

TrainOptions planned(TrainOptions options, const Plan& plan, std::size_t memories) {
    if (options.chunk > 0 && options.chunk != plan.chunk)
        throw InvalidArgument("the plan is for links of " + std::to_string(plan.chunk) + " steps, but chunk is " +
                              std::to_string(options.chunk) + "; make a plan for this run, or leave chunk out");
    options.chunk = plan.chunk;
    options.schedule = plan.schedule;
    if (std::exchange(options.plan_depth, false)) {
        const auto family = std::find(depth_names.begin(), depth_names.end(), plan.depth.family);
        if (family == depth_names.end())
            throw InvalidArgument("a plan keeps layers as one of store_all, sqrt, slots and optimal, got '" +
                                  plan.depth.family + "'");
        options.depth.family = static_cast<DepthOptions::Family>(family - depth_names.begin());
        options.depth.period = plan.depth.period;
        options.depth.slots = plan.depth.slots;
        options.depth.budget = plan.depth.budget;
        for (std::size_t l = 0; l + 1 < plan.depth.work.size(); l += 2)
            options.depth.work.push_back({plan.depth.work[l], plan.depth.work[l + 1]});
    }
    if (std::exchange(options.plan_memories, false) && !plan.memories.empty()) {
        const auto place = std::find(place_names.begin(), place_names.end(), plan.memories);
        if (place == place_names.end())
            throw InvalidArgument("a plan has memories in one of log, file and state, got '" + plan.memories + "'");
        options.memories =
            all_in(static_cast<MemoryPlace>(place - place_names.begin()), memories, options.scratch.folder);
    }
    return options;
}

Index largest_that_fits(Index least, Index most, const std::function<bool(Index)>& fits) {
    if (least < 1 || most < least)
        throw InvalidArgument("a search wants 1 <= least <= most, got " + std::to_string(least) + " and " +
                              std::to_string(most));
    if (!fits(least)) return 0;
    Index good = least;
    while (good < most && fits(std::min(most, 2 * good))) good = std::min(most, 2 * good);
    Index low = good, high = std::min(most, 2 * good);  // low fits, high does not unless they are one
    while (high - low > 1) {
        const Index middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

template class Planner<float>;
template class Planner<double>;

}  // namespace backsweep
