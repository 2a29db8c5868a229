// The pictures of docs/schedules are those of today's schedules. BACKSWEEP_WRITE_PICTURES=1 draws them anew.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_pictures
#include "support/unit_test.hpp"

#include "backsweep/schedule/ended.hpp"
#include "backsweep/schedule/optimal_chain.hpp"
#include "cli/plot.hpp"
#include "cli/program.hpp"

#include <cstdlib>
#include <utility>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

constexpr Index links = 30;

/// A family on 30 links with about as much memory as four states take, and a caption.
std::pair<ScheduleOptions, std::string> example(const std::string& family) {
    ScheduleOptions o;
    o.family = family;
    if (!is_open_ended(family)) o.steps = links;
    if (family == "revolve") return o.slots = 4, std::pair{o, "revolve, 4 slots"};
    if (family == "periodic") return o.period = 6, std::pair{o, "periodic, every 6 links"};
    if (family == "segments") return o.segments = 3, o.depth = 2, std::pair{o, "segments, 3 cut into 3 each"};
    if (family == "mixed") return o.slots = 4, o.tape_units = 2, std::pair{o, "mixed, 4 units, a tape takes 2"};
    if (family == "online") return o.slots = 4, std::pair{o, "online, 4 slots, the end told one link ahead"};
    if (family == "two_level")
        return o.period = 8, o.slots = 2, std::pair{o, "two_level, every 8 links on disk, 2 slots in RAM"};
    if (family == "nonuniform") {
        o.slots = 4;
        for (Index i = 0; i < links; ++i) o.costs.push_back(i < 10 ? 5.0 : 1.0);
        return {o, "nonuniform, 4 slots, the first ten links five times as dear"};
    }
    if (family == "multistage") {
        o.levels = {{Tier::ram, 2}, {Tier::disk, 2, 2.0, 1.0}};
        return {o, "multistage, 2 slots in RAM and 2 on disk, a write 2, a read 1"};
    }
    if (family == "tiered_revolve") {
        o.levels = {{Tier::ram, 2}, {Tier::disk, 2}};
        return {o, "tiered_revolve, 2 slots in RAM and 2 on disk"};
    }
    if (family == "periodic_disk") {
        o.levels = {{Tier::ram, 2}, {Tier::disk, -1, 2.0, 1.0}};
        return {o, "periodic_disk, 2 slots in RAM, a write 2, a read 1"};
    }
    if (family == "optimal_chain") {
        ChainCosts& c = o.chain;
        for (Index i = 0; i < links; ++i) {
            c.forward_time.push_back(1.0 + static_cast<double>(i % 3));
            c.backward_time.push_back(2.0);
        }
        for (Index i = 0; i <= links; ++i) c.state_bytes.push_back(i < links / 2 ? 4 : 1);
        for (Index i = 0; i < links; ++i) c.tape_bytes.push_back(3 * c.state_bytes[static_cast<std::size_t>(i + 1)]);
        o.budget = least_chain_budget(c) + 8;
        return {o, "optimal_chain, states of the first half four times as large"};
    }
    return {o, family};
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_family_has_its_picture) {
    const char* const write = std::getenv("BACKSWEEP_WRITE_PICTURES");
    for (const std::string& family : schedule_families()) {
        if (family == "forward_only") continue;
        const auto [options, caption] = example(family);
        Ended stream(make_schedule(options), links, is_open_ended(family) ? Ending::ahead : Ending::closed);
        const std::string svg = cli::plot(stream, links, caption);
        const fs::path file = source_dir() / "docs/schedules" / (family + ".svg");
        if (write) write_file(file, svg);
        BOOST_TEST(text_of_file(file) == svg, file << " is not today's; draw it with BACKSWEEP_WRITE_PICTURES=1");
        BOOST_TEST(
            text_of_file(source_dir() / "docs/schedules.md").find("schedules/" + family + ".svg") != std::string::npos,
            "docs/schedules.md does not show " << family);
    }
}
