// What the planner promises, model by model and budget by budget: bytes counted and resident against the limit, bits of
// the gradient, and time against the prediction.
// SPDX-License-Identifier: MIT
#include "measure.hpp"

#include <cmath>
#include <filesystem>

using namespace backsweep;
using namespace backsweep::bench;

namespace {

constexpr int runs = 5;

struct Model {
    const char* name;
    ModelSpec spec;
    Index steps;
    double log_on_disk;  // budgets below this share put remembered rows on disk
};

std::vector<Model> models() {
    RecurrentSpec lstm{.name = "rnn", .hidden = 256}, gru{.name = "rnn", .hidden = 128, .layers = 4};
    gru.cell = RecurrentSpec::Cell::gru;
    ShaRnn sha;
    sha.ends = ends();
    sha.features = 128;
    sha.layers = 2;
    sha.heads = 1;
    sha.memory = 128;
    TransformerXl xl;
    xl.ends = ends();
    xl.features = 128;
    xl.layers = 8;
    xl.heads = 4;
    xl.memory = 128;
    return {{"LSTM 1 x 256, T = 10,000", recurrent_model({ends(), 256, lstm}), 10'000, 0.0},
            {"GRU 4 x 128, T = 2,000", recurrent_model({ends(), 128, gru}), 2'000, 0.0},
            {"SHA-RNN 2 blocks, T = 4,096", sha_rnn(sha), 4'096, 0.05},
            {"Transformer-XL 8 blocks, T = 2,048", transformer_xl(xl), 2'048, 0.15}};
}

constexpr double limit_of_error = 0.1;

/// One row: the plan against the same links with every tape kept.
bool row(const Forms& forms, const TrainOptions& options, const Plan& plan, const TrainOptions& kept, const Plan& whole,
         double share) {
    const Comparison c = compare(forms, options, plan, kept, whole, runs);
    const Found &found = c.first, &base = c.second;
    const double predicted = plan.slowdown(), measured = c.wall,
                 memory = static_cast<double>(found.resident) / static_cast<double>(found.counted);
    const bool good = found.as_foretold && found.counted <= options.budget.ram && found.bits == base.bits &&
                      memory <= 1.0 + limit_of_error && std::abs(predicted / measured - 1.0) <= limit_of_error;
    std::printf("%5.0f %% %6lld %11lld %9.2fx %9.3f %9.3f %9.3f %8.1f%%  %s, depth %s, save %s%s%s%s%s%s\n",
                100.0 * share, static_cast<long long>(plan.chunk), static_cast<long long>(found.counted), memory,
                predicted, measured, c.processor, 100.0 * (predicted / measured - 1.0), plan.schedule.family.c_str(),
                plan.depth.family.c_str(), plan.save.c_str(), plan.memories.empty() ? "" : ", rows in ",
                plan.memories.c_str(), found.bits == base.bits ? "" : ", OTHER BITS",
                found.as_foretold ? "" : ", OTHER BYTES", good ? "" : "   NOT MET");
    return good;
}

bool of_model(const Model& model, const std::string& folder, const std::vector<double>& shares) {
    const Forms forms(model.spec, model.steps, 1);
    TrainOptions options;
    options.shards = 1;
    options.carry = false;
    options.optimizer.rule = SgdSpec{};
    const Plan all = forms.planner(options).best();
    const std::int64_t fixed =
        all.predicted[Kind::parameters] + all.predicted[Kind::gradients] + all.predicted[Kind::moments];
    std::printf("%s: every tape kept takes %s, of these %s parameters and gradients\n", model.name,
                bytes_in_words(all.predicted.total()).c_str(), bytes_in_words(fixed).c_str());
    std::printf("%7s %6s %11s %10s %9s %9s %9s %9s  %s\n", "budget", "chunk", "counted", "resident", "predicted",
                "measured", "processor", "error", "plan");
    const auto limit = [&](double share) {
        return fixed + static_cast<std::int64_t>(share * static_cast<double>(all.predicted.total() - fixed));
    };
    bool met = true;
    std::unique_ptr<Planner<float>> planner;
    TrainOptions o = options;
    for (const double share : shares) {
        o.budget.ram = limit(share);
        const bool disk = share < model.log_on_disk;
        if (!planner || disk != (o.budget.disk != 0)) {
            if (disk) {
                std::filesystem::create_directories(folder);
                o.budget.disk = Budget::unlimited;
                o.scratch.folder = folder;
            }
            planner = std::make_unique<Planner<float>>(forms.planner(o));
            planner->measure(runs);
        }
        const auto run = [&](const Plan& plan) {
            TrainOptions kept = options;
            kept.chunk = plan.chunk;
            kept.schedule = {.family = "store_all"};
            kept.plan_depth = kept.plan_memories = false;
            return row(forms, o, plan, kept, forms.planner(kept).best(), share);
        };
        try {
            met = run(planner->best(o.budget)) && met;
        } catch (const NoPlan& e) {
            std::printf("%5.0f %%  %s\n       and with that:\n", 100.0 * share, e.what());
            o.budget.ram = planner->smallest(o.budget).predicted.total();
            met = run(planner->best(o.budget)) && met;
        }
        std::fflush(stdout);
    }
    return met;
}

}  // namespace

int main(int count, char** words) {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // what is freed goes back
    const std::string only = count > 1 ? words[1] : "";
    std::vector<double> shares{1.0, 0.5, 0.25, 0.15, 0.10, 0.05, 0.02};
    if (count > 2) {
        shares.clear();
        for (int k = 2; k < count; ++k) shares.push_back(std::stod(words[k]) / 100.0);
    }
    const std::string folder =
        (std::filesystem::temp_directory_path() / ("bench_budget." + std::to_string(::getpid()))).string();
    bool met = true;
    for (const Model& model : models())
        if (only.empty() || std::string(model.name).find(only) != std::string::npos)
            met = of_model(model, folder, shares) && met;
    std::filesystem::remove_all(folder);
    return met ? 0 : 1;
}
