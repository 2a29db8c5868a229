// Kills without warning in the middle of updates that commit: every life goes on where the journals of the one before
// it stand, which is at most one interval back, and the run ends with the bits of one that nobody disturbed.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_kill_random
#include "support/unit_test.hpp"

#include "backsweep/chain/commits.hpp"
#include "cli/place.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <random>
#include <regex>
#include <thread>

using namespace backsweep::test;
using backsweep::Commits;
using backsweep::Index;

namespace {

constexpr int wanted = 20;  // kills of each case
constexpr Index all_updates = 24;

/// 32 links of 3 steps an update.
std::string config(const std::string& model, const std::string& train, const std::string& memory,
                   const std::string& more) {
    return "[data]\npath = \"text.txt\"\nsplit = [80, 10, 10]\nbatch = 4\nwindow = 96\n[model]\n" + model +
           "[train]\nchunk = 3\nseed = 4\nupdates = " + std::to_string(all_updates) + "\n" + train +
           "[optimizer]\nrate = 0.01\n[memory]\n" + memory + more;
}

const std::string lstm = "embedding = 3\nhidden = 9\nlayers = 2\n";
const std::string xl =
    "kind = \"transformer_xl\"\nhidden = 6\nlayers = 2\nheads = 2\nhead_features = 5\ninner = 9\nmemory = 4\n"
    "dropout = 0.1\n";
const std::string always = "[output]\nsnapshot_every = 1\n";

struct Case {
    const char* name;
    std::string config;
    Index links;   ///< between commits; 0: they go by seconds
    bool on_disk;  ///< the plan has slots there
    Index shards = 1, micro_batches = 1;
    bool commits_forward = true;
};

std::vector<Case> cases() {
    return {
        {"RAM alone",
         config(lstm, "shards = 1\n", "commit_links = 1\n", always + "[schedule]\nfamily = \"revolve\"\nslots = 3\n"),
         1, false},
        {"two shards and threads, disk",
         config(lstm, "shards = 2\nthreads = 2\n", "time_axis = \"16 kB\"\ndisk = \"1 MB\"\ncommit_links = 2\n",
                always),
         2, true, 2},
        {"zstd, by seconds",
         config(lstm, "shards = 1\n",
                "time_axis = \"11 kB\"\ndisk = \"1 MB\"\ncommit_seconds = 0.001\ncompression = \"zstd\"\n", always),
         0, true},
        {"rows of attention in states on disk",
         config(xl, "shards = 1\n", "time_axis = \"12 kB\"\ndisk = \"1 MB\"\ncommit_links = 2\nlog = \"state\"\n",
                always),
         2, true},
        {"rows of attention in a file",
         config(xl, "shards = 1\n", "time_axis = \"12 kB\"\ndisk = \"1 MB\"\ncommit_links = 3\nlog = \"file\"\n",
                always),
         3, false, 1, 1, false},
        {"micro-batches, updates made again",
         config(lstm, "shards = 1\nmicro_batches = 2\n", "time_axis = \"9 kB\"\ndisk = \"1 MB\"\ncommit_links = 5\n",
                "[output]\nsnapshot_every = 5\n"),
         5, true, 1, 2},
    };
}

/// Where a journal that nobody has open says its sweep stands, and what the older of its two records says of the same
/// sweep.
struct Standing {
    Commits::Note newest;
    std::optional<Commits::Note> older;
};

/// Links first reached, or reversed.
Index done(const Commits::Note& note) {
    return note.end == Commits::nowhere ? note.at : 2 * note.turn - note.end;
}

/// The journal of a shard, wherever the run's name stands in its own.
fs::path journal_in(const fs::path& folder, Index shard) {
    const std::string begin = "shard" + std::to_string(shard) + "-", end = ".journal.0";
    if (!fs::exists(folder)) return {};
    for (const auto& file : fs::directory_iterator(folder)) {
        std::string name = file.path().filename().string();
        if (name.rfind(begin, 0) == 0 && name.size() > end.size() &&
            name.compare(name.size() - end.size(), end.size(), end) == 0)
            return folder / name.erase(name.size() - 2);
    }
    return {};
}

std::optional<Standing> standing(const fs::path& journal) {
    if (journal.empty()) return std::nullopt;
    constexpr std::size_t head = 64;  // magic, run, ...; then the record
    std::uint64_t run = 0;
    std::vector<Commits::Note> notes;
    for (const char* end : {".0", ".1"}) {
        const std::string bytes = text_of_file(journal.string() + end);
        Commits::Note note;
        if (bytes.size() < head + sizeof note) return std::nullopt;
        if (std::uint64_t of = 0; std::memcpy(&of, bytes.data() + 8, sizeof of), of != 0) run = of;
        std::memcpy(&note, bytes.data() + head, sizeof note);
        if (note.magic == Commits::Note{}.magic) notes.push_back(note);
    }
    const backsweep::Journal open({.path = journal, .run = run});
    if (!open.last()) return std::nullopt;
    Standing s;
    const backsweep::Blob blob{reinterpret_cast<std::byte*>(&s.newest), sizeof s.newest};
    open.read({&blob, 1});
    for (const Commits::Note& note : notes)
        if (note.sweep == s.newest.sweep && done(note) < done(s.newest)) s.older = note;
    return s;
}

/// What was computed: not how much of it the process that ended an update did.
std::vector<nlohmann::json> computed(const fs::path& run) {
    std::vector<nlohmann::json> lines = updates(run);
    for (nlohmann::json& line : lines) line.erase("advances"), line.erase("recorded");
    return lines;
}

double seconds_of(const std::vector<std::string>& words, const fs::path& folder) {
    const auto from = std::chrono::steady_clock::now();
    BOOST_TEST_REQUIRE(end_of(start_program(words, folder)) == 0, text_of_file(folder / "err"));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

/// One case in its folder.
class Killed {
public:
    Killed(const Case& c, unsigned seed) : case_(c), place_(c.config, some_text(8000)), random_(seed) {
        const double all = seconds_of({"train", "config.toml", "--out", "whole"}, path());
        start_ = seconds_of({"train", "config.toml", "--out", "whole", "--resume"}, path());
        life_ = std::max(0.02, 1.4 * (all - start_) / wanted);
        const std::string text = text_of_file(path() / "whole/config.toml");
        BOOST_TEST((text.find("disk_slots") != std::string::npos) == case_.on_disk, text);
        BOOST_TEST(text.find("\nlinks = 32\n") != std::string::npos);
    }

    /// A run with as many kills as are wanted still; on a machine that is faster than a moment ago it ends before them.
    void live(const std::string& run) {
        begun_ = {};
        last_.assign(static_cast<std::size_t>(case_.shards), std::nullopt);
        const std::vector<std::string> words{"train", "config.toml", "--out", run, "--resume"};
        int end = -SIGKILL;
        while (end == -SIGKILL) {
            fs::remove(path() / "out");  // a process may die before it has one of its own
            const pid_t program = start_program(words, path());
            if (in_training < wanted) {
                std::this_thread::sleep_for(std::chrono::duration<double>(start_ + life_ * (uniform_(random_) - 0.2)));
                ::kill(program, SIGKILL);
            }
            end = end_of(program);
            follow(run, end == -SIGKILL);
        }
        BOOST_TEST(end == 0, text_of_file(path() / "err"));
        BOOST_TEST((tensors(path() / run) == tensors(path() / "whole")));
        BOOST_TEST((computed(path() / run) == computed(path() / "whole")));
        for (const auto& left : fs::recursive_directory_iterator(path() / run / "scratch"))
            BOOST_ERROR(left.path().string() << " is left");
        // No more was held than the plan foretells; a process may have been killed with the last snapshot written.
        const std::string idle = "backsweep: nothing is left to do: the run in '" + (path() / run).string() + "' has reached its limit\n";
        BOOST_TEST(text_of_file(path() / "err") == (begun_ == all_updates ? idle : ""));
    }

    int in_training = 0;                                               ///< kills of processes that had done something
    int at_start = 0;                                                  ///< kills before that
    int in_forward = 0, in_reverse = 0, between = 0, in_snapshot = 0;  ///< those in training
    int told = 0;                                                      ///< sweeps that went on

private:
    const fs::path& path() const { return place_.path(); }

    /// After a life: where it had gone on, and where it has left its journals.
    void follow(const std::string& run, bool killed) {
        const std::string said = text_of_file(path() / "out");
        static const std::regex went_on(
            R"(update (\d+), shard (\d+): sweep (\d+) goes on (with|in its forward sweep at link) (\d+))");
        for (std::sregex_iterator found(said.begin(), said.end(), went_on), none; found != none; ++found, ++told) {
            const auto number = [&](std::size_t group) {
                return static_cast<Index>(std::stoll((*found)[group].str()));
            };
            const auto& before = last_.at(static_cast<std::size_t>(number(2)));
            BOOST_TEST_REQUIRE(before.has_value(), said);
            BOOST_TEST(number(3) == static_cast<Index>(before->sweep));
            BOOST_TEST(number(1) == number(3) / case_.micro_batches + 1);
            BOOST_TEST(number(5) == ((*found)[4] == "with" ? before->end : before->at));
        }
        if (!killed) return;
        const fs::path snapshots = path() / run / "snapshots";
        const Index update =
            backsweep::snapshots(snapshots).empty() ? 0 : backsweep::read_newest(snapshots).snapshot.update;
        bool news = update > begun_;
        BOOST_TEST(update >= begun_);
        begun_ = update;
        for (Index s = 0; s < case_.shards; ++s) {
            const std::optional<Standing> now = standing(journal_in(path() / run / "scratch", s));
            std::optional<Commits::Note>& before = last_[static_cast<std::size_t>(s)];
            if (!now) {
                BOOST_TEST((!before || update == all_updates));  // the last thing that a process does is to remove them
                before.reset();
                continue;
            }
            const Commits::Note& note = now->newest;
            if (before) {
                const std::array was{static_cast<Index>(before->sweep), done(*before)},
                    is{static_cast<Index>(note.sweep), done(note)};
                BOOST_TEST((is >= was), is[0] << ':' << is[1] << " after " << was[0] << ':' << was[1]);
                news = news || is > was;
            } else {
                news = true;
            }
            if (now->older && case_.links > 0 && (case_.commits_forward || now->older->end != Commits::nowhere))
                BOOST_TEST(done(note) - done(*now->older) <= case_.links);
            before = note;
        }
        if (!news) {
            ++at_start;
            return;
        }
        ++in_training;
        const auto& files = fs::directory_iterator(snapshots);
        const bool half =
            std::any_of(begin(files), end(files), [](const auto& f) { return f.path().extension() == ".tmp"; });
        if (half || !last_[0])
            ++in_snapshot;
        else
            ++(last_[0]->end == Commits::nowhere ? in_forward : last_[0]->end > 0 ? in_reverse : between);
    }

    Case case_;
    Place place_;
    std::mt19937 random_;
    std::uniform_real_distribution<double> uniform_{0.0, 1.0};
    double start_ = 0.0,
           life_ = 0.0;  // seconds of a process that finds nothing to do; of training at most before a kill
    Index begun_ = 0;    // update of the newest snapshot
    std::vector<std::optional<Commits::Note>> last_;  // by shard: at the last kill
};

}  // namespace

BOOST_AUTO_TEST_CASE(kills_in_the_middle_of_updates) {
    constexpr unsigned seed = 20240301;
    int kills = 0, in_forward = 0, in_reverse = 0;
    for (const Case& c : cases()) {
        BOOST_TEST_CONTEXT(c.name << ", seed " << seed) {
            Killed killed(c, seed + static_cast<unsigned>(kills));
            for (int run = 0; killed.in_training < wanted && run < 10; ++run)
                killed.live("killed" + std::to_string(run));
            BOOST_TEST_MESSAGE(c.name << ": " << killed.in_training << " kills in training (" << killed.in_forward
                                      << " forward, " << killed.in_reverse << " in reverse, " << killed.between
                                      << " between two updates, " << killed.in_snapshot << " in a snapshot), "
                                      << killed.at_start << " before it; " << killed.told << " sweeps went on");
            BOOST_TEST(killed.in_training >= wanted);
            BOOST_TEST(killed.told > 0);
            kills += killed.in_training;
            in_forward += killed.in_forward;
            in_reverse += killed.in_reverse;
        }
    }
    BOOST_TEST(kills >= 100);
    BOOST_TEST(in_forward > 0);
    BOOST_TEST(in_reverse > 0);
}
