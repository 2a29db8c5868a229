// SPDX-License-Identifier: MIT
#include "cli/plot.hpp"

#include "backsweep/base/error.hpp"
#include "cli/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace backsweep::cli {

namespace {

constexpr double width = 1200.0, height = 720.0, left = 70.0, right = 20.0, top = 60.0, bottom = 50.0;
constexpr Index most_actions = 100'000'000;

/// What is drawn in one colour.
enum class Stroke : std::size_t { device, pinned, ram, disk, tape, advance, record, reverse };

struct Style {
    const char* id;
    const char* name;
    const char* colour;
    double width;
    const char* dashes;
};

/// Colours that are told apart by people who see fewer of them, and on grey paper by width and dashes.
constexpr std::array styles{
    Style{"device", "slot on the device", "#009e73", 1.6, ""},
    Style{"pinned", "slot in pinned memory", "#56b4e9", 1.6, ""},
    Style{"ram", "slot in RAM", "#e69f00", 1.6, ""},
    Style{"disk", "slot on disk", "#cc79a7", 1.6, ""},
    Style{"tape", "kept tape", "#999999", 1.2, "3 2"},
    Style{"advance", "advance", "#0072b2", 1.0, ""},
    Style{"record", "record", "#000000", 2.2, ""},
    Style{"reverse", "reverse", "#d55e00", 2.2, ""},
};

/// Links run or reversed by an action.
Index duration(const Action& a) {
    switch (a.verb) {
        case Verb::advance:
            return a.steps.size();
        case Verb::record:
        case Verb::tape:
        case Verb::reverse:
            return 1;
        default:
            return 0;
    }
}

Index time_of(Schedule& schedule) {
    Index time = 0, actions = 0;
    for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next()) {
        if (++actions > most_actions)
            throw InvalidArgument(
                fmt::format("--plot: this schedule has more than {} actions; draw fewer steps", most_actions));
        time += duration(a);
    }
    return time;
}

/// The lines of each stroke, in tenths of a pixel.
class Drawing {
public:
    Drawing(double time, double chain) : time_(time), chain_(chain) {}

    double x(double time) const { return left + (width - left - right) * time / time_; }
    double y(double step) const { return height - bottom - (height - top - bottom) * step / chain_; }

    void play(Schedule& schedule) {
        for (Action a = schedule.next(); a.verb != Verb::done; a = schedule.next()) perform(a);
        while (!open_.empty()) close(open_.begin()->first);
    }

    const std::string& path(Stroke stroke) const { return paths_[static_cast<std::size_t>(stroke)]; }

private:
    using Place = std::pair<Tier, std::int32_t>;
    struct Open {
        Index since;
        double step;
        bool tape;
    };

    void perform(const Action& a) {
        switch (a.verb) {
            case Verb::advance:
                run(Stroke::advance, a.steps, a.steps.size());
                break;
            case Verb::record:
            case Verb::tape:
                run(Stroke::record, a.steps, 1);
                break;
            case Verb::reverse:
                run(Stroke::reverse, {a.steps.last, a.steps.first}, 1);
                break;
            case Verb::save:
            case Verb::stow:
                open(a.to, a.steps);
                break;
            case Verb::take:
            case Verb::fetch:
                close({a.from.tier, a.from.index});
                break;
            case Verb::drop:
                if (a.from.index >= 0) close({a.from.tier, a.from.index});
                break;
            case Verb::move:
                close({a.from.tier, a.from.index});
                open(a.to, a.steps);
                break;
            default:
                break;
        }
    }

    void run(Stroke stroke, Range from_to, Index duration) {
        line(stroke, now_, static_cast<double>(from_to.first), now_ + duration, static_cast<double>(from_to.last));
        now_ += duration;
    }

    void open(Slot slot, Range steps) {
        const bool tape = steps.size() != 0;  // drawn in the middle of its link
        open_[{slot.tier, slot.index}] = {now_, static_cast<double>(steps.first) + (tape ? 0.5 : 0.0), tape};
    }

    void close(Place place) {
        const auto found = open_.find(place);
        if (found == open_.end()) return;
        const Open& o = found->second;
        line(o.tape ? Stroke::tape : static_cast<Stroke>(place.first), o.since, o.step, now_, o.step);
        open_.erase(found);
    }

    void line(Stroke stroke, Index from, double first, Index to, double last) {
        const auto tenth = [](double pixels) { return std::lround(10.0 * pixels); };
        const std::array<long, 4> at{tenth(x(static_cast<double>(from))), tenth(y(first)),
                                     tenth(x(static_cast<double>(to))), tenth(y(last))};
        const auto k = static_cast<std::size_t>(stroke);
        if (!drawn_[k].insert(at).second) return;
        const auto px = [&](std::size_t i) { return fmt::format("{:g}", static_cast<double>(at[i]) / 10.0); };
        paths_[k] += at[1] == at[3] ? fmt::format("M{} {}H{}", px(0), px(1), px(2))
                                    : fmt::format("M{} {}L{} {}", px(0), px(1), px(2), px(3));
    }

    double time_, chain_;
    Index now_ = 0;
    std::map<Place, Open> open_;
    std::array<std::set<std::array<long, 4>>, styles.size()> drawn_;
    std::array<std::string, styles.size()> paths_;
};

/// A round distance between ticks, so that there are about `wanted` of them.
double tick(double range, int wanted) {
    const double rough = std::max(range / wanted, 1.0), power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (power * factor >= rough) return power * factor;
    return power * 10.0;
}

}  // namespace

std::string plot(Schedule& schedule, Index steps, const std::string& title) {
    schedule.rewind();
    const double time = std::max<double>(1.0, static_cast<double>(time_of(schedule)));
    const double chain = std::max<double>(1.0, static_cast<double>(steps));
    schedule.rewind();
    Drawing drawing(time, chain);
    drawing.play(schedule);
    schedule.rewind();
    const auto x = [&](double t) { return drawing.x(t); };
    const auto y = [&](double step) { return drawing.y(step); };

    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
        "<text x=\"{3}\" y=\"20\" font-size=\"15\">{2}</text>\n",
        width, height, escaped(title), left);

    out += "<g stroke=\"#dddddd\" fill=\"#333333\" stroke-width=\"1\">\n";
    for (double step = 0.0; step <= chain; step += tick(chain, 12))
        out += fmt::format(
            "<path d=\"M{:.1f} {:.1f}H{:.1f}\"/><text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"end\">{:.0f}</text>\n",
            left, y(step), width - right, left - 8.0, y(step) + 4.0, step);
    for (double t = 0.0; t <= time; t += tick(time, 12))
        out += fmt::format(
            "<path d=\"M{:.1f} {:.1f}V{:.1f}\"/><text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"middle\">{:.0f}</text>\n",
            x(t), height - bottom, height - bottom + 5.0, x(t), height - bottom + 20.0, t);
    out += fmt::format(
        "<text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">time, in links run or "
        "reversed</text>\n<text stroke=\"none\" x=\"18\" y=\"{:.1f}\" text-anchor=\"middle\" "
        "transform=\"rotate(-90 18 {:.1f})\">step</text>\n</g>\n",
        (left + width - right) / 2.0, height - 12.0, (top + height - bottom) / 2.0, (top + height - bottom) / 2.0);

    // Where a link is less than a pixel or two, lines as wide as that would hide each other.
    const double thin = std::clamp((y(0.0) - y(1.0)) / 2.0, 0.4, 1.0);
    double legend = left;
    for (std::size_t k = 0; k < styles.size(); ++k) {
        const std::string& path = drawing.path(static_cast<Stroke>(k));
        if (path.empty()) continue;
        const Style& style = styles[k];
        const auto pen = [&](double thin) {
            return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2g}\" stroke-dasharray=\"{}\"",
                               style.colour, thin * style.width, *style.dashes ? style.dashes : "none");
        };
        out += fmt::format("<path id=\"{}\" {} d=\"{}\"/>\n", style.id, pen(thin), path);
        out += fmt::format("<path {} d=\"M{:.0f} 42h24\"/><text x=\"{:.0f}\" y=\"46\">{}</text>\n", pen(1.0), legend,
                           legend + 30.0, style.name);
        legend += 50.0 + 7.0 * static_cast<double>(std::char_traits<char>::length(style.name));
    }
    return out + "</svg>\n";
}

}  // namespace backsweep::cli
