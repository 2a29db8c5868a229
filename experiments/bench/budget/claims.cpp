// Plans against the ways that a user could have taken by hand, and against the published figures: the grid of chunks,
// families and slots; Gruslys at T = 1000; both axes at once; one plan and one checksum however busy the machine is.
// SPDX-License-Identifier: MIT
#include "backsweep/train/plan_json.hpp"
#include "measure.hpp"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

using namespace backsweep;
using namespace backsweep::bench;

namespace {

bool met = true;

void floor_of(bool holds) {
    std::printf("%s\n", holds ? "" : "   NOT MET");
    std::fflush(stdout);
    met = met && holds;
}

TrainOptions plain() {
    TrainOptions o;
    o.shards = 1;
    o.carry = false;
    o.optimizer.rule = SgdSpec{};
    return o;
}

std::int64_t fixed_bytes(const Plan& plan) {
    return plan.predicted[Kind::parameters] + plan.predicted[Kind::gradients] + plan.predicted[Kind::moments];
}

/// A share of what keeping everything takes beside parameters and gradients.
std::int64_t limit_of(const Plan& all, double share) {
    const std::int64_t fixed = fixed_bytes(all);
    return fixed + static_cast<std::int64_t>(share * static_cast<double>(all.predicted.total() - fixed));
}

TrainOptions with_everything(TrainOptions o, Index chunk) {
    o.chunk = chunk;
    o.schedule = {.family = "store_all"};
    o.plan_depth = o.plan_memories = false;
    o.budget = {};
    return o;
}

std::string in_words(const Plan& p) {
    std::string words = p.schedule.family;
    if (p.schedule.slots > 0) words.append(" ").append(std::to_string(p.schedule.slots));
    if (p.schedule.period > 0) words.append(" ").append(std::to_string(p.schedule.period));
    return words + ", chunk " + std::to_string(p.chunk) + ", depth " + p.depth.family + ", save " + p.save;
}

/// Seconds of one plan over those of another.
double ratio(const Forms& forms, const TrainOptions& o, const Plan& a, const Plan& b, int pairs) {
    const Comparison c = compare(forms, o, a, o, b, pairs);
    if (c.first.counted > o.budget.ram) met = false;
    return c.wall;
}

/// phi: what a forward run takes of a forward and a reverse one, at its least of three.
double forward_share(const Forms& forms, Index chunk) {
    const Network<float>& network = *forms.networks.front();
    std::vector<float> parameters(static_cast<std::size_t>(network.parameters().size())), gradients(parameters.size());
    network.start(1, parameters);
    Batch<float> batch;
    forms.source.read({0, {0, forms.source.batch()}, 0}, batch);
    Window<float> window;
    window.steps = chunk;
    window.tokens = batch.tokens.data();
    window.classes = batch.classes.data();
    TimeChain<float> chain(network, forms.source.batch(), chunk);
    chain.use(parameters.data());
    chain.add_to(gradients.data());
    chain.show(window);
    double forward = std::numeric_limits<double>::infinity(), reverse = forward;
    for (int run = 0; run < 3; ++run) {
        TimeChain<float>::State x = chain.initial();
        TimeChain<float>::Tape tape;
        TimeChain<float>::Adjoint adjoint;
        chain.measure(true);
        chain.record({0, 1}, x, tape);
        chain.seed(x, adjoint);
        chain.reverse({0, 1}, x, tape, adjoint);
        Work sum;
        for (const Work& work : chain.measured()) sum.forward += work.forward, sum.reverse += work.reverse;
        forward = std::min(forward, sum.forward);
        reverse = std::min(reverse, sum.reverse);
    }
    return forward / (forward + reverse);
}

RecurrentSpec lstm_of(Index hidden, Index layers) {
    return {.name = "rnn", .hidden = hidden, .layers = layers};
}

RecurrentSpec gru_of(Index hidden, Index layers) {
    RecurrentSpec cell = lstm_of(hidden, layers);
    cell.cell = RecurrentSpec::Cell::gru;
    return cell;
}

/// T = 1000 in 5 % of the memory.
void gruslys() {
    struct Case {
        const char* name;
        Index layers, batch;
        double floor;
    };
    for (const Case& c : {Case{"LSTM 1 x 256, B = 16", 1, 16, 0.0}, Case{"LSTM 2 x 256, B = 32", 2, 32, 1.36}}) {
        constexpr Index steps = 1000;
        const Forms forms(recurrent_model({ends(), 256, lstm_of(256, c.layers)}), steps, c.batch);
        TrainOptions o = plain();
        o.budget.ram = limit_of(forms.planner(o).best(), 0.05);
        Planner<float> planner = forms.planner(o);
        planner.measure(5);
        const Plan plan = planner.best();
        const TrainOptions kept = with_everything(o, plan.chunk);
        const double measured = ratio(forms, o, plan, forms.planner(kept).best(), 21);
        const double a = static_cast<double>(plan.advances * plan.chunk), more = plan.slowdown() - 1.0;
        std::printf("T = 1000, 5 %% (%s): %s: a = %.0f steps again, phi = %.3f, 1 + phi a / T = %.3f, measured %.3f",
                    c.name, in_words(plan).c_str(), a, more * steps / a, 1.0 + more, measured);
        floor_of(measured <= 1.02 * (1.0 + more) && (c.floor == 0.0 || measured <= c.floor));
    }
}

/// Time and depth at once against either alone: of the table, the row `only`, or every one (0).
void axes(std::size_t only) {
    struct Case {
        Index steps, layers;
        double share, claimed;
    };
    const std::vector<Case> cases{{64, 64, 0.05, 1.54}, {256, 64, 0.02, 1.69}, {64, 64, 0.02, 2.15}};
    for (const Case& c : only == 0 ? std::span(cases) : std::span(cases).subspan(only - 1, 1)) {
        const Forms forms(recurrent_model({ends(), 128, gru_of(128, c.layers)}), c.steps, 16);
        TrainOptions o = plain();
        o.budget.ram = limit_of(forms.planner(o).best(), c.share);
        Planner<float> planner = forms.planner(o);
        planner.measure(5);
        const Plan joint = planner.best();
        const Plan kept = forms.planner(with_everything(o, joint.chunk)).best();
        const double measured = ratio(forms, o, joint, kept, 5), phi = forward_share(forms, joint.chunk),
                     claimed = 1.0 + (c.claimed - 1.0) * 3.0 * phi;
        std::printf(
            "T = %lld, L = %lld, %.0f %%: %s: predicted %.3f, measured %.3f (claimed %.2f for phi = 1/3: %.3f for "
            "%.3f)",
            static_cast<long long>(c.steps), static_cast<long long>(c.layers), 100.0 * c.share, in_words(joint).c_str(),
            joint.slowdown(), measured, c.claimed, claimed, phi);
        bool good = measured <= 1.03 * claimed;
        const auto single = [&](const char* axis, const TrainOptions& alone) {
            try {
                Planner<float> one(*forms.networks.front(), forms.source, alone, forms.names.front());
                one.measure(3);
                const Plan plan = one.best();
                const double slower = ratio(forms, o, plan, joint, 5);
                std::printf("\n    %s alone: %s: %.3f of both", axis, in_words(plan).c_str(), slower);
                good = good && slower >= 1.0;
            } catch (const NoPlan&) {
                std::printf("\n    %s alone: does not fit", axis);
            }
        };
        TrainOptions time = o, depth = o;
        time.plan_depth = false;
        single("time", time);
        depth.chunk = c.steps;
        depth.schedule = {.family = "store_all"};
        single("depth", depth);
        floor_of(good);
    }
}

/// auto, counted (the default) and calibrated, against the best five and five others of the grid.
void grid() {
    constexpr Index steps = 2000;
    const Forms forms(recurrent_model({ends(), 128, gru_of(128, 4)}), steps, 1);
    TrainOptions o = plain();
    o.budget.ram = limit_of(forms.planner(o).best(), 0.10);
    Planner<float> counted = forms.planner(o), timed = forms.planner(o);
    timed.measure(5);
    const Plan by_count = counted.best(), by_time = timed.best();
    std::vector<Plan> ways;
    const auto add = [&](const TrainOptions& way, const std::string& save) {
        try {
            Plan plan = counted.price(way, save);
            if (!fits(plan, o.budget)) return false;
            ways.push_back(std::move(plan));
            return true;
        } catch (const Error&) {  // a depth budget too small, more units than tables
            return false;
        }
    };
    for (const std::string& save : forms.names)
        for (const Index chunk : {8, 16, 32, 64, 128, 256})
            for (const auto family :
                 {DepthOptions::Family::store_all, DepthOptions::Family::sqrt, DepthOptions::Family::optimal}) {
                TrainOptions way = with_everything(o, chunk);
                way.depth.family = family;
                if (family == DepthOptions::Family::optimal) {
                    const DepthProgram all = depth_program(*forms.networks.front(), chunk, 1, DepthOptions{});
                    way.depth.budget = (all.rest + all.scratch) * static_cast<Index>(sizeof(float)) / 2;
                }
                add(way, save);
                const Index links = 1 + (steps - 1) / chunk;
                for (const std::string name : {"periodic", "revolve", "mixed"}) {
                    way.schedule = {.family = name};
                    if (name == "mixed") way.schedule.tape_units = 8;
                    Index& free = name == "periodic" ? way.schedule.period : way.schedule.slots;
                    Index most = 0;
                    for (Index k = 1; k < links * (name == "mixed" ? 9 : 1); k += 1 + k / 16) {
                        free = k;
                        if (add(way, save)) most = k, ways.pop_back();
                    }
                    for (const Index part : {4, 2, 1}) {
                        free = most / part;
                        if (free > 0) add(way, save);
                    }
                }
            }
    std::stable_sort(ways.begin(), ways.end(), cheaper);
    std::vector<Plan> against(ways.begin(),
                              ways.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, ways.size())));
    const Random random(11, 3);
    for (std::uint64_t k = 0; k < 5 && ways.size() > 10; ++k)
        against.push_back(ways[5 + random.below(static_cast<std::uint32_t>(ways.size() - 5), 0, k)]);
    std::printf("%zu ways of the grid fit; auto by count: %s, by time: %s\n", ways.size(), in_words(by_count).c_str(),
                in_words(by_time).c_str());
    bool good = !ways.empty() && by_count.cost <= ways.front().cost;
    for (const Plan& way : against) {
        const double count = ratio(forms, o, by_count, way, 7), time = ratio(forms, o, by_time, way, 7);
        std::printf("    %s: auto takes %.3f by count, %.3f by time\n", in_words(way).c_str(), count, time);
        good = good && count <= 1.05;
    }
    floor_of(good);
}

/// Plans do not depend on the clock: 20 processes, four at a time, beside threads that do nothing but burn.
void under_load() {
    const Forms forms(recurrent_model({ends(), 64, lstm_of(64, 3)}), 500, 4);
    TrainOptions o = plain();
    o.budget.ram = limit_of(forms.planner(o).best(), 0.1);
    std::set<std::string> plans;
    std::set<std::uint64_t> sums;
    std::atomic<bool> on{true};
    for (int round = 0; round < 5; ++round) {
        std::vector<std::unique_ptr<Process>> four;
        for (int k = 0; k < 4; ++k) {
            const Plan plan = forms.planner(o).best();
            plans.insert(to_json(plan));
            four.push_back(std::make_unique<Process>(forms, o, plan));
        }
        std::vector<std::thread> load;
        on = true;
        for (int k = 0; k < 3; ++k)
            load.emplace_back([&] {
                while (on) {}
            });
        for (const auto& process : four) {
            process->update();
            sums.insert(process->found().bits);
        }
        on = false;
        for (std::thread& t : load) t.join();
    }
    std::printf("20 runs of auto under load: %zu plan, %zu checksum", plans.size(), sums.size());
    floor_of(plans.size() == 1 && sums.size() == 1);
}

}  // namespace

int main(int count, char** words) {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // what is freed goes back
    const std::string only = count > 1 ? words[1] : "";
    const std::size_t row = count > 2 ? std::stoul(words[2]) : 0;
    const std::pair<const char*, std::function<void()>> all[]{
        {"load", under_load}, {"gruslys", gruslys}, {"axes", [row] { axes(row); }}, {"grid", grid}};
    for (const auto& [name, run] : all)
        if (only.empty() || only == name) run();
    return met ? 0 : 1;
}
