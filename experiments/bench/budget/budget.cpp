// What the planner promises, model by model and budget by budget: bytes counted and resident against the limit, bits of
// the gradient, and time against the prediction. Every row is a process of its own, so that its resident memory is its own.
// SPDX-License-Identifier: MIT
#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/train/planner.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index vocabulary = 64;
constexpr int runs = 5;

struct Model {
    const char* name;
    ModelSpec spec;
    Index steps;
    double log_on_disk;  // budgets below this share put remembered rows on disk
};

ModelEnds ends() {
    ModelEnds e;
    e.vocabulary = e.outputs = vocabulary;
    return e;
}

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

class Tokens final : public Source<float> {
public:
    explicit Tokens(Index steps) : steps_(steps) {}
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return 1; }
    Index window() const noexcept override { return steps_; }
    Index windows() const noexcept override { return 4; }
    std::int64_t step_bytes() const noexcept override { return 2 * sizeof(std::int32_t); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override { return window % 4 == 0; }
    void read(const Cut& cut, Batch<float>& batch) const override {
        batch.clear();
        batch.steps = steps_;
        batch.batch = 1;
        batch.first = cut.window % 4 * steps_;
        batch.tokens.resize(steps_);
        batch.classes.resize(steps_);
        const Random random(7, static_cast<std::uint32_t>(cut.window % 4));
        for (Index t = 0; t < steps_; ++t) {
            batch.tokens[t] = static_cast<std::int32_t>(random.below(vocabulary, 0, static_cast<std::uint64_t>(t)));
            batch.classes[t] = static_cast<std::int32_t>((batch.tokens[t] + t) % vocabulary);
        }
    }

private:
    std::string name_ = "tokens";
    Index steps_;
};

/// A model in all its forms.
struct Forms {
    explicit Forms(const Model& model) : source(model.steps) {
        for (const std::string& save : save_policies()) {
            auto network = std::make_unique<Network<float>>(build<float>(save_policy(model.spec, save)));
            if (save == "selective" && network->memories().empty()) continue;  // without attention it is everything
            names.push_back(save);
            networks.push_back(std::move(network));
        }
    }
    Planner<float> planner(const TrainOptions& options) const {
        Planner<float> p(*networks.front(), source, options, names.front());
        for (std::size_t f = 1; f < names.size(); ++f) p.add(*networks[f], names[f]);
        return p;
    }
    const Network<float>& network(const Plan& plan) const {
        return *networks[static_cast<std::size_t>(std::find(names.begin(), names.end(), plan.save) - names.begin())];
    }
    Tokens source;
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Network<float>>> networks;
};

std::int64_t resident() {
    std::ifstream file("/proc/self/statm");
    std::int64_t all = 0, now = 0;
    file >> all >> now;
    return now * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}
std::int64_t peak_resident() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

/// What a process found.
struct Row {
    double seconds = 0.0;
    std::int64_t counted = 0, resident = 0;
    std::uint64_t bits = 0;
};

Row run(const Forms& forms, const TrainOptions& options, const Plan& plan) {
    const std::int64_t before = resident();
    Trainer<float> trainer(forms.network(plan), forms.source, options, plan);
    trainer.update();
    std::vector<double> seconds;
    for (int k = 0; k < runs; ++k) {
        const auto from = std::chrono::steady_clock::now();
        trainer.update();
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
    Row row;
    row.seconds = seconds[runs / 2];
    row.counted = trainer.measured() == plan.predicted ? trainer.measured().total() : -trainer.measured().total();
    row.resident = peak_resident() - before;
    const std::span<const float> g = trainer.gradients(), p = trainer.parameters();
    std::vector<float> all(g.begin(), g.end());
    all.insert(all.end(), p.begin(), p.end());
    const Blob bytes = blob(all.data(), all.size());
    row.bits = fingerprint(std::span(&bytes, 1));
    return row;
}

/// In a process of its own; nothing if it died.
bool apart(const std::function<Row()>& f, Row& row) {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    const pid_t child = ::fork();
    if (child == 0) {
        const Row found = f();
        const bool said = ::write(ends[1], &found, sizeof found) == static_cast<ssize_t>(sizeof found);
        ::_exit(said ? 0 : 1);
    }
    ::close(ends[1]);
    const bool heard = ::read(ends[0], &row, sizeof row) == static_cast<ssize_t>(sizeof row);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return heard && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int count, char** words) {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // what is freed goes back
    const std::string only = count > 1 ? words[1] : "";
    const std::string folder = (std::filesystem::temp_directory_path() / ("bench_budget." + std::to_string(::getpid()))).string();
    bool met = true;
    for (const Model& model : models()) {
        if (!only.empty() && std::string(model.name).find(only) == std::string::npos) continue;
        const Forms forms(model);
        TrainOptions options;
        options.shards = 1;
        options.carry = false;
        options.optimizer.rule = SgdSpec{};
        const Plan all = forms.planner(options).best();
        const std::int64_t fixed = all.predicted[Kind::parameters] + all.predicted[Kind::gradients] + all.predicted[Kind::moments];
        std::printf("%s: every tape kept takes %s, of these %s parameters and gradients\n", model.name,
                    bytes_in_words(all.predicted.total()).c_str(), bytes_in_words(fixed).c_str());
        std::printf("%6s %6s %11s %11s %9s %9s %9s  %s\n", "budget", "chunk", "counted", "resident", "predicted", "measured", "error", "plan");
        for (const double share : {1.0, 0.5, 0.25, 0.15, 0.10, 0.05, 0.02}) {
            TrainOptions o = options;
            o.budget.ram = fixed + static_cast<std::int64_t>(share * static_cast<double>(all.predicted.total() - fixed));
            if (share < model.log_on_disk) {
                o.budget.disk = Budget::unlimited;
                o.scratch.folder = folder;
            }
            try {
                Planner<float> planner = forms.planner(o);
                planner.measure(5);
                const Plan plan = planner.best();
                TrainOptions kept = options;
                kept.chunk = plan.chunk;
                kept.schedule = {.family = "store_all"};
                kept.plan_depth = kept.plan_memories = false;
                const Plan whole = forms.planner(kept).best();
                Row row, base;
                if (!apart([&] { return run(forms, o, plan); }, row) || !apart([&] { return run(forms, kept, whole); }, base)) {
                    std::printf("%5.0f %%  the process died\n", 100.0 * share);
                    met = false;
                    continue;
                }
                const double predicted = plan.slowdown(), measured = row.seconds / base.seconds,
                             memory = static_cast<double>(row.resident) / static_cast<double>(row.counted);
                const bool good = row.counted > 0 && row.counted <= o.budget.ram && row.bits == base.bits && memory <= 1.1 &&
                                  std::abs(predicted / measured - 1.0) <= 0.1;
                met = met && good;
                std::printf("%5.0f %% %6lld %11lld %10.2fx %9.3f %9.3f %8.1f%%  %s, depth %s, save %s%s%s%s%s\n", 100.0 * share,
                            static_cast<long long>(plan.chunk), static_cast<long long>(row.counted), memory, predicted, measured,
                            100.0 * (predicted / measured - 1.0), plan.schedule.family.c_str(), plan.depth.family.c_str(),
                            plan.save.c_str(), plan.memories.empty() ? "" : ", rows in ", plan.memories.c_str(),
                            row.bits == base.bits ? "" : ", OTHER BITS", good ? "" : "   NOT MET");
            } catch (const NoPlan& e) {
                std::printf("%5.0f %%  %s\n", 100.0 * share, e.what());
            }
            std::fflush(stdout);
        }
    }
    std::filesystem::remove_all(folder);
    return met ? 0 : 1;
}
