// The four classic faults of checkpointed code, on purpose: every checker that should bite must bite.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE chain_mutants
#include "support/unit_test.hpp"

#include "backsweep/chain/audited.hpp"
#include "backsweep/chain/execution.hpp"
#include "backsweep/chain/gradient_check.hpp"
#include "backsweep/schedule/forward_only.hpp"
#include "support/every_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

enum class Mutant {
    none,
    generator,        ///< noise from a generator that goes on from call to call
    forgotten_carry,  ///< half of the carry lives in the chain, not in the state
    double_loss,      ///< record adds to its entry of the loss log
    unsaved_bytes,    ///< the running mean is in the state, but not in its bytes
    unsaved_copy      ///< ... nor in its copies
};

/// h' = tanh(w h + c + noise_i), c' = 0.5 c + h', mean' = 0.9 mean + 0.1 h', and h' feels the mean; loss_i = h'^2 / 2.
template <Mutant mutant>
class Cell {
public:
    struct State {
        double h = 0.0, c = 0.0, mean = 0.0;

        State() = default;
        State(double h_, double c_, double mean_) : h(h_), c(c_), mean(mean_) {}
        State(const State&) = default;
        State(State&&) = default;
        State& operator=(State&&) = default;
        State& operator=(const State& other) {
            h = other.h;
            c = other.c;
            if constexpr (mutant != Mutant::unsaved_copy) mean = other.mean;
            return *this;
        }
        ~State() = default;

        friend std::span<double> values(State& x) { return {&x.h, 3}; }
        friend std::vector<Blob> blobs(State& x) {
            return {{reinterpret_cast<std::byte*>(&x.h), (mutant == Mutant::unsaved_bytes ? 2 : 3) * sizeof(double)}};
        }
    };
    using Tape = std::array<double, 2>;
    using Adjoint = std::array<double, 3>;

    explicit Cell(Index links) : log_(static_cast<std::size_t>(links), 0.0) {}

    std::optional<Index> length() const { return std::ssize(log_); }
    State initial() const {
        carry_ = 0.2;
        return {0.3, 0.2, -0.1};
    }
    double loss() const {
        double sum = 0.0;
        for (const double l : log_) sum += l;
        return sum;
    }
    Index advance(Range r, State& x) {
        for (Index i = r.first; i < r.last; ++i) step(i, x);
        return r.last;
    }
    Index record(Range r, State& x, Tape& tape) {
        step(r.first, x);
        tape = {x.h, 0.0};
        double& entry = log_[static_cast<std::size_t>(r.first)];
        const double loss = 0.5 * x.h * x.h;
        entry = mutant == Mutant::double_loss ? entry + loss : loss;
        return r.last;
    }
    void seed(const State&, Adjoint& a) { a = {1.0, -0.5, 0.25}; }
    void reverse(Range, State&, Tape& tape, Adjoint& a) {
        const double dz = (1.0 - tape[0] * tape[0]) * (a[0] + a[1] + 0.1 * a[2]);
        a = {w * dz, dz + 0.5 * a[1], 0.4 * dz + 0.9 * a[2]};
    }

private:
    static constexpr double w = 0.9;

    void step(Index i, State& x) {
        double& c = mutant == Mutant::forgotten_carry ? carry_ : x.c;
        const double noise = 0.01 * static_cast<double>(mutant == Mutant::generator ? ++calls_ : (i * 7) % 5);
        x.h = std::tanh(w * x.h + c + 0.4 * x.mean + noise);
        c = 0.5 * c + x.h;
        x.mean = 0.9 * x.mean + 0.1 * x.h;
    }

    std::vector<double> log_;
    mutable double carry_ = 0.2;
    int calls_ = 0;
};

constexpr Index links = 17;

std::unique_ptr<Schedule> on_disk() {
    return std::make_unique<test::Spilled>(revolve(links, 3), 0);
}

/// Adjoint of x_0 and loss.
template <Mutant mutant>
std::vector<double> sweep(Cell<mutant>& chain, std::unique_ptr<Schedule> schedule) {
    RamStore store;
    Execution run(chain, std::move(schedule));
    run.use(Tier::disk, store);
    run.forward();
    if (run.resting()) run.backward();
    return {run.adjoint()[0], run.adjoint()[1], run.adjoint()[2], chain.loss()};
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// The law of equal bits: store_all against revolve on a fresh chain, in RAM and on disk; loss against forward_only's.
template <Mutant mutant>
bool passes_bits() {
    Cell<mutant> one(links), two(links), three(links);
    const std::vector<double> all = sweep(one, store_all(links));
    sweep(one, forward_only(links));
    return same(all, sweep(two, revolve(links, 3))) && same(all, sweep(three, on_disk())) && all[3] == one.loss();
}

template <Mutant mutant>
bool passes_audit() {
    Cell<mutant> inner(links);
    Audited chain(inner);
    try {
        for (const bool disk : {false, true}) {
            RamStore store;
            Execution run(chain, disk ? on_disk() : revolve(links, 3));
            run.use(Tier::disk, store);
            run.forward();
            run.backward();
        }
    } catch (const NumericError&) {
        return false;
    }
    return true;
}

/// Names of the lines of check_chain that fail.
template <Mutant mutant>
std::vector<std::string> failures() {
    Cell<mutant> chain(links);
    std::vector<std::string> names;
    for (const Check& c : check_chain(chain).checks)
        if (!c.passed) names.push_back(c.name);
    return names;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_sound_cell_passes_every_checker) {
    BOOST_TEST(passes_bits<Mutant::none>());
    BOOST_TEST(passes_audit<Mutant::none>());
    BOOST_TEST(failures<Mutant::none>().empty());
}

BOOST_AUTO_TEST_CASE(a_stateful_generator) {
    BOOST_TEST(!passes_bits<Mutant::generator>());
    BOOST_TEST(!passes_audit<Mutant::generator>());
    BOOST_TEST(among(failures<Mutant::generator>(), "advance = record"));
}

BOOST_AUTO_TEST_CASE(a_forgotten_carry) {
    BOOST_TEST(!passes_bits<Mutant::forgotten_carry>());
    BOOST_TEST(!passes_audit<Mutant::forgotten_carry>());
    const auto failed = failures<Mutant::forgotten_carry>();
    BOOST_TEST(among(failed, "replay from a kept state"));
    BOOST_TEST(among(failed, "gradient under revolve, 3 slots"));
}

// Played twice on one chain, as an evaluation before the training step would; one sweep alone shows nothing.
BOOST_AUTO_TEST_CASE(a_loss_counted_twice_in_replay) {
    Cell<Mutant::double_loss> chain(links);
    sweep(chain, forward_only(links));
    const double once = chain.loss();
    sweep(chain, revolve(links, 3));
    BOOST_TEST(chain.loss() != once);
    BOOST_TEST(!passes_bits<Mutant::double_loss>());
    const std::vector<std::string> only{"loss of forward_only = loss of revolve"};
    BOOST_TEST((failures<Mutant::double_loss>() == only));
}

// States in RAM are copied whole, so only stores of bytes can show it.
BOOST_AUTO_TEST_CASE(a_running_quantity_left_out_of_the_bytes) {
    BOOST_TEST(!passes_bits<Mutant::unsaved_bytes>());
    BOOST_TEST(!passes_audit<Mutant::unsaved_bytes>());
    const std::vector<std::string> only{"replay from a state's bytes"};
    BOOST_TEST((failures<Mutant::unsaved_bytes>() == only));
}

BOOST_AUTO_TEST_CASE(a_running_quantity_left_out_of_save) {
    BOOST_TEST(!passes_bits<Mutant::unsaved_copy>());
    BOOST_TEST(!passes_audit<Mutant::unsaved_copy>());
    const auto failed = failures<Mutant::unsaved_copy>();
    BOOST_TEST(among(failed, "replay from a kept state"));
    BOOST_TEST(among(failed, "gradient under revolve, 3 slots"));
}
