// No arrow runs back up: the includes of every file against the table of rooms in docs/architecture.md, section 3.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE house_layering
#include "support/unit_test.hpp"

#include "support/reference_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using Names = std::set<std::string>;

namespace {

/// A face in `c/` stands just above the library it speaks for: `backsweep`, and `face` which all share, above schedule, all
/// others above chain.
const std::map<std::string, int> floors = {
    {"base", 0},   {"schedule", 10}, {"store", 10},         {"c/backsweep", 15},
    {"chain", 20}, {"plan", 20},     {"graph", 20},         {"c", 25},
    {"nn", 30},    {"ode", 30},      {"gpu", 30},           {"train", 40},
    {"data", 40},  {"dist", 40},     {"control_optim", 40}, {"cli", 50},
};
const std::set<std::pair<std::string, std::string>> same_floor = {{"gpu", "nn"}, {"train", "data"}};
const Names planning = {"base", "schedule", "store", "c/backsweep", "c", "chain", "plan"};
const Names below_schedule = {"base/range.hpp", "base/error.hpp", "base/export.hpp"};
const Names without_random = {"schedule", "store", "c/backsweep", "c", "chain", "plan"};

/// "backsweep/nn/lstm.hpp", "nn/cell.hpp" or "c/backsweep.h" -> the room; empty: a file beside the including one.
std::optional<std::string> room_of(const std::string& path) {
    const std::string inner = path.starts_with("backsweep/") ? path.substr(10) : path;
    const auto slash = inner.find('/');
    if (slash == std::string::npos) return std::nullopt;
    const std::string room = inner.substr(0, slash);
    const std::string stem = fs::path(inner).stem();
    return room == "c" && (stem == "backsweep" || stem == "face") ? "c/backsweep" : room;
}

/// What is wrong with the includes of one file; `path` begins at its room ("nn/lstm.cpp").
std::vector<std::string> violations(const std::string& path, const std::string& text, bool is_public) {
    std::vector<std::string> found;
    const auto wrong = [&](const std::string& what) { found.push_back(path + ": " + what); };
    const std::string room = room_of(path).value_or("");
    if (!floors.contains(room)) {
        wrong("room '" + room + "' is not in the table; give it a floor there and in docs/architecture.md");
        return found;
    }
    const bool bare = room == "schedule" || room == "c/backsweep";

    static const std::regex include(R"re(^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">])re", std::regex::multiline);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
        const std::string name = (*it)[2];
        if ((*it)[1] == "<") {
            static const std::regex standard("[a-z_]+|std[a-z]+\\.h");
            static const std::regex third_party(
                "(boost|fmt|Random123|nlohmann|toml|CLI|armadillo|armadillo_bits|cblas|cuda|cudnn|cublas|coin|Cbc|Clp)"
                "([/._].*)?|toml\\+\\+/.*");
            if (name.starts_with("backsweep/")) wrong("our own <" + name + "> stands in quotes");
            if (bare && (!std::regex_match(name, standard) || std::regex_match(name, third_party)))
                wrong("schedule stands on the standard library alone, not on <" + name + ">");
            else if (name.starts_with("Random123/")) {
                if (path != "base/random.hpp") wrong("only base/random.hpp includes <" + name + ">");
            } else if (planning.contains(room) && std::regex_match(name, third_party))
                wrong("a planning room is built without <" + name + ">");
            if (is_public && name == "armadillo" && path != "nn/arma.hpp")
                wrong("nn/arma.hpp is the only public header that includes <armadillo>");
            if (room != "gpu" && std::regex_match(name, std::regex("(cuda|cudnn|cublas|nvrtc).*")))
                wrong("only the gpu room includes <" + name + ">");
            if ((is_public || room != "store") && (name == "xxhash.h" || name == "zstd.h"))
                wrong("only sources of the store room include <" + name + ">");
            if (path != "graph/staged_milp.cpp" && std::regex_match(name, std::regex("(coin/|Cbc|Clp|Coin|Osi).*")))
                wrong("only graph/staged_milp.cpp includes <" + name + ">");
            continue;
        }
        const auto target = room_of(name);
        if (!target) continue;
        const std::string inner = name.starts_with("backsweep/") ? name.substr(10) : name;
        if (is_public && !name.starts_with("backsweep/"))
            wrong("a public header includes the private \"" + name + "\"");
        if (!floors.contains(*target)) {
            wrong("\"" + name + "\" is in no room of the table");
        } else if (*target != room && floors.at(*target) >= floors.at(room) && !same_floor.contains({room, *target})) {
            wrong("\"" + name + "\" is not on a lower floor");
        }
        if (bare && *target == "base" && !below_schedule.contains(inner))
            wrong("of base, schedule includes range.hpp, error.hpp and export.hpp only, not \"" + name + "\"");
        if (without_random.contains(room) && inner == "base/random.hpp")
            wrong("a planning room draws no random numbers");
    }
    static const std::regex cuda(R"(\b(__CUDA[A-Z_]*__|CUDA(RT)?_VERSION|BACKSWEEP_(WITH|HAS|HAVE)_(CUDA|GPU))\b)");
    if (std::smatch macro; room != "gpu" && std::regex_search(text, macro, cuda))
        wrong("asks whether CUDA is there (" + macro.str() + "); only the gpu room may");
    return found;
}

std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string violation(const std::string& path, const std::string& text, bool is_public = false) {
    const auto found = violations(path, text, is_public);
    return found.empty() ? "" : found.front();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_file_keeps_to_the_table) {
    const fs::path source = backsweep::test::source_dir();
    int files = 0;
    for (const char* folder : {"include/backsweep", "src", "gpu/include/backsweep", "gpu/src"}) {
        const fs::path root = source / folder;
        if (!fs::is_directory(root)) continue;
        const bool is_public = std::string(folder).find("include") != std::string::npos;
        for (const auto& entry : fs::recursive_directory_iterator(root)) {
            static const Names kinds = {".hpp", ".cpp", ".h", ".c", ".in", ".cu", ".cuh", ".inc"};
            if (!entry.is_regular_file() || !kinds.contains(entry.path().extension().string())) continue;
            std::string path = fs::relative(entry.path(), root).generic_string();
            if (std::string(folder) == "gpu/src" && !path.starts_with("gpu/")) path = "gpu/" + path;
            for (const std::string& line : violations(path, contents(entry.path()), is_public))
                BOOST_CHECK_MESSAGE(false, folder << '/' << line);
            ++files;
        }
    }
    BOOST_TEST_MESSAGE(files << " files read");
    BOOST_CHECK_MESSAGE(files > 10, "only " << files << " files found below " << source.string());
}

BOOST_AUTO_TEST_CASE(arrows_up_are_found) {
    const auto includes = [](const std::string& name) { return "#pragma once\n  # include " + name + "\nint x;\n"; };
    BOOST_TEST(violation("chain/execution.hpp", includes("\"backsweep/nn/layer.hpp\"")) != "");
    BOOST_TEST(violation("store/ram_store.cpp", includes("\"backsweep/schedule/action.hpp\"")) != "");
    BOOST_TEST(violation("nn/lstm.cpp", includes("\"backsweep/gpu/builder.hpp\"")) != "");
    BOOST_TEST(violation("nn/lstm.cpp", includes("\"backsweep/ode/stepper.hpp\"")) != "");
    BOOST_TEST(violation("data/text.cpp", includes("\"backsweep/train/trainer.hpp\"")) != "");
    BOOST_TEST(violation("schedule/revolve.cpp", includes("\"backsweep/base/ledger.hpp\"")) != "");
    BOOST_TEST(violation("schedule/revolve.cpp", includes("<fmt/format.h>")) != "");
    BOOST_TEST(violation("schedule/revolve.cpp", includes("<unistd.h>")) != "");
    BOOST_TEST(violation("c/backsweep.cpp", includes("\"backsweep/chain/chain.hpp\"")) != "");
    BOOST_TEST(violation("plan/plan.cpp", includes("\"backsweep/base/random.hpp\"")) != "");
    BOOST_TEST(violation("plan/plan.cpp", includes("<boost/crc.hpp>")) != "");
    BOOST_TEST(violation("nn/dropout.cpp", includes("<Random123/philox.h>")) != "");
    BOOST_TEST(violation("nn/lstm.hpp", includes("<armadillo>"), true) != "");
    BOOST_TEST(violation("nn/lstm.hpp", includes("\"nn/cell.hpp\""), true) != "");
    BOOST_TEST(violation("train/trainer.cpp", includes("<cuda_runtime.h>")) != "");
    BOOST_TEST(violation("train/trainer.cpp", "#ifdef __CUDACC__\n#endif\n") != "");
    BOOST_TEST(violation("graph/plan_graph.cpp", includes("<Cbc_C_Interface.h>")) != "");
    BOOST_TEST(violation("chain/execution_base.cpp", includes("<zstd.h>")) != "");
    BOOST_TEST(violation("store/disk_store.hpp", includes("<xxhash.h>"), true) != "");
    BOOST_TEST(violation("graph/plan_graph.cpp", includes("\"backsweep/chain/chain.hpp\"")) != "");
    BOOST_TEST(violation("schedule/optimal_graph.cpp", includes("\"backsweep/graph/plan_graph.hpp\"")) != "");
    BOOST_TEST(violation("misc/helper.hpp", "") != "");
}

BOOST_AUTO_TEST_CASE(arrows_down_pass) {
    const auto includes = [](const std::string& name) { return "#include " + name + "\n"; };
    BOOST_CHECK_EQUAL(violation("chain/execution.hpp", includes("\"backsweep/schedule/action.hpp\"")), "");
    BOOST_CHECK_EQUAL(violation("train/trainer.cpp", includes("\"backsweep/data/batches.hpp\"")), "");
    BOOST_CHECK_EQUAL(violation("gpu/lstm.cpp", includes("\"backsweep/nn/spec.hpp\"") + includes("<cudnn.h>")), "");
    BOOST_CHECK_EQUAL(violation("schedule/revolve.cpp", includes("<vector>") + includes("\"binomial.hpp\"")), "");
    BOOST_CHECK_EQUAL(violation("c/backsweep.cpp", includes("\"backsweep/schedule/revolve.hpp\"")), "");
    BOOST_CHECK_EQUAL(violation("c/backsweep_sweep.cpp", includes("\"backsweep/chain/chain.hpp\"")), "");
    BOOST_CHECK_EQUAL(violation("base/random.hpp", includes("<Random123/philox.h>"), true), "");
    BOOST_CHECK_EQUAL(violation("store/packing.cpp", includes("<zstd.h>")), "");
    BOOST_CHECK_EQUAL(violation("graph/staged_milp.cpp", includes("<Cbc_C_Interface.h>")), "");
    BOOST_CHECK_EQUAL(violation("graph/plan_graph.hpp", includes("\"backsweep/schedule/graph.hpp\""), true), "");
    BOOST_CHECK_EQUAL(violation("nn/arma.hpp", includes("<armadillo>"), true), "");
}
