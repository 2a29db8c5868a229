// Training under schedules along the depth: the same bits whatever a link keeps of its layers, with any number of
// threads, and bytes predicted.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE depth
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/trainer.hpp"
#include "property/five_models.hpp"
#include "support/compare.hpp"
#include "train/made_text.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using Family = DepthOptions::Family;

TrainOptions options(const char* family, Index slots, Index threads, DepthOptions depth) {
    TrainOptions o;
    o.chunk = 3;
    o.schedule.family = family;
    o.schedule.slots = slots;
    o.threads = threads;
    o.plan_depth = false;
    o.depth = std::move(depth);
    o.rate.peak = 0.02;
    o.seed = 9;
    return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(depth)

BOOST_AUTO_TEST_CASE(bits_depend_on_neither_axis_nor_threads_and_bytes_are_predicted) {
    const Text text(1 + 5 * 53);
    for (const NamedModel& model : five_models(12, 12)) {
        const Network<float> network = build<float>(model.spec);
        const auto source = text.source<float>(5, 13);
        std::vector<float> wanted;
        std::int64_t all = 0;
        const DepthOptions half{.family = Family::optimal, .budget = 20000};
        for (const DepthOptions& kept :
             {DepthOptions{}, DepthOptions{.family = Family::sqrt}, DepthOptions{.family = Family::slots, .slots = 1},
              half, DepthOptions{.always = {"*"}, .never = {}}})
            for (const auto& [family, slots] :
                 {std::pair{"store_all", Index{0}}, std::pair{"revolve", Index{1}}, std::pair{"revolve", Index{3}}})
                for (const Index threads : {1, 2}) BOOST_TEST_CONTEXT(model.name << ", " << family << slots) {
                        Trainer<float> t(network, source, options(family, slots, threads, kept));
                        t.run(7);
                        BOOST_TEST((t.measured() == t.plan().predicted));
                        const std::vector<float> got(t.parameters().begin(), t.parameters().end());
                        if (wanted.empty()) {
                            wanted = got;
                            all = t.measured()[Kind::tape];
                        }
                        BOOST_TEST(same_bits(got, wanted));
                        if (kept.family == Family::sqrt) BOOST_TEST(t.measured()[Kind::tape] <= all);
                    }
    }
}

BOOST_AUTO_TEST_CASE(options_that_do_not_fit_are_refused) {
    const Text text(1 + 5 * 53);
    const Network<float> network = build<float>(five_models(12, 12)[0].spec);
    const auto source = text.source<float>(5, 13);
    BOOST_CHECK_EXCEPTION(Trainer<float>(network, source, options("store_all", 0, 1, {.never = {"rnm*"}})),
                          InvalidArgument, [](const InvalidArgument& e) {
                              return std::string(e.what()).find("depth.never names 'rnm*'") != std::string::npos;
                          });
    BOOST_CHECK_THROW(
        Trainer<float>(network, source, options("store_all", 0, 1, {.family = Family::optimal, .budget = 64})), NoPlan);
}

BOOST_AUTO_TEST_SUITE_END()
