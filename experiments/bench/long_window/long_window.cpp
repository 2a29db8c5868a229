// One window of many steps by full back-propagation: everything stored against a hundredth of the bytes.
// Each run is a process of its own, so that its peak resident memory is its own too.
// SPDX-License-Identifier: MIT
#include "backsweep/base/random.hpp"
#include "backsweep/train/trainer.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

/// A sequence of tokens without a pattern, one window an epoch.
class Tokens final : public Source<float> {
public:
    Tokens(Index steps, Index vocabulary) {
        const Random random(1, 0);
        for (Index t = 0; t <= steps; ++t)
            tokens_.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(vocabulary), 0, static_cast<std::uint64_t>(t))));
    }
    const std::string& name() const noexcept override { return name_; }
    Index batch() const noexcept override { return 1; }
    Index window() const noexcept override { return static_cast<Index>(tokens_.size()) - 1; }
    Index windows() const noexcept override { return 1; }
    std::int64_t step_bytes() const noexcept override { return 2 * sizeof(std::int32_t); }
    Index remainder() const noexcept override { return 0; }
    bool fresh(Index) const noexcept override { return true; }
    void read(const Cut&, Batch<float>& b) const override {
        b.clear();
        b.steps = window();
        b.batch = 1;
        b.tokens.resize(b.steps);
        b.classes.resize(b.steps);
        std::copy_n(tokens_.begin(), b.steps, b.tokens.begin());
        std::copy_n(tokens_.begin() + 1, b.steps, b.classes.begin());
    }

private:
    std::vector<std::int32_t> tokens_;
    std::string name_ = "tokens";
};

/// What a run reports to the process that started it.
struct Result {
    double seconds = 0.0, advance_seconds = 0.0, loss = 0.0;
    std::int64_t time_axis = 0, predicted = 0, measured = 0, resident = 0;
    Index advances = 0, slots = 0;
    std::uint64_t gradient_bits = 0;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Kilobytes of a line of /proc/self/status.
std::int64_t status(const std::string& key) {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(key)) return std::atoll(line.c_str() + key.size() + 1) * 1024;
    return 0;
}

Result run(Index steps, Index hidden, Index chunk, double share, bool advance_too) {
    ModelSpec model;
    model.layers = {EmbeddingSpec{"embedding", 64, 32, std::nullopt}, RecurrentSpec{"rnn", 32, hidden, 1, true}, DenseSpec{"head", hidden, 64, true}};
    const Network<float> network = build<float>(model);
    const Tokens source(steps, 64);
    TrainOptions o;
    o.chunk = chunk;
    o.carry = false;
    o.optimizer.rule = SgdSpec{};
    o.schedule.family = "store_all";
    {  // BLAS takes its own buffers at its first call: not this run's
        const Tokens few(2 * chunk, 64);
        Trainer<float>(network, few, o).update();
    }
    const Workload work = workload(network, source, o);
    if (share < 1.0) {
        o.budget.time_axis = static_cast<std::int64_t>(share * static_cast<double>(price(work, o.schedule).predicted.time_axis()));
        o.schedule.family = "auto";
    }
    const std::int64_t before = status("VmRSS:");
    Trainer<float> trainer(network, source, o);
    Result r;
    const double start = now();
    const UpdateReport report = trainer.update();
    r.seconds = now() - start;
    r.resident = status("VmHWM:") - before;
    r.loss = report.loss;
    r.advances = report.counts.advances;
    r.slots = trainer.plan().schedule.slots;
    r.time_axis = trainer.measured().time_axis();
    r.measured = trainer.measured().total();
    r.predicted = trainer.plan().predicted.total();
    for (const float g : trainer.gradients()) {
        std::uint32_t bits = 0;
        static_assert(sizeof bits == sizeof g);
        std::copy_n(reinterpret_cast<const char*>(&g), sizeof g, reinterpret_cast<char*>(&bits));
        r.gradient_bits = (r.gradient_bits ^ bits) * 0x100000001b3;
    }
    if (advance_too) {
        Batch<float> b;
        source.read({}, b);
        TimeChain<float> chain(network, 1, chunk);
        Window<float> w;
        w.steps = b.steps;
        w.tokens = b.tokens.data();
        w.classes = b.classes.data();
        chain.show(w);
        chain.use(trainer.parameters().data());
        auto x = chain.zero();
        const double begin = now();
        chain.advance({0, *chain.length()}, x);
        r.advance_seconds = now() - begin;
    }
    return r;
}

Result in_a_process_of_its_own(Index steps, Index hidden, Index chunk, double share, bool advance_too) {
    int ends[2];
    if (pipe(ends) != 0) std::exit(1);
    const pid_t child = fork();
    if (child == 0) {
        const Result r = run(steps, hidden, chunk, share, advance_too);
        const bool sent = write(ends[1], &r, sizeof r) == static_cast<ssize_t>(sizeof r);
        _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    Result r;
    const bool got = read(ends[0], &r, sizeof r) == static_cast<ssize_t>(sizeof r);
    close(ends[0]);
    int code = 0;
    waitpid(child, &code, 0);
    if (!got || code != 0) {
        std::fprintf(stderr, "a run failed\n");
        std::exit(1);
    }
    return r;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    if (!std::getenv("OPENBLAS_NUM_THREADS")) {  // read when the library is loaded: begin anew
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
    }
    const Index steps = argc > 1 ? std::atoll(argv[1]) : 100'000, hidden = argc > 2 ? std::atoll(argv[2]) : 256;
    const Index chunk = argc > 3 ? std::atoll(argv[3]) : 64;
    const int runs = argc > 4 ? std::atoi(argv[4]) : 3;
    std::printf("%lld steps, hidden %lld, batch 1, chunk %lld, float, one thread, medians of %d pairs\n", static_cast<long long>(steps),
                static_cast<long long>(hidden), static_cast<long long>(chunk), runs);
    std::vector<double> ratios, phis, all_seconds, few_seconds;
    Result all, few;
    for (int k = 0; k < runs; ++k) {
        all = in_a_process_of_its_own(steps, hidden, chunk, 1.0, true);
        few = in_a_process_of_its_own(steps, hidden, chunk, 0.01, false);
        ratios.push_back(few.seconds / all.seconds);
        phis.push_back(all.advance_seconds / all.seconds);
        all_seconds.push_back(all.seconds);
        few_seconds.push_back(few.seconds);
    }
    const auto row = [](const char* what, const Result& r, double seconds) {
        std::printf("%-14s time axis %12lld B  predicted %12lld B  measured %12lld B  resident %12lld B (%+.1f %%)  advances %lld  %.2f s\n",
                    what, static_cast<long long>(r.time_axis), static_cast<long long>(r.predicted), static_cast<long long>(r.measured),
                    static_cast<long long>(r.resident), 100.0 * (static_cast<double>(r.resident) / static_cast<double>(r.predicted) - 1.0),
                    static_cast<long long>(r.advances), seconds);
    };
    row("stored all", all, median(all_seconds));
    row("checkpointed", few, median(few_seconds));
    const double share = static_cast<double>(few.time_axis) / static_cast<double>(all.time_axis), phi = median(phis);
    std::printf("share of the bytes %.3f %%, gradient bits %s, loss bits %s\n", 100.0 * share,
                all.gradient_bits == few.gradient_bits ? "equal" : "DIFFER", all.loss == few.loss ? "equal" : "DIFFER");
    std::printf("phi = advance / (record + reverse) = %.3f; time ratio %.3f; ratio / (1 + phi) = %.3f (claim: at most 1.05)\n", phi,
                median(ratios), median(ratios) / (1.0 + phi));
    const auto near_resident = [](const Result& r) {
        return std::abs(static_cast<double>(r.resident - r.predicted)) <= 0.1 * static_cast<double>(r.predicted);
    };
    bool good = true;
    const auto claim = [&](bool holds, const char* what) {
        if (!holds) std::printf("NOT MET: %s\n", what);
        good = good && holds;
    };
    claim(all.gradient_bits == few.gradient_bits && all.loss == few.loss, "equal bits");
    claim(share <= 0.01, "a hundredth of the bytes");
    claim(all.predicted == all.measured && few.predicted == few.measured, "predicted = measured");
    claim(near_resident(all) && near_resident(few), "resident memory within 10 % of the prediction");
    claim(median(ratios) <= 1.05 * (1.0 + phi), "time ratio at most 1.05 (1 + phi)");
    return good ? 0 : 1;
}
