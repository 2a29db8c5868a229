// Snapshots: bits through a file and back, kills at every write, fsync and rename, every damaged file refused,
// generations kept and skipped, and what does not fit named on both sides.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE snapshot
#include "support/unit_test.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "backsweep/train/durable_file.hpp"
#include "backsweep/train/snapshot.hpp"
#include "backsweep/train/spec_json.hpp"
#include "base/fail_point.hpp"
#include "support/scratch.hpp"

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

using namespace backsweep;
namespace fs = std::filesystem;

namespace {

ModelSpec model(Index hidden = 5) {
    ModelSpec spec;
    spec.layers = {EmbeddingSpec{.name = "embedding", .vocabulary = 11, .features = 3, .padding = 2},
                   RecurrentSpec{.inputs = 3, .hidden = hidden}, DenseSpec{.inputs = hidden, .outputs = 11}};
    spec.loss.label_smoothing = 0.1;
    return spec;
}

ParameterLayout layout(Index hidden = 5) {
    ParameterLayout layout;
    layout.append({.name = "rnn.weight_hh_l0", .rows = 4 * hidden, .cols = hidden});
    layout.append({.name = "rnn.bias_hh_l0", .rows = 4 * hidden});
    layout.append({.name = "head.weight", .rows = 11, .cols = hidden});
    return layout;
}

template <class Real>
std::vector<Real> numbers(Index n, std::uint64_t step) {
    std::vector<Real> x(static_cast<std::size_t>(n));
    const Random random(17, 2);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Real>(random.normal(step, i));
    return x;
}

/// A run of one optimizer over made gradients: all that a snapshot must carry.
template <class Real>
struct Run {
    ParameterLayout layout = ::layout();
    Optimizer<Real> optimizer{
        OptimizerSpec{.rule = AdamWSpec{.amsgrad = true}, .groups = {{.patterns = {"*bias*"}, .weight_decay = 0.0}}},
        layout};
    std::vector<Real> parameters = numbers<Real>(layout.size(), 0);
    std::vector<Real> carry = numbers<Real>(7, 1000);

    void go(Index updates) {
        for (Index u = 0; u < updates; ++u) {
            const auto at = static_cast<std::uint64_t>(1 + optimizer.updates());
            optimizer.step(parameters, numbers<Real>(layout.size(), at), 0.01);
            for (Real& c : carry) c += static_cast<Real>(at);
        }
    }
    Snapshot snapshot() const {
        Snapshot s;
        s.update = optimizer.updates();
        s.epoch = 2;
        s.step = (Index{1} << 53) + 1;
        s.seed = std::numeric_limits<std::uint64_t>::max();
        s.model = model();
        s.rate = {.law = RateSpec::Law::cosine, .peak = 0.1 + 0.2, .floor = 1e-5, .length = 1000, .warm_up = 3};
        s.clip = {ClipSpec::Kind::norm, 1.0 / 3.0};
        s.plan = R"({"schedule":"revolve","slots":3})";
        s.notes = {{"text", "\xc3\xa4 \"quoted\"\n"}, {"empty", ""}};
        s.add_parameters<Real>(layout, parameters);
        s.add_optimizer(layout, optimizer);
        s.add<Real>("carry", {7}, carry);
        s.keep<std::uint8_t>("vocabulary", {3}, {10, 32, 255});
        return s;
    }
    void restore(const Snapshot& s) {
        s.require(model());
        s.read_parameters<Real>(layout, parameters);
        s.read_optimizer(layout, optimizer);
        s.read<Real>("carry", carry);
    }
};

template <class E, class F>
void refused(F f, std::initializer_list<std::string> words) {
    BOOST_CHECK_EXCEPTION(f(), E, [&](const E& e) {
        for (const std::string& word : words)
            if (std::string(e.what()).find(word) == std::string::npos) {
                BOOST_TEST_MESSAGE("no '" << word << "' in: " << e.what());
                return false;
            }
        return true;
    });
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

template <class Real>
void resumes_in_bits() {
    const test::Scratch scratch;
    Run<Real> first;
    first.go(4);
    Snapshot saved = first.snapshot();
    const fs::path path = save_snapshot(scratch.path() / "run" / "snapshots", saved);
    BOOST_TEST(path.filename().string() == "snapshot-000000004.safetensors");

    const Snapshot s = read_snapshot(path);
    BOOST_TEST(s.checksum == saved.checksum);
    BOOST_TEST(s.update == 4);
    BOOST_TEST(s.epoch == 2);
    BOOST_TEST(s.step == (Index{1} << 53) + 1);
    BOOST_TEST(s.seed == std::numeric_limits<std::uint64_t>::max());
    BOOST_TEST(to_json(s.model) == to_json(saved.model));
    BOOST_TEST(to_json(s.optimizer) == to_json(saved.optimizer));
    BOOST_TEST(to_json(s.rate) == to_json(saved.rate));
    BOOST_TEST(to_json(s.clip) == to_json(saved.clip));
    BOOST_TEST(s.rate.peak == 0.1 + 0.2);
    BOOST_TEST(s.plan == saved.plan);
    BOOST_TEST((s.notes == saved.notes));
    std::array<std::uint8_t, 3> vocabulary{};
    s.read<std::uint8_t>("vocabulary", vocabulary);
    BOOST_TEST((vocabulary == std::array<std::uint8_t, 3>{10, 32, 255}));
    BOOST_TEST_REQUIRE(s.find("rnn.weight_hh_l0"));
    BOOST_TEST((s.find("rnn.weight_hh_l0")->shape == std::vector<Index>{20, 5}));
    BOOST_TEST(s.find("optimizer.max_exp_avg_sq.rnn.bias_hh_l0"));

    first.go(5);
    Run<Real> second;
    second.go(1);
    second.restore(s);
    second.go(5);
    BOOST_TEST(second.optimizer.updates() == 9);
    BOOST_TEST(second.parameters == first.parameters);
    BOOST_TEST(second.carry == first.carry);

    Run<Real> straight;
    straight.go(9);
    BOOST_TEST(second.parameters == straight.parameters);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_resumed_run_has_the_same_bits) {
    resumes_in_bits<float>();
    resumes_in_bits<double>();
}

BOOST_AUTO_TEST_CASE(a_kill_at_any_point_leaves_a_snapshot_that_loads) {
    const test::Scratch scratch;
    Run<double> run;
    run.go(1);
    Snapshot saved = run.snapshot();
    // Five writes of the buffer.
    saved.keep<double>("ballast", {150'000}, numbers<double>(150'000, 7));
    save_snapshot(scratch.path(), saved);
    saved.update = 2;
    const std::string first = saved.checksum;
    save_snapshot(scratch.path(), saved);
    std::vector<std::string> checksums{"", first, saved.checksum};
    int points = 0;
    for (int k = 1;; ++k) {
        const Index before = read_newest(scratch.path()).snapshot.update;
        const auto more = [&](Index update) {
            saved.update = update;
            return save_snapshot(scratch.path(), saved);
        };
        const int status = test::end_of(test::start_process([&] {
            ask_for_fail_point(("any:" + std::to_string(k)).c_str());
            more(before + 1);
            return 0;
        }));
        const NewestSnapshot newest = read_newest(scratch.path());
        BOOST_TEST(newest.skipped.empty());
        BOOST_TEST((newest.snapshot.update == before || newest.snapshot.update == before + 1));
        BOOST_TEST(newest.snapshot.tensors.size() == saved.tensors.size());
        BOOST_TEST(snapshots(scratch.path()).size() >= 2U);
        if (status == 0) {
            BOOST_TEST(newest.snapshot.update == before + 1);
            break;
        }
        BOOST_TEST_REQUIRE(status == fail_point_status);
        ++points;
    }
    BOOST_TEST(points >= 5 + 2 + 1);
    BOOST_TEST_MESSAGE(points << " points");
    // The last save removed what the killed ones left.
    BOOST_TEST(scratch.files().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_write_error_leaves_the_earlier_snapshot) {
    const test::Scratch scratch;
    Run<double> run;
    Snapshot saved = run.snapshot();
    save_snapshot(scratch.path(), saved);
    const int status = test::end_of(test::start_process([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{5000, 5000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        run.go(1);
        Snapshot next = run.snapshot();
        try {
            save_snapshot(scratch.path(), next);
        } catch (const StoreError& e) {
            const std::string message = e.what();
            return message.find("snapshot-000000001.safetensors") != std::string::npos &&
                           message.find("File too large") != std::string::npos
                       ? 0
                       : 1;
        }
        return 2;
    }));
    BOOST_TEST(status == 0);
    BOOST_TEST(scratch.files().size() == 1U);
    BOOST_TEST(read_newest(scratch.path()).snapshot.checksum == saved.checksum);

    write(scratch.path() / "file", "no folder");
    refused<StoreError>([&] { save_snapshot(scratch.path() / "file", saved); }, {"cannot make the folder", "file'"});
    refused<StoreError>([&] { snapshots(scratch.path() / "file"); }, {"cannot read the folder", "file'"});
}

BOOST_AUTO_TEST_CASE(cut_and_damaged_files_are_refused) {
    const test::Scratch scratch;
    const Run<float> run;
    Snapshot saved = run.snapshot();
    const fs::path path = save_snapshot(scratch.path(), saved), other = scratch.path() / "other";
    const std::string whole = bytes_of(path);
    fs::copy_file(path, other);
    std::uint64_t header = 0;
    std::memcpy(&header, whole.data(), 8);
    const std::size_t data = 8 + header, padding = whole.find_last_not_of(' ', data - 1) + 1;
    for (std::size_t n = 0; n < whole.size(); ++n) {
        if (n >= padding && n < data) continue;  // blanks that mean nothing
        const auto put = [&](char byte) { std::fstream(other).seekp(static_cast<std::streamoff>(n)).put(byte); };
        put(static_cast<char>(whole[n] ^ (1 << (n * 7 % 8))));
        BOOST_TEST_CONTEXT("byte " << n) {
            BOOST_CHECK_THROW(read_snapshot(other), StoreError);
        }
        put(whole[n]);
    }
    BOOST_TEST(read_snapshot(other).checksum == saved.checksum);
    for (std::size_t n = whole.size(); n > 0;) {
        n -= n < 3000 || n == whole.size() ? 1 : std::min<std::size_t>(n, 37);
        fs::resize_file(other, n);
        BOOST_TEST_CONTEXT("cut to " << n) {
            BOOST_CHECK_THROW(read_snapshot(other), StoreError);
        }
    }
    std::string damaged = whole;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    write(other, damaged);
    refused<StoreError>([&] { read_snapshot(other); },
                        {other.string(), "its checksum is crc32:", saved.checksum, "damaged"});
    write(other, "");
    refused<StoreError>([&] { read_snapshot(other); }, {other.string(), "8 bytes"});
    write(other, "x");
    refused<StoreError>([&] { read_snapshot(other); }, {other.string(), "8 bytes"});
    refused<StoreError>([&] { read_snapshot(scratch.path() / "none"); }, {(scratch.path() / "none").string()});

    const auto with = [&](const std::map<std::string, std::string>& metadata) {
        DurableFile file(other);
        write_safetensors(file.stream(), {}, metadata);
        file.commit();
    };
    with({});
    refused<StoreError>([&] { read_snapshot(other); }, {other.string(), "no snapshot of a run"});
    with({{"backsweep_snapshot", "2"}});
    refused<StoreError>([&] { read_snapshot(other); }, {other.string(), "format 2", "reads format 1"});
}

BOOST_AUTO_TEST_CASE(the_last_generations_are_kept_and_bad_ones_skipped) {
    const test::Scratch scratch;
    const Run<float> run;
    Snapshot s = run.snapshot();
    const auto save = [&](Index update, Index keep = 2) {
        s.update = update;
        return save_snapshot(scratch.path(), s, keep);
    };
    const auto name = [](Index update) { return "snapshot-00000000" + std::to_string(update) + ".safetensors"; };
    for (const Index update : {1, 2, 3, 4}) save(update, 3);
    BOOST_TEST((scratch.files() == std::vector<std::string>{name(2), name(3), name(4)}));
    save(5);
    BOOST_TEST((scratch.files() == std::vector<std::string>{name(4), name(5)}));
    BOOST_TEST(read_newest(scratch.path()).snapshot.update == 5);

    // The newest is cut: the one before it loads, the user is told, and going on from there removes no later file.
    fs::resize_file(scratch.path() / name(5), 100);
    write(scratch.path() / "snapshot-000000009.safetensors.1-1.tmp", "stale");
    write(scratch.path() / "snapshot-9.safetensors", "no name of ours");
    const NewestSnapshot newest = read_newest(scratch.path());
    BOOST_TEST(newest.snapshot.update == 4);
    BOOST_TEST(newest.path.filename().string() == name(4));
    BOOST_TEST_REQUIRE(newest.skipped.size() == 1U);
    BOOST_TEST(newest.skipped[0].find(name(5)) != std::string::npos);
    fs::remove(scratch.path() / "snapshot-9.safetensors");
    fs::rename(scratch.path() / name(5), scratch.path() / name(8));
    save(6);
    BOOST_TEST(read_newest(scratch.path()).snapshot.update == 6);
    save(7);
    BOOST_TEST((snapshots(scratch.path()).size() == 3U));
    BOOST_TEST(read_newest(scratch.path()).snapshot.update == 7);
    save(8);
    BOOST_TEST(read_newest(scratch.path()).skipped.empty());

    for (const fs::path& path : snapshots(scratch.path())) fs::resize_file(path, 0);
    refused<StoreError>([&] { read_newest(scratch.path()); }, {scratch.path().string(), name(7), name(8), "8 bytes"});
    refused<StoreError>([&] { read_newest(scratch.path() / "none"); }, {"none'", "it holds none"});
    BOOST_TEST(snapshots(scratch.path() / "none").empty());
    BOOST_CHECK_THROW(save(9, 1), InvalidArgument);
    s.update = 1'234'567'890;
    BOOST_TEST(save_snapshot(scratch.path(), s).filename().string() == "snapshot-1234567890.safetensors");
    BOOST_TEST(read_newest(scratch.path()).snapshot.update == 1'234'567'890);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named_and_changes_nothing) {
    const test::Scratch scratch;
    Run<float> run;
    run.go(2);
    Snapshot saved = run.snapshot();
    const fs::path path = save_snapshot(scratch.path(), saved);
    const Snapshot s = read_snapshot(path);

    refused<InvalidArgument>([&] { s.require(model(6)); },
                             {path.string(), "embedding 11 -> 3, lstm 3 -> 5, dense 5 -> 11, cross_entropy",
                              "embedding 11 -> 3, lstm 3 -> 6, dense 6 -> 11, cross_entropy"});
    ModelSpec smoother = model();
    smoother.loss.label_smoothing = 0.2;
    refused<InvalidArgument>([&] { s.require(smoother); },
                             {path.string(), "\"label_smoothing\":0.1", "\"label_smoothing\":0.2"});
    BOOST_CHECK_NO_THROW(s.require(model()));

    std::vector<float> wide(static_cast<std::size_t>(layout(6).size()), 3.0F);
    refused<StoreError>([&] { s.read_parameters<float>(layout(6), wide); },
                        {path.string(), "'rnn.weight_hh_l0' as F32 [20, 5]", "F32 [24, 6] is wanted"});
    std::vector<double> twice(static_cast<std::size_t>(layout().size()), 3.0);
    refused<StoreError>([&] { s.read_parameters<double>(layout(), twice); },
                        {"as F32 [20, 5]", "F64 [20, 5] is wanted"});
    ParameterLayout more = layout();
    more.append({.name = "head.bias", .rows = 11});
    std::vector<float> longer(static_cast<std::size_t>(more.size()), 3.0F);
    refused<StoreError>([&] { s.read_parameters<float>(more, longer); }, {path.string(), "no tensor 'head.bias'"});
    BOOST_TEST(std::count(wide.begin(), wide.end(), 3.0F) == layout(6).size());
    BOOST_TEST(std::count(twice.begin(), twice.end(), 3.0) == layout().size());
    BOOST_TEST(std::count(longer.begin(), longer.end(), 3.0F) == more.size());
    std::array<float, 6> carry{};
    refused<StoreError>([&] { s.read<float>("carry", carry); }, {"'carry' as F32 [7]", "F32 [6] is wanted"});

    Optimizer<float> sgd({.rule = SgdSpec{}}, layout());
    refused<InvalidArgument>([&] { s.read_optimizer(layout(), sgd); },
                             {path.string(), "\"rule\":\"adamw\"", "\"rule\":\"sgd\""});
    Run<float> other;
    other.go(1);
    const auto before = other.parameters;
    const ParameterLayout narrow = layout(4);
    Optimizer<float> adamw(run.optimizer.spec(), narrow);
    refused<StoreError>([&] { s.read_optimizer(narrow, adamw); }, {"optimizer.exp_avg.rnn.weight_hh_l0"});
    BOOST_TEST(adamw.updates() == 0);

    saved.notes["bad"] = "\xff";
    refused<InvalidArgument>([&] { save_snapshot(scratch.path(), saved); }, {"UTF-8"});
    BOOST_TEST(read_newest(scratch.path()).snapshot.checksum == s.checksum);
}
