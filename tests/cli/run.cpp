// Runs of the program: what they leave, what they say, and that a second process goes on with the same bits.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_run
#include "support/unit_test.hpp"

#include "backsweep/data/text.hpp"
#include "backsweep/train/trainer.hpp"
#include "cli/place.hpp"

#include <cmath>
#include <csignal>
#include <numbers>
#include <thread>

using namespace backsweep;
using namespace backsweep::test;
using nlohmann::json;

namespace {

template <class T>
std::vector<T> column(const std::vector<json>& lines, const char* key) {
    std::vector<T> values;
    for (const json& line : lines) values.push_back(line.at(key).get<T>());
    return values;
}

/// Lines that stand in metrics.jsonl so far.
std::ptrdiff_t updates_begun(const fs::path& run) {
    const std::string text = text_of_file(run / "metrics.jsonl");
    return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_leaves_a_folder) {
    const Place place;
    const Answer answer = place.train("run");
    for (const char* name :
         {"config.toml", "manifest.json", "metrics.jsonl", "snapshots/snapshot-000000006.safetensors"})
        BOOST_TEST(fs::is_regular_file(place.path() / "run" / name), name);
    BOOST_CHECK_EQUAL(updates(place.path() / "run").size(), 6u);
    const std::string config = text_of_file(place.path() / "run/config.toml");
    for (const char* words : {"[plan]", "family = ", "[plan.bytes]", "checksum = \"crc32:", "hidden = 9"})
        BOOST_TEST(config.find(words) != std::string::npos, words);
    for (const char* words :
         {"predicted", "measured", "peak resident", "advances", "bits per character", "recompute factor"})
        BOOST_TEST(answer.out.find(words) != std::string::npos, words);
    const json manifest = json::parse(text_of_file(place.path() / "run/manifest.json"));
    BOOST_CHECK_EQUAL(manifest.at("data_bytes").get<int>(), 2000);
    BOOST_CHECK_EQUAL(manifest.at("command").at(1).get<std::string>(), "train");
}

BOOST_AUTO_TEST_CASE(predicted_bytes_are_the_measured_ones) {
    const Place place;
    int number = 0;
    for (const std::vector<std::string>& settings :
         {std::vector<std::string>{},
          {"schedule.family=revolve", "schedule.slots=1"},
          {"schedule.family=periodic", "schedule.period=2"},
          {"train.precision=double", "optimizer.kind=sgd", "optimizer.momentum=0.9"},
          {"optimizer.kind=rmsprop", "optimizer.centered=true", "optimizer.momentum=0.9"},
          {"optimizer.kind=adagrad"},
          {"optimizer.kind=lamb", "rate.law=one_cycle", "train.updates=7"},
          {"train.look_back=6", "data.window=9", "train.look_back_form=once"},
          {"data.batch=6", "train.micro_batches=3", "train.threads=2"}}) {
        const json report = place.train("run" + std::to_string(number++), settings, {"--json"}).json();
        BOOST_TEST_CONTEXT(report.dump(1)) {
            BOOST_TEST((report.at("bytes").at("predicted") == report.at("bytes").at("measured")));
            const int chains = report.at("chains").get<int>();
            BOOST_CHECK_EQUAL(report.at("measured").at("recorded").get<int>(),
                              chains * report.at("recorded").get<int>());
            BOOST_CHECK_EQUAL(report.at("measured").at("advances").get<int>(),
                              chains * report.at("advances").get<int>());
        }
    }
}

BOOST_AUTO_TEST_CASE(g31_a_schedule_changes_counts_and_bytes_but_no_bit) {
    const Place place(small_config("updates = 3", "", "batch = 2\nwindow = 60"));
    const json stored = place.train("stored", {"schedule.family=store_all"}, {"--json"}).json();
    BOOST_CHECK_EQUAL(stored.at("advances").get<int>(), 0);
    for (const int slots : {1, 2, 3, 5}) {
        const std::string run = "revolve" + std::to_string(slots);
        const json report =
            place.train(run, {"schedule.family=revolve", "schedule.slots=" + std::to_string(slots)}, {"--json"}).json();
        if (slots == 1) BOOST_CHECK_EQUAL(report.at("advances").get<int>(), 20 * 19 / 2);
        BOOST_TEST(report.at("bytes").at("measured").at("tape").get<long>() <
                   stored.at("bytes").at("measured").at("tape").get<long>());
        const auto a = tensors(place.path() / run), b = tensors(place.path() / "stored");
        BOOST_TEST((a == b));
    }
}

BOOST_AUTO_TEST_CASE(a_second_process_replays_the_pinned_plan) {
    const Place place;
    place.train("a", {"memory.time_axis=\"30 kB\"", "data.window=40"});
    place.train("again", {});  // another plan in another folder changes nothing
    const Answer answer = run_program({"train", "a/config.toml", "--out", "b"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 0);
    check_same_end(place.path() / "a", place.path() / "b");
    // A plan that is pinned is not made anew: with the limit gone it stays.
    std::string config = text_of_file(place.path() / "a/config.toml");
    const std::size_t at = config.find("time_axis = ");
    BOOST_TEST_REQUIRE(at != std::string::npos);
    config.erase(at, config.find('\n', at) - at);
    write_file(place.path() / "free.toml", config);
    BOOST_CHECK_EQUAL(run_program({"train", "free.toml", "--out", "c"}, place.path()).code, 0);
    const auto plan = [&](const char* run) {
        const std::string text = text_of_file(place.path() / run / "config.toml");
        return text.substr(text.find("[plan]"));
    };
    BOOST_CHECK_EQUAL(plan("a"), plan("c"));
    // And it is refused where it does not belong.
    for (const char* setting :
         {"memory.time_axis=100", "schedule.family=store_all", "model.hidden=10", "data.window=80"}) {
        const Answer refused = run_program({"train", "a/config.toml", "--out", "d", "--set", setting}, place.path());
        BOOST_TEST_CONTEXT(setting << ": " << refused.err) BOOST_CHECK_EQUAL(refused.code, 2);
    }
}

// A stream of T = 23 steps in windows of 5: 5 5 5 5 3.
BOOST_AUTO_TEST_CASE(g02_a_resumed_run_is_the_same_run) {
    for (const char* form : {"", "look_back = 5\nlook_back_form = \"once\"\n", "look_back = 10\n"}) {
        Place place(
            small_config("updates = 6\n" + std::string(form),
                         "[optimizer]\nrate = 0.01\n[clip]\nkind = \"norm\"\nlimit = 0.25\n", "batch = 3\nwindow = 5"),
            some_text(88));
        std::string config = text_of_file(place.path() / "config.toml");
        config.replace(config.find("chunk = 3"), 9, "chunk = 5");
        write_file(place.path() / "config.toml", config);
        place.train("whole");
        BOOST_TEST((column<int>(updates(place.path() / "whole"), "steps") == std::vector<int>{5, 5, 5, 5, 3, 5}));
        for (const int first : {3, 2, 5}) {
            const std::string run = "parts" + std::to_string(first);
            place.train(run, {"train.updates=" + std::to_string(first)});
            std::vector<json> before = metrics(place.path() / run);
            before.pop_back();  // the last evaluation
            place.train(run, {}, {"--resume"});
            std::vector<json> after = metrics(place.path() / run);
            after.resize(before.size());
            BOOST_TEST((before == after));  // with their seconds: these updates were not made again
            BOOST_TEST_CONTEXT(form << " after update " << first)
            check_same_end(place.path() / "whole", place.path() / run);
        }
    }
}

// Epochs of 5 updates; a validation loss every 3, or every epoch.
BOOST_AUTO_TEST_CASE(rates_and_optimizers_of_a_configuration) {
    const Place place(small_config("updates = 12", "[optimizer]\nrate = 0.25\n", "batch = 3\nwindow = 5"),
                      some_text(88));
    const auto rates = [&](const std::string& run, const std::vector<std::string>& settings) {
        place.train(run, settings);
        return column<double>(updates(place.path() / run), "rate");
    };
    const auto config = [&](const std::string& run) { return text_of_file(place.path() / run / "config.toml"); };
    BOOST_TEST((rates("step", {"rate.law=step", "rate.factor=0.5", "optimizer.kind=adagrad"}) ==
                std::vector<double>{0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0.125, 0.0625, 0.0625}));
    BOOST_TEST(config("step").find("period = 5\n") != std::string::npos);
    BOOST_TEST(config("step").find("epsilon = 1e-10\n") != std::string::npos);
    const std::vector<double> powers = rates("powers", {"rate.law=exponential", "rate.factor=0.5", "rate.warm_up=2",
                                                        "rate.warm_up_from=0.5", "optimizer.kind=lamb"});
    BOOST_TEST((std::vector<double>(powers.begin(), powers.begin() + 5) ==
                std::vector<double>{0.125, 0.1875, 0.25, 0.125, 0.0625}));
    BOOST_TEST(config("powers").find("epsilon = 1e-06\n") != std::string::npos);
    const std::vector<double> cycle =
        rates("cycle", {"rate.law=one_cycle", "rate.shape=linear", "rate.rise=0.25", "rate.start_divisor=5",
                        "rate.end_divisor=50", "optimizer.kind=sgd"});  // up to number 2, down to the last
    for (const auto& [update, rate] : {std::pair{0, 0.05}, {1, 0.15}, {2, 0.25}, {11, 0.001}})
        BOOST_TEST(std::abs(cycle[static_cast<std::size_t>(update)] - rate) < 1e-15);
    const NewestSnapshot cycled = read_newest(place.path() / "cycle/snapshots");
    BOOST_TEST(std::get<SgdSpec>(cycled.snapshot.optimizer.rule).momentum == 0.95);
    BOOST_TEST(cycled.snapshot.find("optimizer.momentum_buffer.head.weight"));

    // No loss is a tenth of the best one: each but the first lowers the rate.
    const std::vector<std::string> plateau{"rate.law=plateau",   "rate.factor=0.5", "rate.patience=0",
                                           "rate.threshold=0.9", "rate.floor=0.05", "optimizer.kind=rmsprop",
                                           "optimizer.rate=0.25"};
    BOOST_TEST((rates("epochs", plateau) ==
                std::vector<double>{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125}));
    std::vector<std::string> often = plateau;
    often.push_back("rate.period=3");
    BOOST_TEST((rates("often", often) ==
                std::vector<double>{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625}));
    BOOST_TEST((read_newest(place.path() / "often/snapshots").snapshot.plateau.seen == 4));
    BOOST_TEST(read_newest(place.path() / "often/snapshots").snapshot.plateau.factor == 0.125);
    const auto valid_at = [&](const std::string& run) {
        std::vector<int> at;
        for (const json& line : metrics(place.path() / run))
            if (line.contains("part")) at.push_back(line.at("update").get<int>());
        return at;
    };
    BOOST_TEST((valid_at("often") == std::vector<int>{3, 6, 9, 12}));
}

BOOST_AUTO_TEST_CASE(a_plateau_outlives_its_process) {
    const Place place(small_config("updates = 12",
                                   "[optimizer]\nrate = 0.25\n[rate]\nlaw = \"plateau\"\nfactor = 0.5\npatience = 0\n"
                                   "threshold = 0.5\nperiod = 3\ncooldown = 1\n",
                                   "batch = 3\nwindow = 5"),
                      some_text(88));
    place.train("whole");
    const fs::path whole = place.path() / "whole";
    for (const int first : {2, 3, 5, 6, 10}) {
        const std::string run = "cut" + std::to_string(first);
        // How often is evaluated besides may change, and changes nothing.
        place.train(run, {"train.updates=" + std::to_string(first), "output.eval_every=2"});
        place.train(run, {}, {"--resume"});
        BOOST_TEST_CONTEXT("after update " << first) {
            check_same_end(whole, place.path() / run);
            BOOST_TEST((read_newest(whole / "snapshots").snapshot.plateau ==
                        read_newest(place.path() / run / "snapshots").snapshot.plateau));
        }
    }
}

// A signal while the loss that the rate waits for is computed leaves a snapshot without it: the resumed run makes up.
BOOST_AUTO_TEST_CASE(an_interrupted_evaluation_is_made_up_for) {
    const Place place(small_config("updates = 4",
                                   "[rate]\nlaw = \"plateau\"\nfactor = 0.5\npatience = 0\n"
                                   "threshold = 0.9\nperiod = 1\n"));
    place.train("whole");
    place.train("run", {"train.updates=2"});
    const fs::path run = place.path() / "run";
    Snapshot left = read_newest(run / "snapshots").snapshot;
    BOOST_TEST(left.plateau.seen == 2);
    --left.plateau.seen;
    left.plateau.factor = 1.0;
    save_snapshot(run / "snapshots", left);
    std::string lines;
    for (const json& line : metrics(run))
        if (line.at("update") == 1 || !line.contains("part")) lines += line.dump() + "\n";
    write_file(run / "metrics.jsonl", lines);
    place.train("run", {}, {"--resume"});
    check_same_end(place.path() / "whole", run);
    BOOST_TEST(metrics(run).size() == 8U);
    BOOST_TEST((read_newest(run / "snapshots").snapshot.plateau ==
                read_newest(place.path() / "whole/snapshots").snapshot.plateau));
    BOOST_TEST(read_newest(run / "snapshots").snapshot.plateau.factor == 0.125);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_has_nothing_twice) {
    const Place place;
    place.train("a", {"train.updates=4", "output.snapshot_every=3"});
    // As if killed after update 4 and before its snapshot, in the middle of a line.
    fs::remove(place.path() / "a/snapshots/snapshot-000000004.safetensors");
    std::ofstream(place.path() / "a/metrics.jsonl", std::ios::app) << R"({"update":5,"lo)";
    place.train("a", {}, {"--resume"});
    place.train("b");
    check_same_end(place.path() / "a", place.path() / "b");
    // Nothing is left to do, and with a lower limit less than nothing: the folder stays as it is.
    const std::string config = text_of_file(place.path() / "a/config.toml"),
                      log = text_of_file(place.path() / "a/metrics.jsonl");
    for (const char* limit : {"train.updates=6", "train.updates=2"}) {
        const Answer idle = place.train("a", {limit}, {"--resume"});
        BOOST_TEST(idle.says("nothing is left to do"));
        BOOST_TEST(idle.out.find("last loss") == std::string::npos);
        BOOST_TEST(idle.out.find("6 updates") == 0u);
        BOOST_TEST(!place.train("a", {limit}, {"--resume", "--json"}).json().contains("loss"));
    }
    BOOST_CHECK_EQUAL(text_of_file(place.path() / "a/config.toml"), config);
    BOOST_CHECK_EQUAL(text_of_file(place.path() / "a/metrics.jsonl"), log);
    check_same_end(place.path() / "a", place.path() / "b");
    // A damaged newest snapshot is named, and the one before it serves.
    place.train("c", {"output.snapshot_every=3"});
    fs::resize_file(place.path() / "c/snapshots/snapshot-000000006.safetensors", 1000);
    const Answer warned = place.train("c", {}, {"--resume"});
    BOOST_TEST(warned.says("a damaged snapshot is passed over"));
    check_same_end(place.path() / "c", place.path() / "b");
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_threads) {
    const Place place;
    place.train("one");
    place.train("two", {"train.threads=2"});
    place.train("three", {"train.threads=3"});
    check_same_end(place.path() / "one", place.path() / "two");
    check_same_end(place.path() / "one", place.path() / "three");
}

// T = 103, k = 25. The rate is so small that no parameter changes.
BOOST_AUTO_TEST_CASE(g09_windows_of_truncated_bptt) {
    const std::string still = "[optimizer]\nkind = \"sgd\"\nrate = 1e-300\n",
                      train = "epochs = 1\nprecision = \"double\"";
    const auto config = [&](const std::string& window) {
        std::string text = small_config(train, still, "batch = 1" + window);
        text.replace(text.find("[80, 10, 10]"), 12, "[100, 0, 0]");
        text.replace(text.find("chunk = 3"), 9, "chunk = 5");
        return text;
    };
    const std::string text = some_text(104);
    const Place place(config("\nwindow = 25"), text);
    place.train("file", {"output.snapshot_every=1", "output.keep=9"});
    const std::vector<json> log = updates(place.path() / "file");
    BOOST_TEST((column<int>(log, "steps") == std::vector<int>{25, 25, 25, 25, 3}));
    BOOST_TEST((column<int>(log, "first") == std::vector<int>{0, 25, 50, 75, 100}));

    write_file(place.path() / "config.toml", config(""));
    place.train("command_line", {"data.window=25"});
    BOOST_TEST((updates(place.path() / "command_line") == log));

    const auto bytes = std::make_shared<const ByteText>(place.path() / "text.txt");
    const Vocabulary vocabulary(bytes->bytes());
    const TextSource<double> source(bytes, {0, 104}, vocabulary, 1, 25);
    ModelSpec model;
    model.layers = {EmbeddingSpec{"embedding", vocabulary.size(), 3, {}}, RecurrentSpec{"rnn", 3, 9, 2, true},
                    DenseSpec{"head", 9, vocabulary.size(), true}};
    TrainOptions options;
    options.chunk = 5;
    options.seed = 4;
    options.optimizer.rule = SgdSpec{};
    options.rate.peak = 1e-300;
    const Network<double> network = build<double>(model);
    Trainer<double> trainer(network, source, options);
    for (const json& line : log) {
        const UpdateReport report = trainer.update();
        BOOST_CHECK_EQUAL(report.first, line.at("first").get<Index>());
        BOOST_CHECK_EQUAL(report.steps, line.at("steps").get<Index>());
        BOOST_CHECK_EQUAL(report.loss, line.at("loss").get<double>());
        BOOST_CHECK_EQUAL(report.gradient_norm, line.at("gradient_norm").get<double>());
    }

    // The state goes on: it is that of one full forward, here after 100 of the steps, and so is the loss of the whole.
    place.train("full", {"data.window=100", "output.snapshot_every=1", "output.keep=9"});
    const auto carry = [&](const char* run, const char* update) {
        return read_snapshot(place.path() / run / "snapshots" /
                             ("snapshot-00000000" + std::string(update) + ".safetensors"))
            .find("carry.micro0.shard0")
            ->values<double>();
    };
    const std::vector<double> a = carry("file", "4"), b = carry("full", "1");
    BOOST_TEST_REQUIRE(a.size() == b.size());
    double worst = 0.0, largest = 0.0, sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k)
        worst = std::max(worst, std::abs(a[k] - b[k])), largest = std::max(largest, std::abs(a[k]));
    BOOST_TEST(worst <= 1e-13);
    BOOST_TEST(largest > 1e-3);
    place.train("one_window", {"data.window=500"});
    for (const json& line : log) sum += line.at("loss").get<double>() * line.at("positions").get<double>();
    const json whole = updates(place.path() / "one_window").at(0);
    BOOST_CHECK_EQUAL(whole.at("steps").get<int>(), 103);
    BOOST_TEST(std::abs(sum / 103.0 - whole.at("loss").get<double>()) <= 1e-13);
}

BOOST_AUTO_TEST_CASE(loss_of_eval_is_loss_of_training) {
    const Place place(
        small_config("updates = 3", "[output]\nsnapshot_every = 1\nkeep = 5\n", "batch = 5\nwindow = 1000"));
    place.train("run");
    const std::vector<double> losses = column<double>(updates(place.path() / "run"), "loss");
    for (const std::size_t update : {1u, 2u}) {
        const Answer answer =
            run_program({"eval", "run/snapshots/snapshot-00000000" + std::to_string(update) + ".safetensors", "--part",
                         "train", "--json"},
                        place.path());
        BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
        BOOST_CHECK_EQUAL(answer.json().at("train").at("loss").get<double>(), losses[update]);
    }
    const json report = run_program({"eval", "run", "--json"}, place.path()).json();
    BOOST_CHECK_EQUAL(report.at("snapshot").get<std::string>(), "run/snapshots/snapshot-000000003.safetensors");
    // The run's own last evaluation, the folder and its newest snapshot say the same.
    const json valid = metrics(place.path() / "run").back();
    const json of_run = run_program({"eval", "run", "--json"}, place.path()).json();
    BOOST_CHECK_EQUAL(valid.at("part").get<std::string>(), "valid");
    BOOST_CHECK_EQUAL(of_run.at("valid").at("loss").get<double>(), valid.at("loss").get<double>());
    const double nats = of_run.at("test").at("loss").get<double>();
    BOOST_TEST(std::abs(of_run.at("test").at("bits_per_character").get<double>() - nats / std::numbers::ln2) <=
               1e-15 * nats);
}

BOOST_AUTO_TEST_CASE(samples) {
    const Place place(small_config("updates = 60", "[optimizer]\nrate = 0.02\n", "batch = 5\nwindow = 40"));
    place.train("run");
    const auto said = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"sample", "run", "--bytes", "200", "--prompt", "the "});
        const Answer answer = run_program(more, place.path());
        BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
        return answer.out;
    };
    const std::string a = said({"--seed", "3"});
    BOOST_CHECK_EQUAL(a.size(), 4u + 200u + 1u);
    BOOST_CHECK_EQUAL(a, said({"--seed", "3"}));
    BOOST_TEST(a != said({"--seed", "4"}));
    BOOST_CHECK_EQUAL(said({"--temperature", "0"}), said({"--temperature", "0", "--seed", "9"}));
    BOOST_TEST(said({"--temperature", "0"}).find("tape") !=
               std::string::npos);  // it has learnt the only word that follows
    const Answer foreign = run_program({"sample", "run", "--prompt", "Q"}, place.path());
    BOOST_CHECK_EQUAL(foreign.code, 2);
    BOOST_TEST(foreign.says("0x51"));
}

// The loss of a model with one LSTM of zero parameters is that of outputs 0: every option shows in its first value.
BOOST_AUTO_TEST_CASE(cells_dropout_and_windows) {
    const Place place;
    int number = 0;
    for (const std::vector<std::string>& settings :
         {std::vector<std::string>{"model.kind=gru", "model.layer_norm=true", "model.layers=2", "model.dropout=0.2"},
          {"model.kind=rnn_relu", "model.start=identity", "model.output_dropout=0.3", "model.locked=true"},
          {"model.kind=rnn_tanh", "model.start=orthogonal", "model.heads=3", "model.learned_state=true"},
          {"model.projection=4", "model.forget_bias=1.5", "model.weight_drop=0.3", "model.input_dropout=0.1"},
          {"model.embedding=9", "model.tied=true", "train.windows=normal", "train.window_deviation=2"},
          {"train.windows=artbp", "train.chunk=2", "train.window_tail=0", "train.window_longest=40"}}) {
        // Twelve updates, and six with six more by another process.
        const std::string whole = "whole" + std::to_string(number), parts = "parts" + std::to_string(number++);
        std::vector<std::string> first = settings, second = settings;
        first.emplace_back("train.updates=12");
        second.emplace_back("train.updates=6");
        place.train(whole, first);
        place.train(parts, second);
        place.train(parts, first, {"--resume"});
        BOOST_TEST_CONTEXT(settings.front()) check_same_end(place.path() / whole, place.path() / parts);
        BOOST_CHECK_EQUAL(run_program({"eval", whole}, place.path()).code, 0);
        BOOST_CHECK_EQUAL(run_program({"sample", whole, "--bytes", "9"}, place.path()).code, 0);
    }
    // Windows of random length have their own steps, one behind the other.
    const std::vector<json> normal = updates(place.path() / "whole4"), artbp = updates(place.path() / "whole5");
    for (const auto& lines : {normal, artbp}) {
        const auto firsts = column<int>(lines, "first"), steps = column<int>(lines, "steps");
        for (std::size_t k = 1; k < firsts.size(); ++k)
            BOOST_TEST((firsts[k] == firsts[k - 1] + steps[k - 1] || firsts[k] == 0));
        BOOST_TEST((std::adjacent_find(steps.begin(), steps.end(), std::not_equal_to<>()) != steps.end()));
    }
}

BOOST_AUTO_TEST_CASE(epochs_of_random_windows) {
    const Place place(small_config("epochs = 2"));
    int number = 0;
    for (const std::vector<std::string>& settings :
         {std::vector<std::string>{"train.windows=normal", "train.window_half=1", "train.window_deviation=0",
                                   "train.window_shortest=2"},
          {"train.windows=artbp", "train.chunk=1"}}) {
        std::vector<std::string> all = settings;
        all.insert(all.end(), {"model.bias=false", "optimizer.weight_decay=0.1"});
        const std::string run = "epochs" + std::to_string(number++);
        BOOST_CHECK_EQUAL(place.train(run, all, {"--json"}).json().at("epochs").get<int>(), 2);
        const auto firsts = column<int>(updates(place.path() / run), "first");
        BOOST_CHECK_EQUAL(std::count(firsts.begin(), firsts.end(), 0), 2);
    }
    const Answer answer = run_program({"train", "config.toml", "--out", "none", "--set", "train.windows=normal", "--set", "rate.law=cosine"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.err.find("rate.length") != std::string::npos, answer.err);
}

BOOST_AUTO_TEST_CASE(model_keys_without_effect_are_refused) {
    const Place place;
    const auto refused = [&](const std::vector<std::string>& settings, const char* words) {
        std::vector<std::string> line{"train", "config.toml", "--out", "none"};
        for (const std::string& s : settings) line.insert(line.end(), {"--set", s});
        const Answer answer = run_program(line, place.path());
        BOOST_CHECK_EQUAL(answer.code, 2);
        BOOST_TEST(answer.err.find(words) != std::string::npos, answer.err);
        BOOST_TEST(!fs::exists(place.path() / "none"));
    };
    refused({"model.kind=gru", "model.projection=3"}, "'model.projection' has no effect");
    refused({"model.kind=rnn_tanh", "model.layer_norm=true"}, "'model.layer_norm' has no effect");
    refused({"model.kind=gru", "model.forget_bias=1"}, "'model.forget_bias' has no effect");
    refused({"model.layers=1", "model.dropout=0.5"}, "'model.dropout' has no effect");
    refused({"model.locked=true"}, "'model.locked' has no effect");
    refused({"model.checksum=crc32:0"}, "'model.checksum' has no effect");
    refused({"train.window_half=0.1"}, "'train.window_half' has no effect");
    refused({"train.windows=normal", "train.window_tail=5"}, "'train.window_tail' has no effect");
    refused({"train.windows=artbp", "train.window_tail=2"}, "tail must be above 3");
    refused({"train.windows=normal", "train.look_back=6"}, "look_back");
    refused({"train.carry=false", "train.windows=normal"}, "'train.windows' has no effect");
    refused({"model.heads=2"}, "heads must divide hidden");
    refused({"model.weights=none.safetensors"}, "none.safetensors");
    refused({"model.kind=gru2"}, "model.kind");
    refused({"loss.ignore_index=999"}, "there are");
    refused({"train.windows=artbp", "train.chunk=1", "rate.law=step", "rate.factor=0.5"}, "rate.period");
}

BOOST_AUTO_TEST_CASE(info_lists_layers) {
    const Place place;
    const Answer text = run_program({"info", "config.toml", "--set", "model.layers=2", "--set", "model.dropout=0.5"}, place.path());
    BOOST_CHECK_EQUAL(text.code, 0);
    for (const char* words : {"rnn, layer 0", "rnn, dropout 0", "rnn, layer 1", "head", "cross_entropy", "parameters", "tape bytes"})
        BOOST_TEST(text.out.find(words) != std::string::npos, words);
    const json info = run_program({"info", "config.toml", "--json", "--set", "model.kind=gru", "--set", "train.precision=double"}, place.path()).json();
    const json& rnn = info.at("layers").at(1);
    const int hidden = 9, inputs = info.at("layers").at(0).at("outputs").get<int>();
    BOOST_CHECK_EQUAL(rnn.at("parameters").get<int>(), 3 * hidden * (inputs + hidden + 2));
    BOOST_CHECK_EQUAL(rnn.at("parameter_names").at(0).get<std::string>(), "rnn.weight_ih_l0");
    BOOST_CHECK_EQUAL(rnn.at("bytes").at("carry").get<int>(), 8 * hidden * info.at("batch").get<int>());
    // The sums are what the plan counts: a state is the carry of all layers.
    const json plan = run_program({"plan", "config.toml", "--json"}, place.path()).json();
    BOOST_TEST(plan.contains("candidates"));
    BOOST_CHECK_EQUAL(run_program({"info", "none.toml"}, place.path()).code, 2);
    BOOST_CHECK_EQUAL(run_program({"info", "config.toml", "--set", "train.micro_batches=64"}, place.path()).code, 2);
}

BOOST_AUTO_TEST_CASE(weights_go_out_and_in) {
    const Place place;
    place.train("first");
    BOOST_CHECK_EQUAL(run_program({"export", "first", "w.safetensors"}, place.path()).code, 0);
    place.train("second", {"model.weights=w.safetensors", "optimizer.rate=1e-300", "train.updates=1"});
    const auto weights = [&](const char* run) {
        auto all = tensors(place.path() / run);
        std::erase_if(all, [](const auto& item) { return item.first.find("optimizer.") == 0 || item.first.find("carry.") == 0; });
        return all;
    };
    BOOST_TEST((weights("first") == weights("second")));
    // A resumed run wants the file no more; a new one of that configuration wants this very file.
    write_file(place.path() / "w.safetensors", "changed");
    place.train("second", {"model.weights=w.safetensors", "optimizer.rate=1e-300", "train.updates=2"}, {"--resume"});
    const Answer changed = run_program({"train", "second/config.toml", "--out", "third"}, place.path());
    BOOST_CHECK_EQUAL(changed.code, 2);
    BOOST_TEST(changed.err.find("have changed") != std::string::npos, changed.err);
    const Answer damaged = run_program({"train", "config.toml", "--out", "fourth", "--set", "model.weights=w.safetensors"}, place.path());
    BOOST_CHECK_EQUAL(damaged.code, 2);
    BOOST_TEST(!fs::exists(place.path() / "fourth"));
    BOOST_CHECK_EQUAL(run_program({"export", "first", "."}, place.path()).code, 2);
    BOOST_CHECK_EQUAL(run_program({"export", "none", "x.safetensors"}, place.path()).code, 2);
}

BOOST_AUTO_TEST_CASE(losses_and_their_options) {
    const std::string made = "[data]\nkind = \"adding\"\nwindow = 4\nbatch = 8\nwindows = 3\n[model]\nhidden = 3\n"
                             "[train]\nupdates = 3\nprecision = \"double\"\n";
    const auto first_loss = [](const std::string& config, const std::vector<std::string>& settings) {
        const Place place(config);
        place.train("run", settings);
        const json line = updates(place.path() / "run").front();
        BOOST_TEST(line.at("loss").get<double>() >= 0.0);
        // The resolved file gives the same run.
        const Place again(text_of_file(place.path() / "run" / "config.toml"));
        again.train("run");
        BOOST_CHECK_EQUAL(updates(again.path() / "run").front().at("loss").dump(), line.at("loss").dump());
        return line;
    };
    const auto loss_of = [&](const std::vector<std::string>& settings) {
        return first_loss(made, settings).at("loss").get<double>();
    };
    const double squares = loss_of({}), huge = loss_of({"loss.kind=huber", "loss.delta=1000"});
    BOOST_TEST(std::abs(loss_of({"loss.reduction=sum"}) - 8.0 * squares) < 1e-12);
    BOOST_TEST(std::abs(huge - squares / 2.0) < 1e-14);
    const double smooth = loss_of({"loss.kind=smooth_l1", "loss.beta=1000"}), l1 = loss_of({"loss.kind=l1"});
    BOOST_TEST(std::abs(smooth - squares / 2000.0) < 1e-16);
    BOOST_TEST(std::abs(loss_of({"loss.kind=smooth_l1", "loss.beta=0"}) - l1) < 1e-15);
    BOOST_TEST(l1 * l1 <= squares);
    const double gaussian = loss_of({"loss.kind=gaussian_nll", "loss.epsilon=1000"}),
                 full = loss_of({"loss.kind=gaussian_nll", "loss.epsilon=1000", "loss.full=true"});
    // The head's mean starts as the one output of the others does, and no variance comes near 1000.
    BOOST_TEST(std::abs(gaussian - std::log(1000.0) / 2.0 - squares / 2000.0) < 1e-14);
    BOOST_TEST(std::abs(full - gaussian - std::log(2.0 * std::numbers::pi) / 2.0) < 1e-14);

    const std::string copied = "[data]\nkind = \"copy\"\ndelay = 3\nlength = 2\nsymbols = 4\nbatch = 4\n[model]\nhidden "
                               "= 3\n[train]\nupdates = 2\nprecision = \"double\"\n";
    const json all = first_loss(copied, {}), symbols = first_loss(copied, {"loss.ignore_index=4"}),
               weighted = first_loss(copied, {"loss.class_weights=[1,1,1,1,0]"});
    BOOST_CHECK_EQUAL(all.at("positions").get<double>(), 28.0);
    BOOST_CHECK_EQUAL(symbols.at("positions").get<double>(), 8.0);
    BOOST_TEST(std::abs(weighted.at("loss").get<double>() - symbols.at("loss").get<double>()) < 1e-15);
    BOOST_TEST(first_loss(copied, {"loss.label_smoothing=0.2"}).at("loss").get<double>() != all.at("loss").get<double>());

    // Bits per character are told of the plain loss of bytes only.
    const Place text;
    text.train("plain");
    text.train("smooth", {"loss.label_smoothing=0.2"});
    BOOST_TEST(updates(text.path() / "plain").front().contains("bits_per_character"));
    BOOST_TEST(!updates(text.path() / "smooth").front().contains("bits_per_character"));
}

BOOST_AUTO_TEST_CASE(made_sequences) {
    const Place adding(
        "[data]\nkind = \"adding\"\nwindow = 20\nbatch = 6\nwindows = 40\n[model]\nhidden = 10\n[train]\nupdates = "
        "5\nchunk = 8\n");
    const json report = adding.train("run", {}, {"--json"}).json();
    BOOST_TEST(!report.contains("bits_per_character"));
    BOOST_CHECK_EQUAL(report.at("valid").at("windows").get<int>(), 4);
    const Place copy(
        "[data]\nkind = \"copy\"\ndelay = 12\nlength = 3\nbatch = 4\n[model]\nhidden = 10\n[train]\nupdates = 5\nchunk "
        "= 8\n");
    BOOST_CHECK_EQUAL(copy.train("run", {}, {"--json"}).json().at("steps").get<int>(), 18);
    BOOST_CHECK_EQUAL(run_program({"sample", "run"}, copy.path()).code, 2);
}

BOOST_AUTO_TEST_CASE(an_interrupted_run_writes_a_snapshot) {
    for (const int signal : {SIGINT, SIGTERM}) {
        const Place place(small_config("updates = 100000000"));
        const pid_t program = start_program({"train", "config.toml", "--out", "run"}, place.path());
        while (!fs::exists(place.path() / "run/metrics.jsonl") ||
               fs::file_size(place.path() / "run/metrics.jsonl") < 1000)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ::kill(program, signal);
        BOOST_CHECK_EQUAL(end_of(program), 128 + signal);
        BOOST_TEST(text_of_file(place.path() / "err").find("interrupted after update") != std::string::npos);
        const Index reached = read_newest(place.path() / "run/snapshots").snapshot.update;
        BOOST_CHECK_EQUAL(static_cast<Index>(updates(place.path() / "run").size()), reached);
        place.train("run", {"train.updates=" + std::to_string(reached + 2)}, {"--resume"});
        place.train("whole", {"train.updates=" + std::to_string(reached + 2)});
        check_same_end(place.path() / "run", place.path() / "whole");
    }
}

BOOST_AUTO_TEST_CASE(a_failed_run_says_where) {
    const Place place(
        small_config("updates = 60", "[optimizer]\nkind = \"sgd\"\nrate = 1e38\n[output]\nsnapshot_every = 1\n"));
    const Answer answer = run_program({"train", "config.toml", "--out", "run"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 1);
    BOOST_TEST(answer.says("layer"));
    BOOST_TEST(!snapshots(place.path() / "run/snapshots").empty());
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_before_its_first_snapshot_leaves_one) {
    const Place place(small_config("updates = 60", "[optimizer]\nkind = \"sgd\"\nrate = 1e38\n"));
    const Answer answer = run_program({"train", "config.toml", "--out", "run"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 1);
    const NewestSnapshot left = read_newest(place.path() / "run/snapshots");
    BOOST_TEST(answer.says(left.path.filename().string()));
    BOOST_CHECK_EQUAL(static_cast<Index>(updates(place.path() / "run").size()), left.snapshot.update);
    BOOST_TEST(left.snapshot.update > 0);
}

BOOST_AUTO_TEST_CASE(an_interrupted_evaluation_ends_at_once) {
    for (const std::string every : {"0", "1"}) {
        const Place place(small_config("updates = 1\nthreads = 2", "[output]\neval_every = " + every + "\n"),
                          some_text(8000000));
        const pid_t program = start_program(
            {"train", "config.toml", "--out", "run", "--set", "data.split=[1,99,0]", "--set", "model.hidden=40"},
            place.path());
        while (updates_begun(place.path() / "run") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ::kill(program, SIGINT);
        BOOST_TEST_CONTEXT("eval_every " << every) {
            BOOST_CHECK_EQUAL(end_of(program), 128 + SIGINT);
            BOOST_CHECK_EQUAL(read_newest(place.path() / "run/snapshots").snapshot.update, 1);
            BOOST_CHECK_EQUAL(metrics(place.path() / "run").size(), 1u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_run_has_one_process) {
    const Place place(small_config("updates = 100000000"));
    const pid_t first = start_program({"train", "config.toml", "--out", "run"}, place.path());
    while (updates_begun(place.path() / "run") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Answer second = run_shell("\"$BACKSWEEP_PROGRAM\" train config.toml --out run --resume", place.path());
    BOOST_CHECK_EQUAL(second.code, 2);
    BOOST_TEST(second.says("another process is training in"));
    BOOST_CHECK_EQUAL(::kill(first, SIGINT), 0);
    BOOST_CHECK_EQUAL(end_of(first), 128 + SIGINT);
    const Index reached = read_newest(place.path() / "run/snapshots").snapshot.update;
    place.train("run", {"train.updates=" + std::to_string(reached + 1)}, {"--resume"});  // nobody has it now
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_said) {
    const Place place;
    place.train("run");
    for (const char* words :
         {"plan config.toml", "plan --steps 5", "keys", "version", "eval run", "sample run --bytes 5", "--help"}) {
        const Answer answer = run_shell("\"$BACKSWEEP_PROGRAM\" " + std::string(words) + " >/dev/full", place.path());
        BOOST_TEST_CONTEXT(words << ": " << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 1);
            BOOST_TEST(answer.says("No space left on device"));
        }
    }
    const Answer limited =
        run_shell("ulimit -f 4; \"$BACKSWEEP_PROGRAM\" train config.toml --out limited", place.path());
    BOOST_TEST_CONTEXT(limited.err) BOOST_CHECK_EQUAL(limited.code, 1);
    BOOST_TEST(limited.says("File too large"));
    BOOST_TEST(limited.says("limited/"));
}

BOOST_AUTO_TEST_CASE(a_limit_of_seconds) {
    const Place place(small_config("seconds = 0.3\nupdates = 1000000000"));
    const double seconds = place.train("run", {}, {"--json"}).json().at("seconds").get<double>();
    BOOST_TEST(seconds >= 0.3);
}

BOOST_AUTO_TEST_CASE(plans) {
    // With a head in blocks the whole text would fit.
    const Place place(small_config("updates = 6", "[loss]\nsave = \"logits\"\n[memory]\ntime_axis = \"20 kB\"",
                                   "batch = 5\nwindow = 96"));
    const Answer answer = run_program({"plan", "config.toml", "--measure", "1", "--json"}, place.path());
    BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
    const json report = answer.json();
    BOOST_CHECK_EQUAL(report.at("limits").at("time_axis").get<int>(), 20000);
    int chosen = 0;
    double cost = 0.0;
    for (const json& row : report.at("candidates")) {
        BOOST_TEST_CONTEXT(row.dump(1)) {
            for (const char* key : {"schedule", "steps", "advances", "recorded", "seconds"})
                BOOST_TEST(row.contains(key), key);
            BOOST_TEST((row.at("bytes").at("predicted") == row.at("bytes").at("measured")));
            BOOST_TEST((row.at("bytes").at("predicted").at("time_axis").get<int>() <= 20000) ==
                       row.at("fits").get<bool>());
            BOOST_TEST(row.at("slowdown").get<double>() >= cost);
            cost = row.at("slowdown").get<double>();
            chosen += row.at("chosen").get<bool>() ? 1 : 0;
        }
    }
    BOOST_CHECK_EQUAL(chosen, 1);
    BOOST_TEST(!report.at("candidates").at(0).at("fits").get<bool>());  // what takes the least time
    const Answer text = run_program({"plan", "config.toml"}, place.path());
    BOOST_CHECK_EQUAL(text.code, 0);
    BOOST_TEST(text.out.find("* ") != std::string::npos);
    BOOST_CHECK_EQUAL(run_program({"plan", "config.toml", "--set", "memory.time_axis=10"}, place.path()).code, 2);
    BOOST_CHECK_EQUAL(run_program({"plan", "config.toml", "--steps", "4"}, place.path()).code, 2);

    // The short names say what the keys say; a picture has a point for every plan.
    const json limited = run_program({"plan", "config.toml", "--memory", "100 kB", "--disk", "1 MB", "--json", "--plot", "front.svg"},
                                     place.path()).json();
    BOOST_CHECK_EQUAL(limited.at("limits").at("total").get<int>(), 100000);
    BOOST_CHECK_EQUAL(limited.at("limits").at("disk").get<int>(), 1000000);
    const std::string picture = text_of_file(place.path() / "front.svg");
    std::size_t points = 0;
    for (std::size_t at = picture.find("<circle class="); at != std::string::npos; at = picture.find("<circle class=", at + 1)) ++points;
    BOOST_CHECK_EQUAL(points, limited.at("candidates").size());
    BOOST_TEST(picture.find("class=\"chosen\"") != std::string::npos);
    // The largest that fits does, one more does not; too little is said in words.
    for (const auto& [what, key] : {std::pair{"T", "data.window"}, std::pair{"B", "data.batch"}}) {
        const json fit = run_program({"plan", "config.toml", "--memory", "100 kB", "--fit", what, "--json"}, place.path()).json();
        BOOST_CHECK_EQUAL(fit.at("key").get<std::string>(), key);
        const Index largest = fit.at("largest").get<Index>();
        const auto code = [&, key = std::string(key)](Index value) {
            return run_program({"plan", "config.toml", "--memory", "100 kB", "--set", key + "=" + std::to_string(value)}, place.path()).code;
        };
        BOOST_CHECK_EQUAL(code(largest), 0);
        BOOST_CHECK_EQUAL(code(largest + 1), 2);
    }
    const Answer none = run_program({"plan", "config.toml", "--memory", "1 kB"}, place.path());
    BOOST_CHECK_EQUAL(none.code, 2);
    for (const char* words : {"nothing fits: ram: needs", "The least that works is", "parameters"}) BOOST_TEST(none.says(words), words);
    BOOST_CHECK_EQUAL(run_program({"plan", "config.toml", "--fit", "T", "--measure", "1"}, place.path()).code, 2);
    BOOST_CHECK_EQUAL(run_program({"plan", "--steps", "5", "--fit", "T"}, place.path()).code, 2);
}

BOOST_AUTO_TEST_CASE(a_run_under_a_limit_is_planned_whole_and_goes_on_in_the_middle) {
    const Place place(small_config("updates = 6", "[memory]\nlimit = \"150 kB\"\ndisk = \"1 MB\"\ncommit_links = 2", "batch = 5\nwindow = 96"));
    const json whole = place.train("whole", {}, {"--json"}).json();
    BOOST_TEST((whole.at("bytes").at("predicted") == whole.at("bytes").at("measured")));
    BOOST_TEST(whole.at("bytes").at("measured").at("total").get<int>() <= 150000);
    BOOST_TEST(fs::is_empty(place.path() / "whole" / "scratch"));
    place.train("again", {"memory.commit_links=1"});
    check_same_end(place.path() / "whole", place.path() / "again");
    const json calibrated = place.train("measured", {}, {"--calibrate", "--json"}).json();
    BOOST_TEST(calibrated.at("measured_costs").get<bool>());
    BOOST_TEST(text_of_file(place.path() / "measured" / "manifest.json").find("\"measured\": true") != std::string::npos);
}

// The head's logits kept, in blocks, and as the planner likes: one end, which is evaluated, sampled and resumed.
BOOST_AUTO_TEST_CASE(a_head_in_blocks_has_the_same_end) {
    const Place place(small_config());
    place.train("kept", {"loss.save=logits"});
    place.train("blocks", {"loss.save=nothing"});
    place.train("short", {"memory.time_axis=6000", "model.save=everything"});
    const auto pinned = [&](const char* run) { return text_of_file(place.path() / run / "config.toml"); };
    BOOST_TEST(pinned("kept").find("no logits") == std::string::npos);
    BOOST_TEST(pinned("blocks").find("save = \"everything, no logits\"") != std::string::npos);
    BOOST_TEST(pinned("short").find("save = \"everything, no logits\"") != std::string::npos);
    for (const char* run : {"blocks", "short"}) {
        BOOST_TEST((tensors(place.path() / "kept") == tensors(place.path() / run)));
        for (const auto& words : {std::vector<std::string>{"eval", run, "--json"},
                                  {"sample", run, "--prompt", "a", "--bytes", "30", "--json"}}) {
            std::vector<std::string> kept = words;
            kept[1] = "kept";
            Answer one = run_program(words, place.path()), other = run_program(kept, place.path());
            BOOST_TEST_CONTEXT(one.err) BOOST_CHECK_EQUAL(one.code, 0);
            BOOST_CHECK_EQUAL(other.code, 0);
            json a = one.json(), b = other.json();
            for (json* j : {&a, &b}) j->erase("snapshot");
            BOOST_CHECK_EQUAL(a.dump(), b.dump());
        }
    }
    place.train("kept", {"loss.save=logits", "train.updates=9"}, {"--resume"});
    place.train("blocks", {"loss.save=nothing", "train.updates=9"}, {"--resume"});
    check_same_end(place.path() / "kept", place.path() / "blocks");
    write_file(place.path() / "adding.toml",
               "[data]\nkind = \"adding\"\n[train]\nupdates = 1\n[loss]\nsave = \"nothing\"\n");
    const Answer idle = run_program({"plan", "adding.toml"}, place.path());
    BOOST_CHECK_EQUAL(idle.code, 2);
    BOOST_TEST(idle.says("'loss.save' has no effect"));
}

BOOST_AUTO_TEST_CASE(the_manual_has_the_table_of_keys) {
    const Scratch scratch;
    const Answer keys = run_program({"keys"}, scratch.path());
    BOOST_CHECK_EQUAL(keys.code, 0);
    BOOST_TEST(text_of_file(source_dir() / "docs/program.md").find(keys.out) != std::string::npos,
               "docs/program.md is not up to date: put the output of `backsweep keys` there");
    BOOST_TEST(run_program({"version"}, scratch.path()).out.find("backsweep 0.") == 0u);
    BOOST_TEST(run_program({"version", "--json"}, scratch.path()).json().contains("compiler"));
}
