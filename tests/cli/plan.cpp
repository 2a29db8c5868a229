// `backsweep plan` without a model: tables of schedules, their actions, their pictures, and graphs.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_plan
#include "support/unit_test.hpp"

#include "backsweep/schedule/mixed.hpp"
#include "backsweep/schedule/prediction.hpp"
#include "backsweep/schedule/referee.hpp"
#include "backsweep/schedule/revolve.hpp"
#include "cli/program.hpp"
#include "support/script.hpp"

#include <algorithm>
#include <map>
#include <sstream>

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

json rows_of(const std::vector<std::string>& words) {
    const Scratch scratch;
    std::vector<std::string> all{"plan", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    const Answer answer = run_program(all, scratch.path());
    BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
    return answer.json();
}

const json* row_named(const json& rows, const std::string& schedule) {
    for (const json& row : rows)
        if (row.at("schedule") == schedule) return &row;
    return nullptr;
}

void refused(const std::vector<std::string>& words, const char* says) {
    const Scratch scratch;
    std::vector<std::string> all{"plan"};
    all.insert(all.end(), words.begin(), words.end());
    const Answer answer = run_program(all, scratch.path());
    BOOST_TEST_CONTEXT(answer.err) {
        BOOST_CHECK_EQUAL(answer.code, 2);
        BOOST_TEST(answer.says(says), says);
        BOOST_TEST(answer.out.empty());
    }
}

Action action_of(const json& line) {
    static const std::map<std::string, Verb> verbs = [] {
        std::map<std::string, Verb> all;
        for (int v = 0; v <= static_cast<int>(Verb::done); ++v)
            all[to_string(static_cast<Verb>(v))] = static_cast<Verb>(v);
        return all;
    }();
    const auto slot = [&](const char* key) {
        if (!line.contains(key)) return Slot{};
        Slot s{Tier::ram, line.at(key).at("slot").get<std::int32_t>()};
        for (const Tier tier : {Tier::device, Tier::pinned, Tier::ram, Tier::disk})
            if (line.at(key).at("tier") == to_string(tier)) s.tier = tier;
        return s;
    };
    return {verbs.at(line.at("verb")),
            slot("from"),
            slot("to"),
            0,
            {line.at("first").get<Index>(), line.at("last").get<Index>()}};
}

Index count(const std::string& text, const std::string& what) {
    Index n = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
}

/// The lines that a picture draws of one kind.
Index lines_of(const std::string& svg, const std::string& id) {
    const std::size_t path = svg.find("<path id=\"" + id + "\"");
    if (path == svg.npos) return 0;
    const std::size_t data = svg.find(" d=\"", path) + 4;
    return count(svg.substr(data, svg.find('"', data) - data), "M");
}

}  // namespace

BOOST_AUTO_TEST_CASE(slots_alone) {
    const json rows = rows_of({"--steps", "225", "--slots", "15"});
    double time = 0.0;
    for (const json& row : rows) {
        BOOST_TEST_CONTEXT(row.dump(1)) {
            BOOST_CHECK_EQUAL(row.at("steps").get<int>(), 225);
            BOOST_CHECK_EQUAL(row.at("recorded").get<int>(), 225);
            if (!row.at("fits").get<bool>()) {
                BOOST_TEST(row.at("schedule") == "store_all");
                continue;
            }
            BOOST_TEST(row.at("peak").at("ram").at("slots").get<int>() <= 15);
            BOOST_TEST(row.at("time").get<double>() >= time);  // best first
            time = row.at("time").get<double>();
        }
    }
    BOOST_TEST_REQUIRE(row_named(rows, "revolve"));
    BOOST_CHECK_EQUAL(row_named(rows, "revolve")->at("advances").get<int>(), 522);  // [GW00]
    BOOST_CHECK_EQUAL(row_named(rows, "revolve")->at("time").get<double>(), 522.0 + 2 * 225.0);
    BOOST_CHECK_EQUAL(row_named(rows, "store_all")->at("peak").at("ram").at("slots").get<int>(), 224);
    BOOST_TEST_REQUIRE(row_named(rows, "mixed"));
    BOOST_CHECK_EQUAL(row_named(rows, "mixed")->at("advances").get<Index>() + 225,
                      mixed_forwards({.steps = 225, .units = 15, .restart = false}));
}

BOOST_AUTO_TEST_CASE(bytes_and_a_disk) {
    const json rows = rows_of({"--steps", "400", "--memory", "100kB", "--state-bytes", "10kB", "--tape-bytes", "25kB",
                               "--disk", "70kB", "--costs", "reverse=2,disk-write=3,disk-read=1.5"});
    for (const json& row : rows) {
        BOOST_TEST_CONTEXT(row.dump(1)) {
            const json& ram = row.at("peak").at("ram");
            const json& disk = row.at("peak").at("disk");
            if (row.at("fits").get<bool>()) {
                BOOST_TEST(ram.at("bytes").get<Index>() <= 75000);  // beside a state and a tape at work
                BOOST_TEST(disk.at("bytes").get<Index>() <= 70000);
            }
            const double foretold = row.at("advances").get<double>() + 3.0 * 400 +
                                    3.0 * row.at("accesses").at("disk").at("writes").get<double>() +
                                    1.5 * row.at("accesses").at("disk").at("reads").get<double>();
            BOOST_CHECK_EQUAL(row.at("time").get<double>(), foretold);
        }
    }
    for (const char* family : {"revolve", "mixed", "online", "multistage", "tiered_revolve", "two_level"})
        BOOST_TEST(row_named(rows, family), family);
    BOOST_TEST_REQUIRE(row_named(rows, "multistage"));
    const double staged = row_named(rows, "multistage")->at("time").get<double>();
    BOOST_TEST(staged < row_named(rows, "revolve")->at("time").get<double>());
    BOOST_TEST(staged <= row_named(rows, "tiered_revolve")->at("time").get<double>());
    const json chosen = rows_of({"--steps", "400", "--slots", "7", "--schedule", "online"});
    BOOST_CHECK_EQUAL(chosen.size(), 1u);
}

BOOST_AUTO_TEST_CASE(memory_is_what_the_referee_counts) {
    for (const char* tape : {"100", "300", "1"}) {
        const json rows =
            rows_of({"--steps", "10", "--memory", "1000", "--state-bytes", "100", "--tape-bytes", tape, "--restart"});
        for (const json& row : rows) {
            if (!row.at("fits").get<bool>()) continue;
            ScheduleOptions o;
            o.family = row.at("schedule");
            if (o.family != "online") o.steps = 10;
            if (row.contains("slots")) o.slots = row.at("slots");
            if (row.contains("units")) o.slots = row.at("units");
            if (row.contains("tape_units")) o.tape_units = row.at("tape_units");
            if (row.contains("period")) o.period = row.at("period");
            if (row.contains("segments")) o.segments = row.at("segments");
            if (row.contains("depth")) o.depth = row.at("depth");
            o.restart = row.contains("restart");
            Machine machine{.ending = Ending::ahead};
            machine.sizes.state = [](Index) { return 100; };
            machine.sizes.tape = [size = std::atoi(tape)](Index) { return size; };
            BOOST_TEST(predict(o, 10, machine).peak_total <= 1000, row.dump());
        }
    }
    // store_all with small tapes fits where no slot for a state would.
    BOOST_TEST(row_named(rows_of({"--steps", "10", "--memory", "250", "--state-bytes", "100", "--tape-bytes", "1"}),
                         "store_all")
                   ->at("fits")
                   .get<bool>());
    BOOST_TEST(row_named(rows_of({"--steps", "10", "--slots", "999999999"}), "online"));
    // Segments of sqrt(n) where they fit, within one another where they do not.
    for (const auto& [slots, depth] : {std::pair{"100", 1}, {"40", 2}}) {
        const json nested = rows_of({"--steps", "1000", "--slots", slots});
        BOOST_TEST_REQUIRE(row_named(nested, "segments"));
        BOOST_CHECK_EQUAL(row_named(nested, "segments")->at("depth").get<int>(), depth);
    }
    // Of the periods that fit the one with the fewest advances.
    BOOST_CHECK_EQUAL(
        row_named(rows_of({"--steps", "100000", "--slots", "60000"}), "periodic")->at("advances").get<Index>(), 50000);
}

BOOST_AUTO_TEST_CASE(formulas_of_long_chains_are_what_a_play_counts) {
    const std::vector<std::string> limits{"--slots", "60",      "--disk-slots",
                                          "20000",   "--costs", "disk-write=9,disk-read=4"};
    const auto rows_with = [&](const char* steps) {
        std::vector<std::string> words{"--steps", steps};
        words.insert(words.end(), limits.begin(), limits.end());
        return rows_of(words);
    };
    const json played = rows_with("1000000"), foretold = rows_with("1000001");
    for (const char* family : {"revolve", "tiered_revolve", "periodic_disk"}) {
        const json *a = row_named(played, family), *b = row_named(foretold, family);
        BOOST_TEST_REQUIRE((a && b), family);
        BOOST_TEST(b->at("time").get<double>() > a->at("time").get<double>(), family);
        BOOST_TEST(b->at("time").get<double>() < a->at("time").get<double>() + 100.0, family);
        BOOST_CHECK_EQUAL(a->at("peak").dump(), b->at("peak").dump());
    }
}

BOOST_AUTO_TEST_CASE(long_chains_start_at_once) {
    const json rows = rows_of({"--steps", "1000000000", "--slots", "100"});
    BOOST_TEST_REQUIRE(row_named(rows, "revolve"));
    BOOST_CHECK_EQUAL(row_named(rows, "revolve")->at("advances").get<Index>(), revolve_advances(1000000000, 100));
    // Up to a million steps are played; families whose tables would take hours are left out.
    BOOST_TEST(row_named(rows_of({"--steps", "1000000", "--slots", "50"}), "revolve"));
}

BOOST_AUTO_TEST_CASE(actions_are_the_stream) {
    for (const char* family : {"revolve", "mixed", "online", "multistage"}) {
        const Scratch scratch;
        std::vector<std::string> words{"plan", "--steps", "23", "--slots", "3", "--schedule", family, "--actions"};
        if (std::string_view(family) == "multistage")
            words.insert(words.end(), {"--disk-slots", "2", "--costs", "disk-write=0.5,disk-read=0.5"});
        const Answer text = run_program(words, scratch.path());
        words.push_back("--json");
        const Answer lines = run_program(words, scratch.path());
        BOOST_CHECK_EQUAL(text.code, 0);
        std::vector<Action> actions;
        std::string again;
        std::istringstream in(lines.out);
        for (std::string line; std::getline(in, line);) {
            actions.push_back(action_of(json::parse(line)));
            again += to_string(actions.back()) + "\n";
        }
        BOOST_TEST_CONTEXT(family) {
            BOOST_CHECK_EQUAL(again, text.out);
            Script script(actions);
            BOOST_CHECK_EQUAL(referee(script, 23).reversed, 23);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_picture_shows_every_action) {
    const Scratch scratch;
    const Answer answer = run_program(
        {"plan", "--steps", "10", "--slots", "3", "--schedule", "revolve", "--plot", "small.svg"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 0);
    const std::string svg = text_of_file(scratch.path() / "small.svg");
    const Play play = referee(*revolve(10, 3), 10);
    BOOST_CHECK_EQUAL(lines_of(svg, "record"), play.recorded);
    BOOST_CHECK_EQUAL(lines_of(svg, "reverse"), 10);
    BOOST_CHECK_EQUAL(lines_of(svg, "ram"), play.saves);
    BOOST_CHECK_EQUAL(lines_of(svg, "disk"), 0);
    BOOST_TEST(svg.find("10 steps: revolve, slots 3") != std::string::npos);
    run_program({"plan", "--steps", "10", "--slots", "3", "--disk-slots", "2", "--schedule", "tiered_revolve", "--plot",
                 "disk.svg"},
                scratch.path());
    BOOST_TEST(lines_of(text_of_file(scratch.path() / "disk.svg"), "disk") > 0);
    BOOST_CHECK_EQUAL(
        run_program({"plan", "--steps", "10000", "--slots", "20", "--schedule", "revolve", "--plot", "large.svg"},
                    scratch.path())
            .code,
        0);
    const std::string large = text_of_file(scratch.path() / "large.svg");
    BOOST_TEST(large.size() < 2'000'000u);
    BOOST_TEST(lines_of(large, "advance") > 100);
}

BOOST_AUTO_TEST_CASE(wrong_words) {
    refused({"--steps", "0"}, "give a configuration, --graph, or --steps");
    refused({"--steps", "5", "--slots", "-1"}, "--slots wants an integer in [0,");
    refused({"--steps", "5", "--memory", "1MB"}, "--memory has no effect without --state-bytes");
    refused({"--steps", "5", "--state-bytes", "1kB"}, "give --memory or --slots");
    refused({"--steps", "5", "--state-bytes", "many", "--memory", "1MB"}, "--state-bytes wants a size");
    refused({"--steps", "5", "--state-bytes", "1kB", "--memory", "1MB", "--slots", "3"}, "two words for one limit");
    refused({"--steps", "5", "--state-bytes", "1kB", "--memory", "2kB"}, "with one slot");
    refused({"--steps", "5", "--slots", "2", "--costs", "advance"}, "--costs wants name=number");
    refused({"--steps", "5", "--slots", "2", "--costs", "advance=nan"}, "--costs wants name=number");
    refused({"--steps", "5", "--slots", "2", "--costs", "advances=1"}, "got 'advances=1'");
    refused({"--steps", "5", "--slots", "2", "--schedule", "revolver"},
            "--schedule: within these limits there are: store_all, revolve, mixed, online");
    refused({"--steps", "5", "--disk-slots", "3"}, "--disk-slots has no effect without a limit in RAM");
    refused({"--steps", "5", "--restart"}, "--restart has no effect without a limit in RAM");
    refused({"--steps", "5", "--slots", "2", "--costs", "disk-write=5"},
            "prices of the disk have no effect without one");
    refused({"--steps", "5", "--slots", "2", "--costs", "advance=1,"}, "--costs ends in a comma");
    refused({"--steps", "5", "--slots", "2", "--costs", "advance=1,advance=2"}, "gives advance twice");
    refused({"--steps", "5", "--state-bytes", "1kB", "--memory", "9kB", "--disk", "10"}, "--disk 10 has no effect");
    refused({"--steps", "9", "--slots", "3", "--schedule", "store_all", "--actions"},
            "no schedule store_all of 9 steps fits");
    refused({"--steps", "2000000", "--slots", "50", "--schedule", "online"}, "left out: online (too long to play)");
    refused({"--graph", "/", "--memory", "5"}, "it is a folder");
    refused({"--measure", "3", "--steps", "5"}, "--measure, --fit, --calibrate and --set have no effect without a configuration");
    refused({"--graph", "none.json", "--memory", "5"}, "none.json");
    refused({"--graph", "none.json"}, "none.json");
    refused({"--graph"}, "--graph wants a configuration");
    refused({"--graph", "none.json", "--memory", "much"}, "--memory wants a size");
    refused({"--graph", "none.json", "--actions"}, "which wants --memory");
    refused({"--graph", "none.json", "--slots", "3", "--memory", "5"}, "leave the others out");
    refused({"--graph", "none.json", "--measure", "3", "--memory", "5"}, "no effect beside a graph");
}

BOOST_AUTO_TEST_CASE(a_graph) {
    const Scratch scratch;
    write_file(scratch.path() / "graph.json", R"({"nodes": [
        {"name": "a", "time": 2, "bytes": 1}, {"name": "b", "time": 1, "bytes": 1}, {"name": "c", "time": 1, "bytes": 1},
        {"name": "loss", "time": 1, "bytes": 1}], "edges": [["a", "b"], ["b", "c"], ["c", "loss"], ["a", "loss"]]})");
    const Answer loose = run_program({"plan", "--graph", "graph.json", "--memory", "4", "--json"}, scratch.path());
    if (loose.says("built without the component graph")) return;
    BOOST_TEST_CONTEXT(loose.err) BOOST_CHECK_EQUAL(loose.code, 0);
    BOOST_CHECK_EQUAL(loose.json().at("time").get<double>(), 5.0);
    const json tight = run_program({"plan", "--graph", "graph.json", "--memory", "3", "--json"}, scratch.path()).json();
    BOOST_CHECK_EQUAL(tight.at("time").get<double>(), 5.0);
    BOOST_TEST(tight.at("proven").get<bool>());
    const Answer steps = run_program({"plan", "--graph", "graph.json", "--memory", "3", "--actions"}, scratch.path());
    BOOST_TEST(steps.out.starts_with("compute "));
    BOOST_CHECK_EQUAL(count(steps.out, "compute "), 4);
    BOOST_CHECK_EQUAL(run_program({"plan", "--graph", "graph.json", "--memory", "2"}, scratch.path()).code, 2);
    const Answer shown = run_program({"plan", "graph.json", "--graph"}, scratch.path());
    BOOST_TEST(shown.out.starts_with("4 nodes; once each: time 5, peak 3 B; no plan below 3 B\n"));
}

// The graph of a model, as JSON, is a graph: one plan, read from the file or from the configuration.
BOOST_AUTO_TEST_CASE(the_graph_of_a_model) {
    const Scratch scratch;
    write_file(scratch.path() / "run.toml", R"(
[data]
kind = "adding"
window = 9
batch = 3
windows = 4
[model]
kind = "layers"
[[model.layers]]
type = "concatenate"
layers = [{type = "dense", outputs = 3}, {type = "residual", layers = [{type = "activation"}, {type = "dense"}]}]
[[model.layers]]
type = "gru"
hidden = 5
[[model.layers]]
type = "dense"
[train]
chunk = 4
updates = 3
)");
    const auto answer = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"plan", "run.toml", "--graph"});
        return run_program(words, scratch.path());
    };
    const Answer graph = answer({"--json"});
    if (graph.says("built without the component graph")) return;
    BOOST_TEST_CONTEXT(graph.err) BOOST_TEST_REQUIRE(graph.code == 0);
    write_file(scratch.path() / "graph.json", graph.out);
    const Answer again = run_program({"plan", "graph.json", "--graph", "--json"}, scratch.path());
    BOOST_CHECK_EQUAL(again.out, graph.out);
    BOOST_CHECK_EQUAL(answer({}).out, run_program({"plan", "graph.json", "--graph"}, scratch.path()).out);
    BOOST_TEST(answer({}).out.starts_with("16 nodes; once each: time 4668, peak 736 B; no plan below 640 B\n"));
    for (const char* memory : {"736", "700", "640"}) {
        const Answer plan = answer({"--memory", memory, "--json"});
        BOOST_TEST_CONTEXT(plan.err) BOOST_TEST_REQUIRE(plan.code == 0);
        BOOST_TEST(plan.json().at("proven").get<bool>());
        BOOST_CHECK_EQUAL(plan.out,
                          run_program({"plan", "graph.json", "--graph", "--memory", memory, "--json"}, scratch.path()).out);
    }
    BOOST_CHECK_EQUAL(answer({"--memory", "1"}).code, 2);
    BOOST_TEST(answer({"--memory", "1"}).says("optimal_graph: the graph needs 640 bytes, offered 1"));
}
