// What the benchmarks of plans share: made tokens, a model in all its forms, and trainings in processes of their own
// that make an update when they are told to, so that two can be timed in turn.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/nn/blocks.hpp"
#include "backsweep/nn/models.hpp"
#include "backsweep/train/planner.hpp"

#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace backsweep::bench {

constexpr Index vocabulary = 64;

inline ModelEnds ends() {
    ModelEnds e;
    e.vocabulary = e.outputs = vocabulary;
    return e;
}

/// Windows of random tokens, every one a sequence of its own.
class Tokens final : public Source<float> {
public:
    Tokens(Index steps, Index batch) : steps_(steps), batch_(batch) {}
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return batch_; }
    Index window() const noexcept override { return steps_; }
    Index windows() const noexcept override { return 4; }
    std::int64_t step_bytes() const noexcept override { return 2 * sizeof(std::int32_t); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index window) const noexcept override { return window % 4 == 0; }
    void read(const Cut& cut, Batch<float>& batch) const override {
        batch.clear();
        batch.steps = steps_;
        batch.batch = cut.sequences.size();
        batch.first = cut.window % 4 * steps_;
        batch.tokens.resize(steps_ * batch.batch);
        batch.classes.resize(steps_ * batch.batch);
        const Random random(7, static_cast<std::uint32_t>(cut.window % 4));
        for (Index t = 0; t < steps_; ++t)
            for (Index b = 0; b < batch.batch; ++b) {
                const Index at = t * batch.batch + b;
                const auto key = static_cast<std::uint64_t>(t * batch_ + cut.sequences.first + b);
                batch.tokens[at] = static_cast<std::int32_t>(random.below(vocabulary, 0, key));
                batch.classes[at] = static_cast<std::int32_t>((batch.tokens[at] + t) % vocabulary);
            }
    }

private:
    std::string name_ = "tokens";
    Index steps_, batch_;
};

/// A model in all its forms.
struct Forms {
    Forms(const ModelSpec& spec, Index steps, Index batch, const std::vector<std::string>& policies = save_policies())
        : source(steps, batch) {
        for (const std::string& save : policies) {
            auto network = std::make_unique<Network<float>>(build<float>(save_policy(spec, save)));
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

/// Of this process: a line of /proc/self/status, in bytes.
inline std::int64_t status(const std::string& name) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, name.size(), name) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
    return 0;
}

/// Seconds on the wall and of the processor.
struct Times {
    double wall = 0.0, processor = 0.0;
    static Times now() {
        std::timespec t{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
                static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec)};
    }
};

/// What a process found.
struct Found {
    std::int64_t counted = 0, resident = 0;
    std::uint64_t bits = 0;
    bool as_foretold = false;
};

/// A training in a process of its own, which makes an update whenever it is told to.
class Process {
public:
    Process(const Forms& forms, const TrainOptions& options, const Plan& plan) {
        if (::pipe(to_) != 0 || ::pipe(from_) != 0) throw Error("no pipe");
        child_ = ::fork();
        if (child_ == 0) {
            try {
                serve(forms, options, plan);
            } catch (const std::exception& e) {
                std::fprintf(stderr, "%s\n", e.what());
            }
            ::_exit(1);
        }
        ::close(std::exchange(to_[0], -1));  // so that a death is seen
        ::close(std::exchange(from_[1], -1));
    }
    Process(Process&&) = delete;
    ~Process() {
        ::close(to_[1]);
        ::close(from_[0]);
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    Times update() { return told<Times>('u'); }
    Found found() { return told<Found>('f'); }

private:
    template <class T>
    T told(char word) {
        T answer{};
        if (::write(to_[1], &word, 1) != 1 ||
            ::read(from_[0], &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer))
            throw Error("the process died");
        return answer;
    }
    template <class T>
    void tell(const T& answer) {
        if (::write(from_[1], &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) ::_exit(1);
    }
    void serve(const Forms& forms, const TrainOptions& options, const Plan& plan) {
        {  // the code, and what BLAS keeps for itself
            TrainOptions few = options;
            few.scratch.folder += few.scratch.folder.empty() ? "" : ".few";
            const Tokens short_source(std::min<Index>(forms.source.window(), 2 * plan.chunk), forms.source.batch());
            few.chunk = plan.chunk;
            few.schedule = {.family = "store_all"};
            Planner<float> planner(forms.network(plan), short_source, few, plan.save);
            const Plan small = planner.best({});
            const std::unique_ptr<Schedule> played = schedule_for(plan, plan.schedule.steps);
            while (played->next().verb != Verb::done) {}
            Trainer<float>(forms.network(plan), short_source, few, small).update();
        }
        ::malloc_trim(0);
        std::ofstream("/proc/self/clear_refs") << "5";  // the peak from here on
        const std::int64_t before = status("VmRSS"), files = status("RssFile");
        Trainer<float> trainer(forms.network(plan), forms.source, options, plan);
        for (char word = 0; ::read(to_[0], &word, 1) == 1;) {
            if (word == 'u') {
                const Times from = Times::now();
                trainer.update();
                const Times to = Times::now();
                tell(Times{to.wall - from.wall, to.processor - from.processor});
                continue;
            }
            Found found;
            found.counted = trainer.measured().total();
            found.as_foretold = trainer.measured() == plan.predicted;
            // Without pages of files: code, and logs that the plan put on disk; the system takes those back.
            found.resident = status("VmHWM") - before - std::max<std::int64_t>(0, status("RssFile") - files);
            const std::span<const float> g = trainer.gradients(), p = trainer.parameters();
            std::vector<float> all(g.begin(), g.end());
            all.insert(all.end(), p.begin(), p.end());
            const Blob bytes = blob(all.data(), all.size());
            found.bits = fingerprint(std::span(&bytes, 1));
            tell(found);
        }
    }

    int to_[2]{-1, -1}, from_[2]{-1, -1};
    pid_t child_ = 0;
};

inline double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

/// One plan against another: medians of the ratios, and what the last processes held.
struct Comparison {
    double wall = 0.0, processor = 0.0;
    Found first, second;
};

/// So many pairs of processes, new ones each time: where the pages of one lie in the caches is its luck.
inline Comparison compare(const Forms& forms, const TrainOptions& o, const Plan& a, const TrainOptions& other,
                          const Plan& b, int pairs) {
    Comparison c;
    std::vector<double> wall, processor;
    for (int k = 0; k < pairs; ++k) {
        Process first(forms, o, a), second(forms, other, b);
        first.update(), second.update();
        const Times one = first.update(), two = second.update();
        wall.push_back(one.wall / two.wall);
        processor.push_back(one.processor / two.processor);
        c.first = first.found();
        c.second = second.found();
    }
    c.wall = median(wall);
    c.processor = median(processor);
    return c;
}

}  // namespace backsweep::bench
