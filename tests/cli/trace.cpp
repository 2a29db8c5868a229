// `train --trace`: every action of every shard, in its update's time; and `train --verify`.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_trace
#include "support/unit_test.hpp"

#include "backsweep/schedule/referee.hpp"
#include "cli/place.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <set>
#include <thread>

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

/// Windows of 21 steps in chunks of 3, all full: 7 links; 5 sequences in 4 shards.
std::string config(const std::string& train = "updates = 6\n") {
    return small_config(train, "[schedule]\nfamily = \"revolve\"\nslots = 2\n", "batch = 5\nwindow = 21");
}

json trace_of(const fs::path& file) { return json::parse(text_of_file(file)); }

std::vector<json> events(const json& trace, const std::string& phase, const std::string& category = "") {
    std::vector<json> found;
    for (const json& e : trace.at("traceEvents"))
        if (e.at("ph") == phase && (category.empty() || e.value("cat", "") == category)) found.push_back(e);
    return found;
}

constexpr double rounding = 0.002;  // microseconds: times are written to a nanosecond

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_holds_every_action_within_its_update) {
    const auto schedule = make_schedule({.family = "revolve", .steps = 7, .slots = 2});
    const std::size_t actions = static_cast<std::size_t>(referee(*schedule, 7).actions);
    for (const int threads : {1, 3}) {
        const Place place(config());
        place.train("run", {"train.threads=" + std::to_string(threads)}, {"--trace", "folder/trace.json"});
        const json trace = trace_of(place.path() / "folder/trace.json");
        const std::vector<json> played = events(trace, "X", "action"), updates = events(trace, "X", "update");
        BOOST_CHECK_EQUAL(updates.size(), 6u);
        BOOST_CHECK_EQUAL(played.size(), actions * 4 * 6);
        std::map<int, json> update;
        for (const json& u : updates) {
            BOOST_CHECK_EQUAL(u.at("pid").get<int>(), 4);  // behind the shards
            update[std::stoi(u.at("name").get<std::string>().substr(7))] = u;
        }
        std::map<std::pair<int, int>, double> sums;  // by update and shard
        std::map<int, double> end;
        std::set<std::string> names;
        for (const json& a : played) {
            const int shard = a.at("pid").get<int>(), number = a.at("args").at("update").get<int>();
            BOOST_TEST(shard == a.at("tid").get<int>());
            const double begin = a.at("ts").get<double>(), duration = a.at("dur").get<double>();
            const json& u = update.at(number);
            BOOST_TEST(begin >= u.at("ts").get<double>() - rounding);
            BOOST_TEST(begin + duration <= u.at("ts").get<double>() + u.at("dur").get<double>() + rounding);
            BOOST_TEST(begin >= end[shard] - rounding);
            end[shard] = begin + duration;
            sums[{number, shard}] += duration;
            names.insert(a.at("name").get<std::string>());
            BOOST_TEST(a.at("args").at("first").get<int>() <= a.at("args").at("last").get<int>());
            if (a.at("name") == "save") BOOST_TEST(a.at("args").at("to").get<std::string>().starts_with("ram slot "));
        }
        BOOST_CHECK_EQUAL(sums.size(), 4u * 6u);
        for (const auto& [where, sum] : sums)
            BOOST_TEST(sum <= update.at(where.first).at("dur").get<double>() + rounding * static_cast<double>(actions));
        for (const char* name : {"advance", "tape", "reverse", "save", "turn"}) BOOST_TEST(names.contains(name), name);

        const std::vector<json> counters = events(trace, "C");
        BOOST_TEST(counters.size() > 4);
        std::int64_t live = 0;
        for (const json& c : counters) {
            BOOST_CHECK_EQUAL(c.at("args").size(), kind_count);
            if (c.at("pid") != 4) continue;
            live = 0;
            for (const json& bytes : c.at("args")) live += bytes.get<std::int64_t>();
        }
        BOOST_CHECK_EQUAL(live, metrics(place.path() / "run").at(5).at("live").at("total").get<std::int64_t>());
        std::set<std::string> processes;
        for (const json& m : events(trace, "M"))
            if (m.at("name") == "process_name") processes.insert(m.at("args").at("name").get<std::string>());
        BOOST_TEST((processes == std::set<std::string>{"shard 0", "shard 1", "shard 2", "shard 3", "training"}));
        BOOST_CHECK_EQUAL(trace.at("otherData").at("left_out").get<int>(), 0);
        place.train("without", {"train.threads=" + std::to_string(threads)});
        check_same_end(place.path() / "run", place.path() / "without");
    }
}

BOOST_AUTO_TEST_CASE(a_trace_that_is_full_says_so) {
    const Place place(config());
    const Answer answer = place.train("run", {}, {"--trace", "trace.json", "--trace-events", "100"});
    BOOST_TEST_CONTEXT(answer.err) {
        BOOST_TEST(answer.says("'trace.json' has reached its limit of 100 events in update 1"));
        BOOST_TEST(answer.says("--trace-events"));
        BOOST_TEST(answer.err.find("limit of 100") == answer.err.rfind("limit of 100"));  // once
    }
    const json trace = trace_of(place.path() / "trace.json");
    BOOST_CHECK_EQUAL(events(trace, "X").size() + events(trace, "C").size(), 100u);
    BOOST_CHECK_EQUAL(trace.at("otherData").at("full_in_update").get<int>(), 1);
    BOOST_TEST(trace.at("otherData").at("left_out").get<int>() > 100);
}

BOOST_AUTO_TEST_CASE(an_interrupted_and_a_failed_training_leave_their_trace) {
    const Place place(config("updates = 100000000\n"));
    const pid_t program = start_program({"train", "config.toml", "--out", "run", "--trace", "trace.json"}, place.path());
    while (!fs::exists(place.path() / "run/metrics.jsonl") || fs::file_size(place.path() / "run/metrics.jsonl") < 2000)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    BOOST_TEST(!fs::exists(place.path() / "trace.json"));  // whole or not at all
    ::kill(program, SIGINT);
    BOOST_CHECK_EQUAL(end_of(program), 128 + SIGINT);
    BOOST_CHECK_EQUAL(events(trace_of(place.path() / "trace.json"), "X", "update").size(), updates(place.path() / "run").size());

    const Answer failed = run_program({"train", "config.toml", "--out", "steep", "--trace", "failed.json", "--set",
                                       "optimizer.rate=1e38", "--set", "optimizer.kind=sgd"},
                                      place.path());
    BOOST_CHECK_EQUAL(failed.code, 1);
    BOOST_TEST(failed.says("finite"));
    BOOST_TEST(!events(trace_of(place.path() / "failed.json"), "X", "action").empty());
}

BOOST_AUTO_TEST_CASE(what_a_trace_cannot_use_is_refused_before_anything_is_written) {
    const Place place(config());
    write_file(place.path() / "file", "no folder");
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--trace", "file/trace.json"}, {"--trace", "."}, {"--trace-events", "5"},
          {"--trace", "t.json", "--trace-events", "0"}, {"--verify", "often"}}) {
        std::vector<std::string> words{"train", "config.toml", "--out", "run"};
        words.insert(words.end(), more.begin(), more.end());
        const Answer answer = run_program(words, place.path());
        BOOST_TEST_CONTEXT(more.front() << " " << more.back() << ": " << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            BOOST_TEST(answer.says(more.front()));
            BOOST_TEST(!fs::exists(place.path() / "run/config.toml"));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_verified_run_has_the_same_bits_and_bytes) {
    const Place place(config());
    const json plain = place.train("off", {}, {"--json"}).json();
    for (const char* mode : {"slots", "steps"}) {
        const json report = place.train(mode, {"train.threads=2"}, {"--verify", mode, "--json"}).json();
        json bytes = report.at("bytes").at("measured"), wanted = plain.at("bytes").at("measured");
        const auto more = [&](const char* what) {
            return bytes.at(what).get<std::int64_t>() - wanted.at(what).get<std::int64_t>();
        };
        BOOST_TEST(more("carry") >= 0);  // at most a state: tests/train/verify.cpp
        BOOST_TEST(more("total") == more("carry"));
        BOOST_TEST(more("time_axis") == more("carry"));
        for (const char* what : {"carry", "total", "time_axis"}) bytes.erase(what), wanted.erase(what);
        BOOST_TEST((bytes == wanted));
        check_same_end(place.path() / "off", place.path() / mode);
    }
}
