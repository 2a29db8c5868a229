// SPDX-License-Identifier: MIT
#include "cli/front_plot.hpp"

#include "cli/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace backsweep::cli {

namespace {

constexpr double width = 900.0, height = 560.0, left = 70.0, right = 30.0, top = 60.0, bottom = 60.0;

}  // namespace

std::string plot_front(const std::vector<Candidate>& candidates, const Budget& budget,
                       const std::function<double(std::int64_t)>& envelope, const std::string& title) {
    double least = 0.0, most = 1.0, slowest = 1.2;
    for (const Candidate& c : candidates) {
        const auto bytes = static_cast<double>(c.plan.predicted.total());
        least = least == 0.0 ? bytes : std::min(least, bytes);
        most = std::max(most, bytes);
        if (c.plan.slowdown() < 4.0) slowest = std::max(slowest, c.plan.slowdown());
    }
    least *= 0.9, most *= 1.1;
    // Bytes by their logarithm: what matters is their ratio.
    const auto x = [&](double bytes) {
        return left + (width - left - right) * std::log(bytes / least) / std::log(most / least);
    };
    const auto y = [&](double slowdown) {
        return height - bottom - (height - top - bottom) * (std::min(slowdown, slowest) - 1.0) / (slowest - 1.0);
    };
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{3}\" y=\"20\" font-size=\"15\">{2}</text>\n"
        "<g stroke=\"#dddddd\" fill=\"#333333\">\n",
        width, height, escaped(title), left);
    const double span = slowest - 1.0, step = span > 1.5 ? 0.5 : span > 0.6 ? 0.2 : 0.1;
    for (double t = 1.0; t <= slowest + 1e-9; t += step)
        out += fmt::format(
            "<path d=\"M{:.1f} {:.1f}H{:.1f}\"/><text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"end\">{:.1f}</text>\n",
            left, y(t), width - right, left - 8.0, y(t) + 4.0, t);
    double last = -1e9;
    for (double bytes = std::exp2(std::floor(std::log2(least))); bytes <= most; bytes *= 2.0) {
        if (bytes < least || x(bytes) - last < 70.0) continue;
        last = x(bytes);
        out += fmt::format(
            "<path d=\"M{:.1f} {:.1f}V{:.1f}\"/><text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"middle\">{}</text>\n",
            last, top, height - bottom + 5.0, last, height - bottom + 20.0,
            bytes_in_words(static_cast<std::int64_t>(bytes)));
    }
    out += fmt::format(
        "<text stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">bytes in all</text>\n"
        "<text stroke=\"none\" x=\"18\" y=\"{:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1f})\">"
        "time, 1 where nothing is run again</text>\n</g>\n",
        (left + width - right) / 2.0, height - 16.0, (top + height - bottom) / 2.0, (top + height - bottom) / 2.0);

    const auto line = [&](const char* id, const char* pen, const std::vector<std::pair<double, double>>& points) {
        std::string at;
        for (const auto& [bytes, slowdown] : points)
            at += fmt::format("{}{:.1f},{:.1f}", at.empty() ? "" : " ", x(bytes), y(slowdown));
        out += fmt::format("<polyline id=\"{}\" fill=\"none\" {} points=\"{}\"/>\n", id, pen, at);
    };
    std::vector<std::pair<double, double>> bound;
    for (int k = 0; k <= 200; ++k) {
        const double bytes = least * std::pow(most / least, k / 200.0);
        bound.emplace_back(bytes, std::max(1.0, envelope(static_cast<std::int64_t>(bytes))));
    }
    line("envelope", "stroke=\"#999999\" stroke-width=\"1.4\" stroke-dasharray=\"4 3\"", bound);
    std::vector<Plan> plans;
    for (const Candidate& c : candidates) plans.push_back(c.plan);
    std::vector<std::pair<double, double>> front;
    for (const Plan& plan : pareto(std::move(plans)))
        front.emplace_back(static_cast<double>(plan.predicted.total()), plan.slowdown());
    line("front", "stroke=\"#0072b2\" stroke-width=\"1.8\"", front);
    for (const Candidate& c : candidates)
        out += fmt::format(
            "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: {}, "
            "{:.3f}</title></circle>\n",
            c.chosen ? "chosen" : "plan", x(static_cast<double>(c.plan.predicted.total())), y(c.plan.slowdown()),
            c.chosen ? 7 : 3.5, c.chosen ? "#d55e00" : "#0072b2", escaped(in_words(c.plan)),
            bytes_in_words(c.plan.predicted.total()), c.plan.slowdown());
    if (const auto limit = static_cast<double>(budget.ram);
        budget.ram != Budget::unlimited && limit > least && limit < most)
        out += fmt::format("<path id=\"limit\" stroke=\"#009e73\" stroke-width=\"1.4\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n",
                           x(limit), top, height - bottom);
    out += fmt::format(
        "<g fill=\"#333333\"><circle cx=\"{0}\" cy=\"42\" r=\"7\" fill=\"#d55e00\"/><text x=\"{1}\" "
        "y=\"46\">chosen</text>"
        "<path d=\"M{2} 42h24\" stroke=\"#0072b2\" stroke-width=\"1.8\"/><text x=\"{3}\" y=\"46\">no plan has less of "
        "both</text>"
        "<path d=\"M{4} 42h24\" stroke=\"#999999\" stroke-dasharray=\"4 3\"/><text x=\"{5}\" y=\"46\">no plan lies "
        "below</text>"
        "<path d=\"M{6} 42h24\" stroke=\"#009e73\"/><text x=\"{7}\" y=\"46\">limit</text></g>\n</svg>\n",
        left + 8.0, left + 22.0, left + 90.0, left + 120.0, left + 280.0, left + 310.0, left + 440.0, left + 470.0);
    return out;
}

}  // namespace backsweep::cli
