// Reference cases of segments.
// SPDX-License-Identifier: MIT
#include "support/unit_test.hpp"

#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/segments.hpp"
#include "reference_cases.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace backsweep::test {

using nlohmann::json;

namespace {

Index number(const json& test, const char* key) {
    return test.at(key).get<Index>();
}

/// The working tape is a unit beside the slots: it is there when they are fullest.
Play play(Schedule& schedule, Index layers) {
    Machine machine;
    machine.sizes.state = [](Index) { return std::int64_t{1}; };
    machine.sizes.tape = [](Index) { return std::int64_t{1}; };
    return referee(schedule, layers, {}, machine);
}

}  // namespace

void uniform_segments_case(const json& test) {
    constexpr auto ram = static_cast<std::size_t>(Tier::ram);
    SegmentsOptions options;
    options.steps = number(test, "layers");
    options.segments = number(test, "segments");
    const Play played = play(*segments(options), options.steps);
    BOOST_CHECK_EQUAL(played.advances, number(test, "recomputed_layers"));
    BOOST_CHECK_EQUAL(played.recorded, options.steps);
    BOOST_CHECK_EQUAL(played.peak_bytes[ram] + 1, number(test, "peak_units"));
    BOOST_CHECK_EQUAL(segments_advances(options), played.advances);
    BOOST_CHECK_EQUAL(segments_peak(options), number(test, "peak_units"));
    BOOST_CHECK_EQUAL(options.steps - played.advances, number(test, "last_segment"));
    if (options.segments > 1) BOOST_CHECK_EQUAL(played.first_advance, number(test, "segment_sizes_first"));
    options.segments = best_segments(options.steps);
    BOOST_CHECK_EQUAL(options.segments, number(test, "best_segments"));
    BOOST_CHECK_EQUAL(segments_peak(options), number(test, "best_peak_units"));
    BOOST_CHECK_EQUAL(play(*segments(options), options.steps).peak_bytes[ram] + 1, number(test, "best_peak_units"));
}

}  // namespace backsweep::test
