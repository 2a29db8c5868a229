// Verify mode of a training, and who observes its actions.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE train_verify
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/train/trainer.hpp"
#include "property/five_models.hpp"
#include "support/compare.hpp"
#include "train/made_text.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Verify = TrainOptions::Verify;

TrainOptions options(const char* family, Index slots, Verify verify) {
    TrainOptions o;
    o.chunk = 3;
    o.schedule.family = family;
    o.schedule.slots = slots;
    o.verify = verify;
    o.rate.peak = 0.02;
    o.seed = 9;
    return o;
}

/// A layer with a generator of its own: the output and the carry of its `from`-th run (0: never), and of all later ones,
/// lie a little off.
class Cheating final : public Layer<float> {
public:
    Cheating(const Layer<float>& inner, std::atomic<Index>& runs, Index from) : inner_(inner), runs_(runs), from_(from) {}

    const std::string& name() const noexcept override { return inner_.name(); }
    Footprint footprint(Index steps, Index batch) const override { return inner_.footprint(steps, batch); }
    Work work(Index steps, Index batch) const override { return inner_.work(steps, batch); }
    std::vector<ParameterShape> parameters() const override { return inner_.parameters(); }
    std::string tied() const override { return inner_.tied(); }
    std::vector<MemoryShape> memories() const override { return inner_.memories(); }
    void advance(const Forward<float>& call) const override {
        inner_.advance(call);
        cheat(call);
    }
    void record(const Forward<float>& call) const override {
        inner_.record(call);
        cheat(call);
    }
    void reverse(const Backward<float>& call) const override { inner_.reverse(call); }

private:
    void cheat(const Forward<float>& call) const {
        if (from_ == 0 || ++runs_ < from_) return;
        const auto off = [&](float& v) { v += 1e-4F * static_cast<float>(runs_ % 7 + 1); };
        if (call.y) off(call.y[0]);
        if (inner_.footprint(call.at.steps, call.at.batch).carry > 0) off(call.carry_out[0]);
    }
    const Layer<float>& inner_;
    std::atomic<Index>& runs_;
    Index from_;
};

/// The network with a cheat in the place of its layer number `at`.
Network<float> with_cheat(const Network<float>& network, Index at, std::atomic<Index>& runs, Index from) {
    Network<float>::Layers layers;
    for (Index l = 0; l < network.depth(); ++l)
        layers.push_back(std::make_unique<Cheating>(network.layer(l), runs, l == at ? from : 0));
    return {network.spec(), std::move(layers)};
}

bool says(const std::exception& e, const std::vector<std::string>& words) {
    const std::string text = e.what();
    for (const std::string& w : words)
        if (text.find(w) == std::string::npos) {
            BOOST_TEST_MESSAGE("'" << w << "' is not in: " << text);
            return false;
        }
    return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_honest_training_passes_with_the_same_bits_and_bytes) {
    const Text text(1 + 5 * 53);
    for (const NamedModel& model : five_models(12, 12)) {
        const Network<float> network = build<float>(model.spec);
        const auto source = text.source<float>(5, 13);
        std::vector<float> wanted;
        const std::int64_t state = network.carry() * 5 * static_cast<std::int64_t>(sizeof(float));
        for (const auto& [family, slots] :
             {std::pair{"store_all", Index{0}}, std::pair{"revolve", Index{1}}, std::pair{"revolve", Index{3}}, std::pair{"periodic", Index{0}}})
            for (const Verify verify : {Verify::off, Verify::slots, Verify::steps})
                for (const Index threads : {1, 2}) BOOST_TEST_CONTEXT(model.name << ", " << family << slots << ", verify " << int(verify)) {
                        TrainOptions o = options(family, slots, verify);
                        if (o.schedule.family == "periodic") o.schedule.period = 2;
                        o.threads = threads;
                        Trainer<float> t(network, source, o);
                        t.run(7);
                        Bytes held = t.measured();
                        const std::int64_t predicted = t.plan().predicted[Kind::carry];
                        BOOST_TEST(held[Kind::carry] >= predicted);
                        BOOST_TEST(held[Kind::carry] <= predicted + (verify == Verify::off ? 0 : state));
                        held[Kind::carry] = predicted;
                        BOOST_TEST((held == t.plan().predicted));
                        const std::vector<float> got(t.parameters().begin(), t.parameters().end());
                        if (wanted.empty()) wanted = got;
                        BOOST_TEST((got == wanted));
                    }
    }
}

BOOST_AUTO_TEST_CASE(a_layer_that_cheats_is_caught_and_named) {
    const Text text(1 + 2 * 60);
    const auto source = text.source<float>(2, 30);  // 10 links of 3 steps, two shards of one sequence
    const NamedModel model = five_models(12, 12).front();
    const Network<float> network = build<float>(model.spec);
    const Index cell = 1;
    std::atomic<Index> runs = 0;

    // With one slot every link but the last runs again from x_0, and the first time was honest: 9 links in the forward
    // sweep. Link 3 is the first that runs off the line then: the fourth run of the second pass.
    const Index from = 9 + 1 + 4;
    const auto trained = [&](Verify verify, const char* family, Index slots, Index cheats_from) {
        runs = 0;
        const Network<float> cheated = with_cheat(network, cell, runs, cheats_from);
        TrainOptions o = options(family, slots, verify);
        o.shards = 1;
        Trainer<float> t(cheated, source, o);
        const std::vector<float> before(t.parameters().begin(), t.parameters().end());
        try {
            t.run(1);
        } catch (...) {
            const std::vector<float> after(t.parameters().begin(), t.parameters().end());
            BOOST_TEST((before == after));
            throw;
        }
    };
    BOOST_CHECK_NO_THROW(trained(Verify::off, "revolve", 1, from));
    BOOST_CHECK_NO_THROW(trained(Verify::steps, "revolve", 1, 0));
    BOOST_CHECK_EXCEPTION(trained(Verify::steps, "revolve", 1, from), NumericError, [&](const NumericError& e) {
        return says(e, {"layer '" + network.layer(cell).name() + "'", "step 9", "link 3", "other bits"});
    });

    // slots: what is off reaches a state that was kept.
    Index found = 0, all = 0;
    for (Index late = 11; late <= 25; ++late, ++all)
        try {
            trained(Verify::slots, "revolve", 3, late);
        } catch (const NumericError& e) {
            ++found;
            BOOST_TEST(says(e, {"state of step", "other bits than when it was first kept"}));
        }
    BOOST_TEST_MESSAGE(found << " of " << all << " generators found by slots");
    BOOST_TEST(found > all / 2);
    BOOST_CHECK_NO_THROW(trained(Verify::slots, "revolve", 3, 0));
}

BOOST_AUTO_TEST_CASE(every_action_of_every_shard_is_observed) {
    const Text text(1 + 6 * 40);
    const Network<float> network = build<float>(five_models(12, 12).front().spec);
    const auto source = text.source<float>(6, 20);  // 7 links
    for (const Index threads : {1, 3}) {
        TrainOptions o = options("revolve", 2, Verify::off);
        o.shards = 3;
        o.threads = threads;
        o.micro_batches = 2;
        Trainer<float> t(network, source, o);
        BOOST_CHECK_EQUAL(t.shards(), 3);
        const auto schedule = make_schedule({.family = "revolve", .steps = 7, .slots = 2});
        const Index wanted = referee(*schedule, 7).actions + 1;  // and `done`
        std::mutex mutex;
        std::vector<Played> seen;
        std::int64_t least = 1;
        t.observe_actions([&](const Played& p) {
            const std::int64_t live = t.live(p.shard).total();
            const std::lock_guard lock(mutex);
            least = std::min(least, live);
            seen.push_back(p);
        });
        t.run(2);
        std::map<std::tuple<Index, Index, Index>, Index> counts;
        std::map<Index, double> last;
        for (const Played& p : seen) {
            ++counts[{p.update, p.shard, p.micro_batch}];
            BOOST_TEST(p.begin >= last[p.shard]);
            BOOST_TEST(p.end >= p.begin);
            last[p.shard] = p.end;
        }
        BOOST_TEST(least == 1);
        BOOST_CHECK_EQUAL(counts.size(), std::size_t{2 * 3 * 2});
        for (const auto& [where, count] : counts) BOOST_CHECK_EQUAL(count, wanted);
        BOOST_TEST((counts.begin()->first == std::make_tuple(Index{1}, Index{0}, Index{0})));
        t.observe_actions({});
        const std::size_t so_far = seen.size();
        t.run(1);
        BOOST_CHECK_EQUAL(seen.size(), so_far);
        BOOST_CHECK_THROW(t.live(3), InvalidArgument);
    }
}
