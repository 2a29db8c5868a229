// SPDX-License-Identifier: MIT
#include "cli/report_page.hpp"

#include "cli/markup.hpp"
#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

namespace backsweep::cli {

namespace {

// Colours that are told apart by people who see fewer of them; lines differ by dashes too.
constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #5f6368; --line: #dcdfe3; --page: #f6f7f9; --card: #ffffff;
  --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #7a5195; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a5abb3; --line: #3a3f45; --page: #15171a; --card: #1f2226;
  --c1: #56b4e9; --c2: #f08a3c; --c3: #35c79a; --c4: #c79fe0; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 .6rem; font-size: 1.05rem; }
p { margin: .3rem 0; color: var(--soft); }
section, figure { margin: 1rem 0 0; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tiles, .pair { display: grid; gap: 1rem; margin-top: 1rem; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); }
.tiles section, .pair section, .pair figure { margin: 0; min-width: 0; }
.tiles b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.tiles span, figcaption { color: var(--soft); font-size: .87rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 600; }
td.text { text-align: left; white-space: normal; overflow-wrap: anywhere; }
tr.sum td { font-weight: 600; }
td.bar { width: 35%; padding-right: 0; }
td.bar div { height: .75rem; background: var(--c1); border-radius: 2px; }
pre { overflow: auto; margin: .6rem 0 0; font-size: .82rem; }
svg { display: block; width: 100%; height: auto; }
.picture svg { background: #ffffff; border-radius: 4px; }
.chart text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.chart text.label { fill: var(--soft); }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.chart .level { stroke-width: 1.4; }
.s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); }
.s2 { stroke-dasharray: 7 3; } .s3 { stroke-dasharray: 2 3; } .s4 { stroke-dasharray: 9 3 2 3; }
.chart .dense { stroke-width: 1; stroke-opacity: .6; }
.chart polyline.s2 { stroke-width: 2.2; }
circle.s1, circle.s2, circle.s3 { stroke-dasharray: none; }
circle.s1 { fill: var(--c1); } circle.s2 { fill: var(--c2); } circle.s3 { fill: var(--c3); }
)";

/// 1234567 as "1,234,567".
std::string with_commas(std::int64_t n) {
    std::string digits = fmt::format("{}", n);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

/// What is measured along an axis.
enum class Unit { number, count, bytes, seconds };

struct Scale {
    double first = 0.0, last = 1.0, step = 1.0;
    double unit = 1.0;       ///< by which ticks are divided
    std::string name;        ///< of the unit, in the axis' label
};

/// 1, 2 or 5 times a power of ten.
double round_step(double rough) {
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (power * factor >= rough * (1.0 - 1e-9)) return power * factor;
    return power * 10.0;
}

/// Ticks that hold all of [least, most]; with `zero` they begin there.
Scale scale(double least, double most, Unit unit, bool zero, int wanted) {
    Scale s;
    if (zero) least = std::min(least, 0.0);
    if (!(most > least)) {
        const double room = unit == Unit::count ? 1.0 : std::max(std::abs(least) * 0.05, 1e-12);
        most = least + room;
        if (!zero && unit != Unit::count) least -= room;
    }
    if (unit == Unit::bytes)
        for (const char* name : {"B", "KiB", "MiB", "GiB", "TiB"}) {
            s.name = name;
            if (most < 1024.0 * s.unit * 2.0) break;
            if (*name != 'T') s.unit *= 1024.0;
        }
    if (unit == Unit::seconds) {
        s.name = most < 1.0 ? "ms" : most < 300.0 ? "s" : most < 4 * 3600.0 ? "min" : "h";
        s.unit = most < 1.0 ? 1e-3 : most < 300.0 ? 1.0 : most < 4 * 3600.0 ? 60.0 : 3600.0;
    }
    s.step = s.unit * round_step((most - least) / s.unit / wanted);
    if (unit == Unit::count) s.step = std::max(s.step, 1.0);
    s.first = s.step * std::floor(least / s.step + 1e-9);
    s.last = s.step * std::ceil(most / s.step - 1e-9);
    return s;
}

std::string tick_text(double value, const Scale& s, Unit unit) {
    if (std::abs(value) < 1e-9 * s.step) value = 0.0;
    if (unit == Unit::count) {
        if (value >= 1e6) return fmt::format("{:.6g}M", value / 1e6);
        if (s.last >= 1e5 && value > 0.0) return fmt::format("{:.6g}k", value / 1e3);
        return with_commas(std::llround(value));
    }
    return fmt::format("{:.6g}", value / s.unit);
}

struct Line {
    std::string name;
    int style = 1;
    const std::vector<double>* x = nullptr;
    const std::vector<double>* y = nullptr;
    bool dots = false;
};
struct Level {
    std::string name;
    int style = 1;
    double y = 0.0;
};
struct Chart {
    std::string title, caption;
    std::string x_name, y_name;
    Unit x_unit = Unit::count, y_unit = Unit::number;
    bool y_from_zero = false;
    std::vector<Line> lines;
    std::vector<Level> levels;
};

/// Indices of the points that are drawn: all that are finite, or of equal parts of them the least and the greatest.
std::vector<std::size_t> drawn(const std::vector<double>& x, const std::vector<double>& y) {
    std::vector<std::size_t> finite;
    for (std::size_t i = 0; i < y.size(); ++i)
        if (std::isfinite(x[i]) && std::isfinite(y[i])) finite.push_back(i);
    if (finite.size() <= most_points) return finite;
    std::vector<std::size_t> kept;
    const std::size_t parts = most_points / 2, n = finite.size();
    for (std::size_t p = 0; p < parts; ++p) {
        const auto from = finite.begin() + static_cast<std::ptrdiff_t>(p * n / parts);
        const auto to = finite.begin() + static_cast<std::ptrdiff_t>((p + 1) * n / parts);
        const auto [low, high] = std::minmax_element(from, to, [&](std::size_t a, std::size_t b) { return y[a] < y[b]; });
        kept.push_back(std::min(*low, *high));
        if (*low != *high) kept.push_back(std::max(*low, *high));
    }
    return kept;
}

std::string svg(const Chart& chart) {
    constexpr double width = 640.0, height = 330.0, left = 72.0, right = 14.0, top = 30.0, bottom = 46.0;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double x0 = infinity, x1 = -infinity, y0 = infinity, y1 = -infinity;
    std::vector<std::vector<std::size_t>> points;
    bool thinned = false;
    for (const Line& line : chart.lines) {
        points.push_back(drawn(*line.x, *line.y));
        thinned = thinned || points.back().size() < line.x->size();
        for (const std::size_t i : points.back()) {
            x0 = std::min(x0, (*line.x)[i]), x1 = std::max(x1, (*line.x)[i]);
            y0 = std::min(y0, (*line.y)[i]), y1 = std::max(y1, (*line.y)[i]);
        }
    }
    if (!(x0 <= x1)) return "<p>This run has not noted it.</p>\n";
    for (const Level& level : chart.levels) y0 = std::min(y0, level.y), y1 = std::max(y1, level.y);
    const Scale xs = scale(x0, x1, chart.x_unit, chart.x_unit == Unit::seconds, 7);
    const Scale ys = scale(y0, y1, chart.y_unit, chart.y_from_zero, 6);
    // Across the whole width, whatever the ticks; from 0 where that is near.
    const double from = chart.x_unit == Unit::seconds || x0 <= xs.step ? 0.0 : x0, to = x1 > from ? x1 : xs.last;
    const auto px = [&](double x) { return left + (width - left - right) * (x - from) / (to - from); };
    const auto py = [&](double y) { return height - bottom - (height - top - bottom) * (y - ys.first) / (ys.last - ys.first); };

    std::string out = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                                  escaped(chart.title));
    for (int k = 0;; ++k) {
        const double y = ys.first + k * ys.step;
        if (y > ys.last + 0.5 * ys.step) break;
        out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
                           "text-anchor=\"end\">{}</text>\n",
                           left, py(y), width - right, left - 7.0, py(y) + 4.0, tick_text(y, ys, chart.y_unit));
    }
    const double first_tick = xs.step * std::ceil(from / xs.step - 1e-9);
    for (int k = 0;; ++k) {
        const double x = first_tick + k * xs.step;
        if (x > to + 1e-9 * xs.step) break;
        out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}v5\"/><text x=\"{0:.1f}\" y=\"{2:.1f}\" "
                           "text-anchor=\"middle\">{3}</text>\n",
                           px(x), height - bottom, height - bottom + 19.0, tick_text(x, xs, chart.x_unit));
    }
    const auto label = [](const std::string& name, const Scale& s) {
        return escaped(s.name.empty() ? name : fmt::format("{} [{}]", name, s.name));
    };
    out += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       (left + width - right) / 2.0, height - 9.0, label(chart.x_name, xs));
    out += fmt::format("<text class=\"label\" x=\"14\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0:.1f})\">{1}</text>\n",
                       (top + height - bottom) / 2.0, label(chart.y_name, ys));
    double legend = left;
    const auto key = [&](const std::string& name, int style) {
        out += fmt::format("<path class=\"s{0} level\" d=\"M{1:.0f} 13h22\"/><text x=\"{2:.0f}\" y=\"17\">{3}</text>\n", style,
                           legend, legend + 28.0, escaped(name));
        legend += 46.0 + 6.6 * static_cast<double>(name.size());
    };
    for (std::size_t k = 0; k < chart.lines.size(); ++k) {
        const Line& line = chart.lines[k];
        if (points[k].empty()) continue;
        out += fmt::format("<polyline class=\"s{}{}\" points=\"", line.style,
                           points[k].size() > most_points / 2 ? " dense" : "");
        for (const std::size_t i : points[k])
            out += fmt::format("{:.1f},{:.1f} ", px((*line.x)[i]), py((*line.y)[i]));
        out.back() = '"';
        out += "/>\n";
        if (line.dots || points[k].size() == 1)
            for (const std::size_t i : points[k])
                out += fmt::format("<circle class=\"s{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", line.style,
                                   px((*line.x)[i]), py((*line.y)[i]));
    }
    for (const Level& level : chart.levels)
        out += fmt::format("<path class=\"s{} level\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", level.style, left, py(level.y),
                           width - right);
    for (std::size_t k = 0; k < chart.lines.size(); ++k)
        if (!points[k].empty()) key(chart.lines[k].name, chart.lines[k].style);
    for (const Level& level : chart.levels) key(level.name, level.style);
    out += "</svg>\n";
    std::string caption = chart.caption;
    if (thinned && points.front().size() >= most_points / 2)
        caption += fmt::format("{}{} updates are drawn as {} points: the least and the greatest of each {}.", caption.empty() ? "" : " ",
                               with_commas(std::ssize(*chart.lines.front().x)), with_commas(std::ssize(points.front())),
                               with_commas(std::ssize(*chart.lines.front().x) / static_cast<Index>(most_points / 2)));
    if (!caption.empty()) out += fmt::format("<figcaption>{}</figcaption>\n", escaped(caption));
    return out;
}

std::string figure(const Chart& chart) {
    return fmt::format("<figure>\n<h2>{}</h2>\n{}</figure>\n", escaped(chart.title), svg(chart));
}

std::string tile(const std::string& what, const std::string& value, const std::string& more = "") {
    return fmt::format("<section><span>{}</span><b>{}</b><span>{}</span></section>\n", escaped(what), escaped(value), escaped(more));
}

std::string loss_text(double loss) { return fmt::format("{:.6g}", loss); }
std::string bits_text(double loss, bool bits) {
    return bits ? fmt::format("{:.4f} bits per character", loss / std::numbers::ln2) : std::string{};
}

/// The last finite one.
std::optional<double> last_of(const std::vector<double>& values) {
    for (auto it = values.rbegin(); it != values.rend(); ++it)
        if (std::isfinite(*it)) return *it;
    return std::nullopt;
}

std::vector<History::Evaluated> of_part(const History& h, const std::string& part) {
    std::vector<History::Evaluated> found;
    for (const History::Evaluated& e : h.evaluated)
        if (e.part == part && std::isfinite(e.loss)) found.push_back(e);
    return found;
}

std::string tiles(const Page& page) {
    const History& h = page.history;
    const double seconds = last_of(h.seconds).value_or(0.0);
    const auto updates = static_cast<Index>(last_of(h.update).value_or(0.0));
    std::string out = "<div class=\"tiles\">\n";
    out += tile("updates", with_commas(updates),
                updates > 0 ? fmt::format("{:.4g} ms each", 1e3 * seconds / static_cast<double>(updates)) : "none yet");
    out += tile("time of training", time_in_words(seconds), "evaluations and snapshots not counted");
    if (const auto loss = last_of(h.loss)) out += tile("last loss", loss_text(*loss), bits_text(*loss, h.bits));
    const std::vector<History::Evaluated> valid = of_part(h, "valid");
    if (!valid.empty()) {
        const auto best = std::min_element(valid.begin(), valid.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
        out += tile("best validation loss", loss_text(best->loss),
                    fmt::format("after update {}{}{}", with_commas(static_cast<Index>(best->update)), h.bits ? ", " : "",
                                bits_text(best->loss, h.bits)));
    }
    if (h.measured) {
        const std::int64_t limit = page.limits.ram;
        out += tile("peak bytes", bytes_in_words(h.measured->total()),
                    limit == Budget::unlimited ? std::string("no limit was given")
                                               : fmt::format("{:.1f} % of the limit of {}",
                                                             100.0 * static_cast<double>(h.measured->total()) / static_cast<double>(limit),
                                                             bytes_in_words(limit)));
    }
    out += tile("forward work over the least", fmt::format("{:.3f}", page.plan.recompute_factor()),
                in_words(page.plan.schedule));
    return out + "</div>\n";
}

std::string bytes_table(const Page& page) {
    const History& h = page.history;
    std::string out = "<section><h2>Bytes, predicted and measured</h2>\n<div class=\"wide\"><table>\n"
                      "<tr><th>kind</th><th>predicted</th><th>measured</th><th>difference</th></tr>\n";
    const auto row = [&](const char* name, std::int64_t predicted, std::optional<std::int64_t> measured, bool sum) {
        out += fmt::format("<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", sum ? " class=\"sum\"" : "", name,
                           with_commas(predicted), measured ? with_commas(*measured) : "not noted",
                           measured ? with_commas(*measured - predicted) : "");
    };
    const auto measured = [&](auto of) { return h.measured ? std::optional<std::int64_t>(of(*h.measured)) : std::nullopt; };
    for (std::size_t k = 0; k < kind_count; ++k)
        row(to_string(static_cast<Kind>(k)), page.plan.predicted.by_kind[k], measured([&](const Bytes& b) { return b.by_kind[k]; }), false);
    row("time axis", page.plan.predicted.time_axis(), measured([](const Bytes& b) { return b.time_axis(); }), true);
    row("total", page.plan.predicted.total(), measured([](const Bytes& b) { return b.total(); }), true);
    out += "</table></div>\n<p>The peak of each kind over all updates, all shards together. The time axis is data, carry, slots, tape "
           "and log.";
    if (h.peak_rss > 0) out += fmt::format(" Resident memory of the process: {} at most.", bytes_in_words(h.peak_rss));
    return out + "</p>\n</section>\n";
}

double at(const VerbSeconds& spent, Verb verb) { return spent[static_cast<std::size_t>(verb)]; }

std::string time_table(const Page& page) {
    const History& h = page.history;
    std::string out = "<section><h2>Time by kind of action</h2>\n";
    double all = 0.0;
    for (const double s : h.spent) all += s;
    if (!(all > 0.0)) return out + "<p>This run has not noted it.</p>\n</section>\n";
    const double rest = std::max(0.0, h.spent_within * static_cast<double>(page.threads) - all), sum = all + rest;
    std::vector<std::pair<std::string, double>> rows;
    for (std::size_t v = 0; v < h.spent.size(); ++v)
        if (h.spent[v] > 0.0) rows.emplace_back(to_string(static_cast<Verb>(v)), h.spent[v]);
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    rows.emplace_back("all else", rest);
    const double longest = std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->second;
    out += "<div class=\"wide\"><table>\n<tr><th>action</th><th>seconds</th><th>share</th><th></th></tr>\n";
    for (const auto& [name, seconds] : rows)
        out += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.1f} %</td><td class=\"bar\"><div style=\"width:{:.1f}%\"></div></td></tr>\n",
                           name, seconds, 100.0 * seconds / sum, 100.0 * seconds / longest);
    out += "</table></div>\n";
    out += fmt::format("<p>Seconds of {}; all else is reading data, the optimizer, clocks and shards that wait.</p>\n",
                       page.threads == 1 ? std::string("one thread") : fmt::format("{} threads, added up", page.threads));
    const double least = at(h.spent, Verb::record) + at(h.spent, Verb::tape) + at(h.spent, Verb::reverse);
    if (least > 0.0)
        out += fmt::format("<p>Time of the sweeps over that of one that keeps every tape: predicted {:.3f}{}, measured {:.3f}.</p>\n",
                           page.plan.slowdown(), page.plan.measured ? "" : " by counted work", all / least);
    if (h.recorded > 0)
        out += fmt::format("<p>Forward work over the least possible: predicted {:.3f} for a full window, counted {:.3f} over all.</p>\n",
                           page.plan.recompute_factor(), static_cast<double>(h.advances + h.recorded) / static_cast<double>(h.recorded));
    return out + "</section>\n";
}

std::string evaluations_table(const History& h) {
    if (h.evaluated.empty()) return {};
    constexpr std::size_t most = 20;
    std::string out = "<section><h2>Losses of other parts of the data</h2>\n<div class=\"wide\"><table>\n<tr><th>part</th><th>after update</th><th>loss</th>";
    if (h.bits) out += "<th>bits per character</th>";
    out += "</tr>\n";
    const std::size_t first = h.evaluated.size() > most ? h.evaluated.size() - most : 0;
    for (std::size_t i = first; i < h.evaluated.size(); ++i) {
        const History::Evaluated& e = h.evaluated[i];
        out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", escaped(e.part), with_commas(static_cast<Index>(e.update)), loss_text(e.loss));
        if (h.bits) out += fmt::format("<td>{:.4f}</td>", e.loss / std::numbers::ln2);
        out += "</tr>\n";
    }
    out += "</table></div>\n";
    if (first > 0) out += fmt::format("<p>The last {} of {}.</p>\n", most, with_commas(std::ssize(h.evaluated)));
    return out + "</section>\n";
}

std::string facts_table(const Page& page) {
    std::string out = "<section><h2>What ran</h2>\n<div class=\"wide\"><table>\n";
    const auto row = [&](const std::string& name, const std::string& value) {
        out += fmt::format("<tr><td>{}</td><td class=\"text\">{}</td></tr>\n", escaped(name), escaped(value));
    };
    for (auto [name, value] : page.history.facts) {
        std::replace(name.begin(), name.end(), '_', ' ');
        row(name, value);
    }
    const Plan& plan = page.plan;
    row("plan", fmt::format("{}: {} links of {} steps, {} advances and {} recorded for each sweep", in_words(plan.schedule),
                            plan.schedule.steps, plan.chunk, plan.advances, plan.recorded));
    if (plan.depth.family != "store_all") row("depth", plan.depth.family);
    if (!plan.save.empty()) row("tapes keep", plan.save);
    if (!plan.memories.empty()) row("remembered rows lie in", plan.memories);
    if (plan.disk > 0) row("disk", bytes_in_words(plan.disk) + ", predicted");
    return out + "</table></div>\n</section>\n";
}

}  // namespace

std::string report_page(const Page& page) {
    const History& h = page.history;
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}: Backsweep</title>\n"
        "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        escaped(page.name), style);
    if (h.unreadable > 0)
        out += fmt::format("<p>Lines of metrics.jsonl that could not be read and are passed over: {}</p>\n", h.unreadable);
    out += tiles(page);

    std::vector<double> valid_update, valid_seconds, valid_loss;
    for (const History::Evaluated& e : of_part(h, "valid")) {
        const auto behind = std::upper_bound(h.update.begin(), h.update.end(), e.update);
        valid_update.push_back(e.update);
        valid_loss.push_back(e.loss);
        valid_seconds.push_back(behind == h.update.begin() ? 0.0 : h.seconds[static_cast<std::size_t>(behind - h.update.begin()) - 1]);
    }
    const std::string silent = h.silent == 0 ? "" : fmt::format("Updates without a position that has a loss, left out: {}.", with_commas(h.silent));
    Chart loss{"Loss over updates", silent, "update", "loss", Unit::count, Unit::number, false, {}, {}};
    loss.lines.push_back({"training", 1, &h.update, &h.loss});
    if (!valid_loss.empty()) loss.lines.push_back({"validation", 2, &valid_update, &valid_loss, valid_loss.size() <= 60});
    Chart timed{"Loss over time", "", "time of training", "loss", Unit::seconds, Unit::number, false, {}, {}};
    timed.lines.push_back({"training", 1, &h.seconds, &h.loss});
    if (!valid_loss.empty()) timed.lines.push_back({"validation", 2, &valid_seconds, &valid_loss, valid_loss.size() <= 60});
    Chart rate{"Learning rate", "", "update", "rate", Unit::count, Unit::number, true, {{"rate", 1, &h.update, &h.rate}}, {}};
    Chart bytes{"Bytes over time", "Live bytes are those between two updates.", "time of training", "bytes", Unit::seconds, Unit::bytes, true, {}, {}};
    bytes.lines = {{"peak so far", 1, &h.seconds, &h.peak}, {"live", 3, &h.seconds, &h.live}};
    bytes.levels.push_back({"predicted", 4, static_cast<double>(page.plan.predicted.total())});
    if (page.limits.ram != Budget::unlimited) bytes.levels.push_back({"limit", 2, static_cast<double>(page.limits.ram)});
    out += "<div class=\"pair\">\n" + figure(loss) + figure(timed) + figure(rate);
    const bool axis_limited = page.limits.time_axis != Budget::unlimited;
    if (page.limits.ram != Budget::unlimited || !axis_limited) out += figure(bytes);
    if (axis_limited) {
        Chart axis{"Bytes of the time axis", "Data, carry, slots, tape and log.", "time of training", "bytes", Unit::seconds, Unit::bytes, true, {}, {}};
        axis.lines = {{"peak so far", 1, &h.seconds, &h.peak_time_axis}, {"live", 3, &h.seconds, &h.live_time_axis}};
        axis.levels = {{"predicted", 4, static_cast<double>(page.plan.predicted.time_axis())},
                       {"limit", 2, static_cast<double>(page.limits.time_axis)}};
        out += figure(axis);
    }
    out += "</div>\n<div class=\"pair\">\n" + bytes_table(page) + time_table(page) + "</div>\n";
    out += fmt::format("<figure class=\"picture\">\n<h2>The schedule of a window</h2>\n{}</figure>\n",
                       page.picture.empty() ? fmt::format("<p>Not drawn: {}</p>\n", escaped(page.no_picture)) : page.picture);
    out += evaluations_table(h) + facts_table(page);
    out += fmt::format("<section><details><summary>Configuration with all defaults</summary>\n<pre>{}</pre></details></section>\n",
                       escaped(page.config));
    return out + "</body>\n</html>\n";
}

}  // namespace backsweep::cli
