// What cannot be used is refused: exit code 2, a message that names it, and nothing is written.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_bad_input
#include "support/unit_test.hpp"

#include "cli/program.hpp"

#include <algorithm>

using namespace backsweep::test;

namespace {

/// Refuses `train config.toml`, saying all of `words`, and leaves no run.
void check_refused(const std::string& config, const std::vector<std::string>& words,
                   const std::vector<std::string>& more = {}, const std::string& text = some_text(2000)) {
    const Scratch scratch;
    write_file(scratch.path() / "config.toml", config);
    write_file(scratch.path() / "text.txt", text);
    std::vector<std::string> arguments{"train", "config.toml", "--out", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Answer answer = run_program(arguments, scratch.path());
    BOOST_TEST_CONTEXT(config << "\n" << answer.err) {
        BOOST_CHECK_EQUAL(answer.code, 2);
        for (const std::string& word : words) BOOST_TEST(answer.says(word), "the message does not say: " << word);
        BOOST_TEST(!fs::exists(scratch.path() / "run"));
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(missing_files) {
    const Scratch scratch;
    const Answer answer = run_program({"train", "nowhere.toml"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.says("nowhere.toml"));
    write_file(scratch.path() / "config.toml", small_config());
    const Answer no_data = run_program({"train", "config.toml", "--out", "run"}, scratch.path());
    BOOST_CHECK_EQUAL(no_data.code, 2);
    BOOST_TEST(no_data.says("text.txt"));
    BOOST_TEST(no_data.says("No such file"));
    BOOST_TEST(!fs::exists(scratch.path() / "run"));
    for (const char* command : {"eval", "sample"}) {
        const Answer no_run = run_program({command, "run"}, scratch.path());
        BOOST_CHECK_EQUAL(no_run.code, 2);
        BOOST_TEST(no_run.says("'run'"));
    }
}

BOOST_AUTO_TEST_CASE(empty_and_one_byte_files) {
    check_refused(small_config(), {"text.txt", "it is empty"}, {}, "");
    check_refused(small_config(), {"text.txt", "this part has 1"}, {}, "x");
    check_refused("", {"config.toml", "is empty"});
    check_refused("x", {"config.toml:1", "no TOML"});
}

BOOST_AUTO_TEST_CASE(g32_mistyped_or_unknown_option) {
    check_refused(small_config("updates = 6", "[schedule]\nfamily = \"revolve\"\nchekpoint_slots = 5"),
                  {"config.toml:16", "unknown key 'schedule.chekpoint_slots'", "nearest known: 'schedule.slots'"});
    check_refused(small_config("updates = 6", "[schedule]\nfamily = \"revolve\"\nslots = 0"),
                  {"config.toml:16", "schedule.slots = 0", "out of range", "an integer in [1, "});
    check_refused(small_config("updates = 6", "[schedule]\nfamily = \"revolve\"\nslots = -1"),
                  {"schedule.slots = -1", "an integer in [1, "});
    check_refused(small_config("updates = 6", "", "batch = 5\nwindow = 2.5"),
                  {"config.toml:5", "data.window = 2.5", "wrong type", "an integer in [1, "});
    check_refused(small_config("updates = 6\ndevice = \"gpu\""), {"train.device = \"gpu\"", "one of: cpu"});
    check_refused(small_config(), {"--set", "unknown key 'train.window'", "nearest known: 'data.window'"},
                  {"--set", "train.window=3"});
    check_refused(small_config(), {"--set schedule.slots=0", "an integer in [1, "},
                  {"--set", "schedule.family=revolve", "--set", "schedule.slots=0"});
    check_refused(small_config(), {"'--set window'", "key=value"}, {"--set", "window"});
    const Scratch scratch;
    const Answer answer = run_program({"train", "config.toml", "--chekpoint", "5"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.says("--chekpoint"));
}

BOOST_AUTO_TEST_CASE(wrong_types_and_values) {
    check_refused(small_config("updates = \"six\""), {"train.updates = ", "six", "wrong type", "an integer in [1, "});
    check_refused(small_config("updates = 6", "[optimizer]\nbeta1 = 1.5"),
                  {"optimizer.beta1 = 1.5", "a number in [0, 1)"});
    check_refused(small_config("updates = 6", "[optimizer]\nkind = \"adamm\""), {"optimizer.kind", "sgd, adam, adamw"});
    check_refused(small_config("updates = 6", "[memory]\nlimit = \"2 miles\""), {"memory.limit", "\"2 MiB\""});
    check_refused(small_config("updates = 6", "[model.more]\nhidden = 3"), {"unknown key 'model.more.hidden'"});
    check_refused(small_config(), {"data.split", "add up to 100"}, {"--set", "data.split=[50,50,50]"});
    check_refused(small_config("updates = 6", "[clip]\nkind = \"norm\""), {"'clip.limit' is missing"});
    check_refused(small_config("updates = 6", "[rate]\nlaw = \"step\""), {"'rate.factor' is missing"});
    check_refused(small_config("updates = 6", "[rate]\nlaw = \"plateau\"\nfactor = 1.5"), {"must be below 1, not 1.5"});
    check_refused(small_config("updates = 3", "[rate]\nlaw = \"one_cycle\""), {"rise = 0.3 of 3 updates"});
    check_refused(small_config("updates = 60", "[rate]\nlaw = \"one_cycle\"\n[optimizer]\nkind = \"adagrad\""),
                  {"adagrad has none", "cycle_momentum"});
    check_refused(small_config("updates = 60", "[rate]\nlaw = \"one_cycle\"\nphases = 4"),
                  {"rate.phases = 4", "[2, 3]"});
    check_refused(small_config("updates = 6", "[rate]\nlaw = \"plateau\"\nfactor = 0.5"), {"needs a validation part"},
                  {"--set", "data.split=[99.95,0.05,0]"});
    check_refused(small_config("updates = 6", "[optimizer]\nkind = \"rmsprop\"\nalpha = 1"),
                  {"optimizer.alpha = 1", "a number in [0, 1)"});
    check_refused(small_config("updates = 6", "[loss]\nlabel_smoothing = 1.0"),
                  {"loss.label_smoothing = 1.0", "a number in [0, 1)"});
    check_refused(small_config("updates = 6", "[loss]\nclass_weights = [1.0, -2.0]"),
                  {"loss.class_weights = ", "a list of numbers >= 0"});
    check_refused(small_config("updates = 6", "[loss]\nclass_weights = [1.0, 2.0]"),
                  {"class_weights must have one entry for each of the ", ", but has 2"});
    check_refused("[data]\nkind = \"adding\"\n[train]\nupdates = 1\n[loss]\nkind = \"cross_entropy\"",
                  {"loss.kind = ", "mean_squared_error, l1, huber, smooth_l1, gaussian_nll"});
    check_refused("[data]\nkind = \"adding\"\n[train]\nupdates = 1\n[loss]\nkind = \"huber\"\ndelta = 0",
                  {"loss.delta = 0", "a number in (0, "});
    check_refused(small_config(""), {"train.updates, train.epochs or train.seconds"});
    check_refused(small_config("seconds = 1.0", "[rate]\nlaw = \"cosine\""), {"rate.length"});
    check_refused(small_config("updates = 6\nmicro_batches = 2"), {"micro_batches", "2", "5"});
}

BOOST_AUTO_TEST_CASE(options_without_effect) {
    const auto with = [](const std::string& more) { return small_config("updates = 6", more); };
    check_refused(with("[schedule]\nslots = 3"), {"config.toml:15", "'schedule.slots' has no effect", "revolve"});
    check_refused(with("[schedule]\nfamily = \"store_all\"\nslots = 3"), {"'schedule.slots' has no effect"});
    check_refused(with("[schedule]\nfamily = \"revolve\"\nslots = 3\nperiod = 2"), {"'schedule.period' has no effect"});
    check_refused(with("[rate]\nfloor = 0.1"), {"config.toml:15", "'rate.floor' has no effect"});
    for (const char* key :
         {"length = 9", "factor = 0.5", "period = 3", "rise = 0.2", "start_divisor = 3", "end_divisor = 3",
          "shape = \"linear\"", "phases = 3", "cycle_momentum = false", "momentum_high = 0.9", "momentum_low = 0.1",
          "patience = 3", "cooldown = 3", "threshold = 0.1", "threshold_kind = \"absolute\""}) {
        const std::string line = key, name = line.substr(0, line.find(' '));
        check_refused(with("[rate]\n" + line), {"config.toml:15", "'rate." + name + "' has no effect", "rate.law ="});
    }
    check_refused(with("[rate]\nlaw = \"one_cycle\"\nfactor = 0.5"), {"'rate.factor' has no effect", "\"step\""});
    check_refused(with("[rate]\nlaw = \"one_cycle\"\ncycle_momentum = false\nmomentum_low = 0.5"),
                  {"'rate.momentum_low' has no effect", "rate.cycle_momentum is false"});
    check_refused(with("[rate]\nlaw = \"one_cycle\"\n[optimizer]\nbeta1 = 0.8"),
                  {"'optimizer.beta1' has no effect", "moves it from rate.momentum_high"});
    check_refused(with("[rate]\nlaw = \"one_cycle\"\n[optimizer]\nkind = \"sgd\"\nmomentum = 0.8"),
                  {"'optimizer.momentum' has no effect", "unless rate.cycle_momentum = false"});
    const auto optimizer = [&](const std::string& kind, const std::string& line) {
        check_refused(with("[optimizer]\nkind = \"" + kind + "\"\n" + line),
                      {"config.toml:16", "'optimizer." + line.substr(0, line.find(' ')) + "' has no effect"});
    };
    for (const char* kind : {"rmsprop", "adagrad", "lamb"})
        for (const char* line : {"dampening = 0.1", "nesterov = true", "amsgrad = true"}) optimizer(kind, line);
    for (const char* kind : {"sgd", "adam", "adamw", "lamb"})
        for (const char* line : {"alpha = 0.9", "centered = true", "rate_decay = 0.1", "initial_accumulator = 0.1"})
            optimizer(kind, line);
    for (const char* line : {"beta1 = 0.8", "beta2 = 0.8", "rate_decay = 0.1"}) optimizer("rmsprop", line);
    for (const char* line : {"beta1 = 0.8", "momentum = 0.8", "alpha = 0.8"}) optimizer("adagrad", line);
    optimizer("lamb", "momentum = 0.8");
    optimizer("sgd", "epsilon = 1e-3");
    for (const char* key : {"kind = \"l1\"", "delta = 1.0", "beta = 1.0", "epsilon = 1.0", "full = true"}) {
        const std::string line = key, name = line.substr(0, line.find(' '));
        check_refused(with("[loss]\n" + line), {"config.toml:15", "'loss." + name + "' has no effect", "cross-entropy"});
    }
    const auto loss = [](const std::string& kind, const std::string& line, const std::string& why) {
        check_refused("[data]\nkind = \"adding\"\n[train]\nupdates = 1\n[loss]\nkind = \"" + kind + "\"\n" + line,
                      {"config.toml:7", "'loss." + line.substr(0, line.find(' ')) + "' has no effect", why});
    };
    for (const char* kind : {"mean_squared_error", "l1", "huber", "smooth_l1", "gaussian_nll"}) {
        const std::string name = kind;
        for (const char* line : {"class_weights = [1.0]", "label_smoothing = 0.1", "ignore_index = 0"})
            loss(name, line, "no classes");
        if (name != "huber") loss(name, "delta = 0.5", "loss.kind = \"huber\"");
        if (name != "smooth_l1") loss(name, "beta = 0.5", "loss.kind = \"smooth_l1\"");
        if (name == "gaussian_nll") continue;
        for (const char* line : {"epsilon = 0.5", "full = true"}) loss(name, line, "loss.kind = \"gaussian_nll\"");
    }
    check_refused(with("[optimizer]\nmomentum = 0.9"), {"'optimizer.momentum' has no effect"});
    check_refused(with("[optimizer]\ndecay_biases = true"), {"'optimizer.decay_biases' has no effect"});
    check_refused(small_config("updates = 6\nlook_back_form = \"once\""), {"'train.look_back_form' has no effect"});
    check_refused(small_config("updates = 6\nlook_back = 6\ncarry = false"), {"'train.look_back' has no effect"});
    check_refused("[data]\nkind = \"copy\"\nwindow = 5\n[train]\nupdates = 1", {"'data.window' has no effect"});
    check_refused("[data]\nkind = \"adding\"\npath = \"text.txt\"\n[train]\nupdates = 1",
                  {"'data.path' has no effect"});
}

BOOST_AUTO_TEST_CASE(memory_limit_too_small) {
    check_refused(small_config("updates = 6", "[memory]\nlimit = 1000"), {"ram: needs", "bytes), offered 1000 B"});
    check_refused(small_config("updates = 6", "[memory]\ntime_axis = \"1 kB\"\n[schedule]\nfamily = \"store_all\""),
                  {"store_all does not fit", "time axis: needs", "offered 1000 B"});
    // The least that is named works.
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    const Answer refused = run_program({"train", "config.toml", "--set", "memory.time_axis=1"}, scratch.path());
    const std::size_t at = refused.err.find("time axis: needs"), from = refused.err.find('(', at);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    const long least = std::stol(refused.err.substr(from + 1));
    BOOST_CHECK_EQUAL(
        run_program({"train", "config.toml", "--out", "a", "--set", "memory.time_axis=" + std::to_string(least - 1)},
                    scratch.path())
            .code,
        2);
    BOOST_CHECK_EQUAL(
        run_program({"train", "config.toml", "--out", "a", "--set", "memory.time_axis=" + std::to_string(least)},
                    scratch.path())
            .code,
        0);
}

BOOST_AUTO_TEST_CASE(nothing_is_overwritten) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    write_file(scratch.path() / "run/mine", "precious");
    const Answer answer = run_program({"train", "config.toml", "--out", "run"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.says("is not empty"));
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "run", "--resume"}, scratch.path()).code, 2);
    BOOST_CHECK_EQUAL(text_of_file(scratch.path() / "run/mine"), "precious");
    BOOST_CHECK_EQUAL(std::distance(fs::directory_iterator(scratch.path() / "run"), fs::directory_iterator{}), 1);
}

BOOST_AUTO_TEST_CASE(snapshot_of_another_model) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "a"}, scratch.path()).code, 0);
    BOOST_CHECK_EQUAL(
        run_program({"train", "config.toml", "--out", "b", "--set", "model.hidden=11"}, scratch.path()).code, 0);
    const std::string name = "snapshots/snapshot-000000006.safetensors",
                      before = text_of_file(scratch.path() / "b" / name);
    fs::copy_file(scratch.path() / "b" / name, scratch.path() / "a" / name, fs::copy_options::overwrite_existing);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"eval", "a"},
          {"sample", "a"},
          {"train", "config.toml", "--out", "a", "--resume", "--set", "train.updates=9"}}) {
        const Answer answer = run_program(words, scratch.path());
        BOOST_TEST_CONTEXT(words.front() << ": " << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            BOOST_TEST(answer.says("9"));
            BOOST_TEST(answer.says("11"));
        }
    }
    BOOST_TEST(text_of_file(scratch.path() / "a" / name) == before);
    const Answer other = run_program({"train", "config.toml", "--out", "b", "--resume"}, scratch.path());
    BOOST_CHECK_EQUAL(other.code, 2);
    BOOST_TEST(other.says("model.hidden: 11 then, 9 now"));
}

BOOST_AUTO_TEST_CASE(data_that_changed) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "a"}, scratch.path()).code, 0);
    std::string text = some_text(2000);
    std::swap(text[1000], text[1001]);
    text[1001] = '!';
    write_file(scratch.path() / "text.txt", text);
    const Answer answer = run_program({"eval", "a"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.says("has changed"));
}

BOOST_AUTO_TEST_CASE(integers_have_an_upper_end) {
    for (const char* key :
         {"train.updates", "train.epochs", "data.window", "data.batch", "model.hidden", "model.layers",
          "model.embedding", "train.chunk", "train.shards", "train.threads", "train.micro_batches", "train.look_back",
          "rate.warm_up", "output.keep", "output.eval_every"})
        check_refused(small_config(), {key, "= 4611686018427387904", "out of range", "an integer in ["},
                      {"--set", std::string(key) + "=4611686018427387904"});
    check_refused(small_config(), {"train.epochs = 1000001", "[1, 1000000]"}, {"--set", "train.epochs=1000001"});
    check_refused(small_config(), {"train.seconds = ", "out of range", "(0, 1000000000]"},
                  {"--set", "train.seconds=2e300"});
    check_refused(small_config(), {"data.batch = 1000000", "model.hidden = 1000000", "1e15 numbers"},
                  {"--set", "data.batch=1000000", "--set", "model.hidden=1000000", "--set", "data.window=1000000"});
    const Scratch scratch;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"plan", "--steps", "4611686018427387904"},
                                                  {"plan", "--steps", "5", "--slots", "4611686018427387904"},
                                                  {"sample", "run", "--bytes", "4611686018427387904"},
                                                  {"sample", "run", "--bytes", "-1"},
                                                  {"sample", "run", "--seed", "-1"}}) {
        const Answer answer = run_program(words, scratch.path());
        BOOST_TEST_CONTEXT(words.back() << ": " << answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            BOOST_TEST(answer.says(words[words.size() - 2] + " wants an integer in ["));
            BOOST_TEST(answer.says(words.back()));
        }
    }
}

BOOST_AUTO_TEST_CASE(tables_commands_and_files_that_there_are_not) {
    check_refused(small_config("updates = 6", "[optimiser]"),
                  {"config.toml:14", "unknown table 'optimiser'", "'optimizer'"});
    check_refused("\"data.batch\" = 3\n" + small_config(), {"config.toml:1", "data.batch", "without quotes"});
    check_refused("[data]\n\"model.hidden\" = 3", {"config.toml:2", "data.\"model.hidden\""});
    const Scratch scratch;
    const Answer command = run_program({"trian", "config.toml"}, scratch.path());
    BOOST_CHECK_EQUAL(command.code, 2);
    BOOST_TEST(command.says("'trian'"));
    const Answer folder = run_program({"train", "."}, scratch.path());
    BOOST_CHECK_EQUAL(folder.code, 2);
    BOOST_TEST(folder.says("it is a folder"));
}

BOOST_AUTO_TEST_CASE(what_a_snapshot_cannot_hold_is_refused_before_the_run) {
    check_refused(small_config(), {"the byte 0x2c", "text.txt", "data.vocabulary"},
                  {"--set", "data.vocabulary=\"0a20\""}, some_text(2000));
    const Scratch scratch;
    write_file(scratch.path() / "config.toml", small_config());
    write_file(scratch.path() / "text.txt", some_text(2000));
    fs::create_directory(scratch.path() / "caf\xe9");
    fs::copy_file(scratch.path() / "text.txt", scratch.path() / "caf\xe9/text.txt");
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"train", "config.toml", "--out", "run\xff"},
          {"train", "config.toml", "--out", "run", "--set", "data.path=caf\xe9/text.txt"}}) {
        const Answer answer = run_program(words, scratch.path());
        BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 2);
        BOOST_TEST(answer.says("is no UTF-8"));
        BOOST_TEST(!fs::exists(scratch.path() / "run\xff"));
        BOOST_TEST(!fs::exists(scratch.path() / "run"));
    }
    // What TOML must escape comes back from the run's own configuration.
    const std::string odd = "a\x7f\x01\t\"b\\.txt";
    fs::copy_file(scratch.path() / "text.txt", scratch.path() / odd);
    fs::create_directory(scratch.path() / "odd");
    write_file(scratch.path() / "odd.toml",
               "[data]\npath = \"a\\u007F\\u0001\\t\\\"b\\\\.txt\"\n[model]\nhidden = 5\n[train]\nupdates = 1\n");
    const Answer answer = run_program({"train", "odd.toml", "--out", "odd"}, scratch.path());
    BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
    const Answer again = run_program({"eval", "odd"}, scratch.path());
    BOOST_TEST_CONTEXT(again.err) BOOST_CHECK_EQUAL(again.code, 0);
}

BOOST_AUTO_TEST_CASE(a_resumed_run_keeps_its_text_and_its_plan) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "a"}, scratch.path()).code, 0);
    const std::string config = text_of_file(scratch.path() / "a/config.toml"),
                      metrics_before = text_of_file(scratch.path() / "a/metrics.jsonl");
    const auto resume = [&](const std::string& file) {
        return run_program({"train", file, "--out", "a", "--resume", "--set", "train.updates=9"}, scratch.path());
    };
    // Another plan, though one that the configuration allows.
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "b", "--set", "schedule.family=revolve", "--set",
                                   "schedule.slots=1"},
                                  scratch.path())
                          .code,
                      0);
    const std::string other = text_of_file(scratch.path() / "b/config.toml");
    write_file(scratch.path() / "other.toml",
               config.substr(0, config.find("[plan]")) + other.substr(other.find("[plan]")));
    const Answer planned = resume("other.toml");
    BOOST_TEST_CONTEXT(planned.err) BOOST_CHECK_EQUAL(planned.code, 2);
    BOOST_TEST(planned.says("plan.family: \"store_all\" then, \"revolve\" now"));
    // As many bytes of the same alphabet, but another text.
    std::string text = some_text(2000);
    std::reverse(text.begin(), text.end());
    write_file(scratch.path() / "text.txt", text);
    const Answer answer = resume("config.toml");
    BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 2);
    const std::size_t at = config.find("checksum = \"") + 12;
    BOOST_TEST(answer.says("its checksum was " + config.substr(at, 14) + " and is crc32:"));
    BOOST_TEST(text_of_file(scratch.path() / "a/config.toml") == config);
    BOOST_TEST(text_of_file(scratch.path() / "a/metrics.jsonl") == metrics_before);
}

BOOST_AUTO_TEST_CASE(a_snapshot_of_another_precision) {
    const Scratch scratch;
    write_file(scratch.path() / "text.txt", some_text(2000));
    write_file(scratch.path() / "config.toml", small_config());
    BOOST_CHECK_EQUAL(run_program({"train", "config.toml", "--out", "a"}, scratch.path()).code, 0);
    const Answer answer = run_program({"eval", "a", "--set", "train.precision=double"}, scratch.path());
    BOOST_CHECK_EQUAL(answer.code, 2);
    BOOST_TEST(answer.says("F32"));
    BOOST_TEST(answer.says("F64"));
}
