// `report`: the page is well-formed, takes nothing from elsewhere, and has the numbers of the run.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE cli_report
#include "support/unit_test.hpp"

#include "cli/place.hpp"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;
using boost::property_tree::ptree;
using nlohmann::json;

namespace {

/// Throws where the page is not well-formed.
ptree parsed(const std::string& page) {
    std::istringstream in(page);
    ptree tree;
    boost::property_tree::read_xml(in, tree);
    return tree;
}

/// All elements of a name, at any depth.
std::vector<ptree> elements(const ptree& tree, const std::string& name) {
    std::vector<ptree> found;
    for (const auto& [key, child] : tree) {
        if (key == name) found.push_back(child);
        const std::vector<ptree> within = elements(child, name);
        found.insert(found.end(), within.begin(), within.end());
    }
    return found;
}

/// Points of the page's polylines, in its order.
std::vector<std::size_t> polylines(const ptree& page) {
    std::vector<std::size_t> counts;
    for (const ptree& line : elements(page, "polyline")) {
        const std::string points = line.get<std::string>("<xmlattr>.points");
        counts.push_back(static_cast<std::size_t>(std::count(points.begin(), points.end(), ',')));
        BOOST_TEST((points.find("nan") == std::string::npos && points.find("inf") == std::string::npos));
    }
    return counts;
}

std::string with_commas(std::int64_t n) {
    std::string text = std::to_string(n);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

/// A loss in a tile.
std::string shown(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "<b>%.6g</b>", value);
    return text;
}

bool has(const std::string& page, const std::string& words) {
    if (page.find(words) != std::string::npos) return true;
    BOOST_TEST_MESSAGE("'" << words << "' is not on the page");
    return false;
}

void takes_nothing_from_elsewhere(std::string page) {
    const std::string space = "xmlns=\"http://www.w3.org/2000/svg\"";  // a name, not an address
    for (std::size_t at; (at = page.find(space)) != std::string::npos;) page.erase(at, space.size());
    for (const char* word : {"http:", "https:", "//", "src=", "href", "url(", "@import", "<script", "<link", "<iframe"})
        BOOST_TEST(page.find(word) == std::string::npos, word);
}

/// The page of a run; also checks what holds for every page.
std::string page_of(const Place& place, const std::string& run) {
    const Answer answer = run_program({"report", run}, place.path());
    BOOST_TEST_CONTEXT(answer.err) BOOST_CHECK_EQUAL(answer.code, 0);
    const fs::path file = place.path() / run / "report.html";
    BOOST_CHECK_EQUAL(answer.out, (fs::path(run) / "report.html").string() + "\n");
    std::string page = text_of_file(file);
    BOOST_TEST(page.starts_with("<!DOCTYPE html>"));
    return page;
}

/// Rewrites metrics.jsonl; f changes a line or answers false: it goes.
void change_metrics(const fs::path& run, const std::function<bool(json&)>& f) {
    std::string text;
    for (json line : metrics(run))
        if (f(line)) text += line.dump() + "\n";
    write_file(run / "metrics.jsonl", text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_page_has_the_numbers_of_its_run) {
    const Place place;
    const std::string name = "a<b>&\"c'";
    const json report = place.train(name, {"memory.limit=\"1 MB\"", "output.eval_every=2", "data.window=21"}, {"--json"}).json();
    const std::string page = page_of(place, name);
    takes_nothing_from_elsewhere(page);
    const ptree tree = parsed(page);
    BOOST_CHECK_EQUAL(tree.get<std::string>("html.body.h1"), name);
    BOOST_CHECK_EQUAL(tree.get<std::string>("html.head.title"), name + ": Backsweep");

    // Loss over updates and over time with the evaluations after 2, 4 and 6, rate, peak and live.
    BOOST_TEST((polylines(tree) == std::vector<std::size_t>{6, 3, 6, 3, 6, 6, 6}));
    BOOST_TEST(has(page, shown(report.at("loss").get<double>())));
    BOOST_TEST(has(page, shown(report.at("valid").at("loss").get<double>())));
    std::vector<std::string> cells;
    for (const ptree& cell : elements(tree, "td")) cells.push_back(cell.data());
    for (const auto& [kind, bytes] : report.at("bytes").at("predicted").items()) {
        const std::string row = kind == "time_axis" ? "time axis" : kind;
        const auto at = std::find(cells.begin(), cells.end(), row);
        BOOST_TEST_REQUIRE((cells.end() - at) > 3, row);
        BOOST_CHECK_EQUAL(at[1], with_commas(bytes.get<std::int64_t>()));
        BOOST_CHECK_EQUAL(at[2], with_commas(report.at("bytes").at("measured").at(kind).get<std::int64_t>()));
        BOOST_CHECK_EQUAL(at[3], "0");
    }
    for (const char* verb : {"reverse", "all else"}) BOOST_TEST((std::find(cells.begin(), cells.end(), verb) != cells.end()), verb);
    const json manifest = json::parse(text_of_file(place.path() / name / "manifest.json"));
    for (const char* key : {"version", "compiler", "cpu", "data_checksum"})
        BOOST_TEST((std::find(cells.begin(), cells.end(), manifest.at(key).get<std::string>()) != cells.end()), key);
    BOOST_TEST(has(page, "% of the limit of"));
    BOOST_TEST(has(page, "bits per character"));
    BOOST_TEST(elements(tree, "pre").size() == 1);
    BOOST_TEST(elements(tree, "pre").front().data().find("[plan.bytes]") != std::string::npos);
    // The schedule's picture is one of them.
    BOOST_TEST(elements(tree, "svg").size() == 5);
    BOOST_TEST(has(page, "in links run or reversed"));

    // The shares of the actions and of all else add up to the time of training.
    double seconds = 0.0, share = 0.0;
    for (std::size_t i = 1; i < cells.size(); ++i)
        if (cells[i].ends_with(" %")) share += std::stod(cells[i]), seconds += std::stod(cells[i - 1]);
    BOOST_TEST(std::abs(share - 100.0) < 1.0);
    BOOST_TEST(std::abs(seconds - report.at("seconds").get<double>()) < 0.02);
}

BOOST_AUTO_TEST_CASE(a_page_of_one_update_and_one_of_very_many) {
    const Place place;
    place.train("one", {"train.updates=1"});
    BOOST_TEST((polylines(parsed(page_of(place, "one"))) == std::vector<std::size_t>{1, 1, 1, 1, 1, 1, 1}));

    place.train("many", {"train.updates=1"});
    const json line = metrics(place.path() / "many").front();
    std::string text;
    constexpr int updates = 9001;
    for (int u = 1; u <= updates; ++u) {
        json l = line;
        l["update"] = u;
        l["loss"] = u == 4321 ? 77.5 : u == 8000 ? 0.25 : 2.0 + 0.1 * (u % 7);
        l["seconds"] = 0.01 * u;
        if (u > 1) l.erase("peak"), l.erase("peak_rss");
        text += l.dump() + "\n";
    }
    write_file(place.path() / "many/metrics.jsonl", text);
    const std::string page = page_of(place, "many");
    takes_nothing_from_elsewhere(page);
    const ptree tree = parsed(page);
    for (const std::size_t points : polylines(tree)) BOOST_TEST((points > 1000 && points <= 4000), points);
    BOOST_TEST(has(page, "9,001 updates are drawn as 4,000 points: the least and the greatest of each"));
    // Both spikes are drawn: they are the ends of the vertical scale, 0 and 80.
    const std::string points = elements(tree, "polyline").front().get<std::string>("<xmlattr>.points");
    double low = 1e9, high = -1e9;
    std::istringstream in(points);
    for (std::string point; in >> point;) {
        const double y = std::stod(point.substr(point.find(',') + 1));
        low = std::min(low, y), high = std::max(high, y);
    }
    const double pixels = 330.0 - 30.0 - 46.0;
    BOOST_TEST(std::abs(low - (330.0 - 46.0 - pixels * 77.5 / 80.0)) < 0.2);
    BOOST_TEST(std::abs(high - (330.0 - 46.0 - pixels * 0.25 / 80.0)) < 0.2);
    BOOST_TEST(page.size() < 1'000'000);
}

BOOST_AUTO_TEST_CASE(a_page_of_a_run_of_an_older_version_or_of_a_damaged_one) {
    const Place place;
    place.train("run", {"memory.time_axis=\"1 MB\""});
    BOOST_TEST((polylines(parsed(page_of(place, "run"))) == std::vector<std::size_t>{6, 1, 6, 1, 6, 6, 6}));  // its limit is the axis'
    change_metrics(place.path() / "run", [](json& line) {
        for (const char* key : {"live", "peak", "peak_rss", "spent"}) line.erase(key);
        return true;
    });
    std::string page = page_of(place, "run");
    BOOST_TEST(has(page, "not noted"));
    BOOST_TEST(has(page, "This run has not noted it."));
    BOOST_TEST((polylines(parsed(page)) == std::vector<std::size_t>{6, 1, 6, 1, 6}));

    place.train("untimed", {}, {"--no-timing"});
    BOOST_TEST(!metrics(place.path() / "untimed").front().contains("spent"));
    BOOST_TEST(has(page_of(place, "untimed"), "This run has not noted it."));

    // A window of which nothing counts has no loss to draw.
    change_metrics(place.path() / "run", [](json& line) {
        if (line.at("update") == 3) line["positions"] = 0.0, line["loss"] = 0.0;
        return true;
    });
    page = page_of(place, "run");
    BOOST_TEST((polylines(parsed(page)) == std::vector<std::size_t>{5, 1, 5, 1, 6}));
    BOOST_TEST(has(page, "Updates without a position that has a loss, left out: 1"));

    std::ofstream(place.path() / "run/metrics.jsonl", std::ios::app) << "{\"update\":7,\"lo";
    fs::remove(place.path() / "run/manifest.json");
    const Answer answer = run_program({"report", "run", "--out", "elsewhere.html"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 0);
    BOOST_CHECK_EQUAL(answer.out, "elsewhere.html\n");
    BOOST_TEST(answer.says("cannot be read and are passed over: 1"));
    parsed(text_of_file(place.path() / "elsewhere.html"));

    write_file(place.path() / "run/metrics.jsonl", "");
    BOOST_TEST(has(page_of(place, "run"), "none yet"));
    place.train("run2");
    place.train("run2", {"train.updates=9"}, {"--resume"});
    BOOST_TEST((polylines(parsed(page_of(place, "run2"))) == std::vector<std::size_t>{9, 2, 9, 2, 9, 9, 9}));
}

BOOST_AUTO_TEST_CASE(what_is_no_run_is_refused) {
    const Place place;
    fs::create_directory(place.path() / "empty");
    for (const char* run : {"empty", "nowhere", "text.txt"}) {
        const Answer answer = run_program({"report", run}, place.path());
        BOOST_TEST_CONTEXT(answer.err) {
            BOOST_CHECK_EQUAL(answer.code, 2);
            BOOST_TEST(answer.says("is no run"));
            BOOST_TEST(answer.out.empty());
        }
    }
    place.train("run");
    const Answer answer = run_program({"report", "run", "--out", "nowhere/page.html"}, place.path());
    BOOST_CHECK_EQUAL(answer.code, 1);
    BOOST_TEST(answer.says("nowhere/page.html"));
    BOOST_CHECK_EQUAL(run_program({"report", "run", "--out", "."}, place.path()).code, 2);
}
