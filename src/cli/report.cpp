// SPDX-License-Identifier: MIT
#include "cli/report.hpp"

#include "base/build_info.hpp"
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace backsweep::cli {

std::string in_words(const Plan& plan) {
    std::string out = in_words(plan.schedule);
    const DepthChoice& d = plan.depth;
    if (d.family != "store_all") {
        out += "; depth " + d.family;
        if (d.period > 0) out += fmt::format(", period {}", d.period);
        if (d.family == "slots") out += fmt::format(", slots {}", d.slots);
        if (d.budget > 0) out += ", " + bytes_in_words(d.budget);
    }
    if (!plan.save.empty() && plan.save != "everything") out += "; save " + plan.save;
    if (!plan.memories.empty() && plan.memories != "log") out += "; rows in " + plan.memories;
    return out;
}

std::string in_words(const ScheduleOptions& o) {
    std::string out = o.family;
    const auto number = [&](const char* name, Index value) {
        if (value > 0) out += fmt::format(", {} {}", name, value);
    };
    number(o.family == "mixed" ? "units" : "slots", o.slots);
    number("tape units", o.tape_units);
    if (o.restart) out += ", restart";
    number("period", o.period);
    number("segments", o.segments);
    for (const Level& level : o.levels)
        out += fmt::format(", {} {}", to_string(level.tier),
                           level.slots < 0 ? std::string("any") : fmt::format("{}", level.slots));
    if (!o.rule.empty()) out += fmt::format(", rule {}", o.rule);
    return out;
}

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Bytes& bytes) {
    Json out;
    for (std::size_t k = 0; k < kind_count; ++k) out[to_string(static_cast<Kind>(k))] = bytes.by_kind[k];
    out["time_axis"] = bytes.time_axis();
    out["total"] = bytes.total();
    return out;
}

void add_loss(Json& out, double loss, bool bits) {
    out["loss"] = loss;
    if (bits) out["bits_per_character"] = loss / std::numbers::ln2;
}

Json json_of(const PartLoss& p) {
    Json out;
    add_loss(out, p.result.loss, p.bits);
    out["positions"] = p.result.positions;
    out["windows"] = p.result.windows;
    return out;
}

void add_schedule(Json& out, const ScheduleOptions& o) {
    out["schedule"] = o.family;
    if (o.slots > 0) out[o.family == "mixed" ? "units" : "slots"] = o.slots;
    if (o.tape_units > 0) out["tape_units"] = o.tape_units;
    if (o.restart) out["restart"] = true;
    if (o.period > 0) out["period"] = o.period;
    if (o.segments > 0) out["segments"] = o.segments;
    if (o.depth > 0) out["depth"] = o.depth;
    for (const Level& level : o.levels)
        out["levels"].push_back(
            {{"tier", to_string(level.tier)}, {"slots", level.slots}, {"write", level.write}, {"read", level.read}});
    if (!o.rule.empty()) out["rule"] = o.rule;
}

void add_plan(Json& out, const Plan& plan, Index steps) {
    add_schedule(out, plan.schedule);
    out["steps"] = steps;
    out["chunk"] = plan.chunk;
    out["links"] = plan.schedule.steps;
    out["advances"] = plan.advances;
    out["recorded"] = plan.recorded;
    out["recompute_factor"] = plan.recompute_factor();
    if (!plan.save.empty()) out["save"] = plan.save;
    out["depth"] = {{"family", plan.depth.family}};
    if (plan.depth.period > 0) out["depth"]["period"] = plan.depth.period;
    if (plan.depth.family == "slots") out["depth"]["slots"] = plan.depth.slots;
    if (plan.depth.budget > 0) out["depth"]["budget"] = plan.depth.budget;
    if (!plan.memories.empty()) out["memories"] = plan.memories;
    out["disk"] = plan.disk;
    out["cost"] = plan.cost;
    out["slowdown"] = plan.slowdown();
    out["measured_costs"] = plan.measured;
}

std::string part_in_words(const PartLoss& p) {
    return fmt::format("{}: loss {} over {:.0f} positions in {} windows\n", p.part,
                       loss_in_words(p.result.loss, p.bits), p.result.positions, p.result.windows);
}

/// Left column to the left, the others to the right, as wide as they need.
std::string table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string out;
    for (const auto& row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c)
            out += c == 0 ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("  {:>{}}", row[c], widths[c]);
        out += '\n';
    }
    return out;
}

/// Measured bytes and time, beside those of store_all; empty if nothing was measured.
std::string measured_as_text(const std::vector<Candidate>& candidates) {
    const auto is_stored = [](const Candidate& c) { return c.plan.cost == c.plan.least_cost && c.measured; };
    const auto stored = std::find_if(candidates.begin(), candidates.end(), is_stored);
    if (stored == candidates.end()) return {};
    const auto bytes = [](std::int64_t b, std::int64_t of) {
        return fmt::format("{} ({:5.1f} %)", bytes_in_words(b),
                           100.0 * static_cast<double>(b) / static_cast<double>(of));
    };
    std::vector<std::vector<std::string>> rows{{"measured", "time axis", "total", "time of an update"}};
    for (const Candidate& c : candidates)
        if (c.measured)
            rows.push_back(
                {(is_stored(c) ? "stored everything: " : "checkpointed: ") + in_words(c.plan),
                 bytes(c.measured->time_axis(), stored->measured->time_axis()),
                 bytes(c.measured->total(), stored->measured->total()),
                 fmt::format("{:.1f} ms ({:5.1f} %)", 1e3 * *c.seconds, 100.0 * *c.seconds / *stored->seconds)});
    return fmt::format("\n{}", table(rows));
}

}  // namespace

std::string as_text(const TrainReport& r) {
    const double updates = static_cast<double>(std::max<Index>(r.updates, 1));
    std::string out = fmt::format("{} updates ({} whole epochs) in {:.1f} s ({:.1f} ms an update)", r.updates, r.epochs,
                                  r.seconds, 1e3 * r.seconds / updates);
    out += r.loss ? fmt::format(", last loss {}\n", loss_in_words(*r.loss, r.bits)) : "; no further one was made\n";
    if (r.valid) out += part_in_words(*r.valid);
    const std::string where = fmt::format("run {}, snapshot {}\n", r.folder, r.snapshot);
    if (!r.loss) return out + where;
    if (r.remainder > 0)
        out += fmt::format("the last {} positions of the data are not read: they do not fill the batch\n", r.remainder);
    out += fmt::format(
        "plan {}: {} links of {} steps, {} advances and {} recorded for each of {} sweeps an update; recompute "
        "factor {:.3f}\n",
        in_words(r.plan), r.plan.schedule.steps, r.plan.chunk, r.plan.advances, r.plan.recorded, r.chains,
        r.plan.recompute_factor());
    out += fmt::format("measured: {} advances and {} recorded in the last update, {} and {} in all\n", r.last.advances,
                       r.last.recorded, r.all.advances, r.all.recorded);
    std::vector<std::vector<std::string>> rows{{"bytes", "predicted", "measured"}};
    const auto row = [&](const char* name, std::int64_t predicted, std::int64_t measured) {
        rows.push_back({name, fmt::format("{}", predicted), fmt::format("{}", measured)});
    };
    for (std::size_t k = 0; k < kind_count; ++k)
        row(to_string(static_cast<Kind>(k)), r.plan.predicted.by_kind[k], r.measured.by_kind[k]);
    row("time axis", r.plan.predicted.time_axis(), r.measured.time_axis());
    row("total", r.plan.predicted.total(), r.measured.total());
    out += table(rows);
    out += fmt::format("peak resident memory of the process: {}\n", bytes_in_words(r.peak_rss));
    return out + where;
}

std::string as_json(const TrainReport& r) {
    Json out;
    out["updates"] = r.updates;
    out["epochs"] = r.epochs;
    out["seconds"] = r.seconds;
    if (r.loss) add_loss(out, *r.loss, r.bits);
    if (r.valid) out["valid"] = json_of(*r.valid);
    out["remainder"] = r.remainder;
    add_plan(out, r.plan, r.steps);
    out["chains"] = r.chains;
    out["measured"] = {{"advances", r.last.advances}, {"recorded", r.last.recorded}, {"reversed", r.last.reversed}};
    out["bytes"] = {
        {"predicted", json_of(r.plan.predicted)}, {"measured", json_of(r.measured)}, {"peak_rss", r.peak_rss}};
    out["folder"] = r.folder;
    out["snapshot"] = r.snapshot;
    if (r.interrupted) out["interrupted"] = r.interrupted;
    return out.dump(2) + "\n";
}

std::string as_text(const std::vector<Candidate>& candidates, Index steps, const Budget& budget) {
    const auto number = [](std::int64_t n) { return fmt::format("{}", n); };
    const auto limit = [](std::int64_t bytes) {
        return bytes == Budget::unlimited ? std::string("none") : bytes_in_words(bytes);
    };
    std::vector<std::vector<std::string>> rows{{"plan", "chunk", "time", "advances", "recorded", "carry", "slots", "tape", "log",
                                                "workspace", "time axis", "total", "disk", "fits"}};
    std::string out;
    for (const Candidate& c : candidates) {
        const Bytes& b = c.plan.predicted;
        rows.push_back({(c.chosen ? "* " : "  ") + in_words(c.plan), number(c.plan.chunk),
                        fmt::format("{:.3f}", c.plan.slowdown()), number(c.plan.advances), number(c.plan.recorded),
                        number(b[Kind::carry]), number(b[Kind::slots]), number(b[Kind::tape]), number(b[Kind::log]),
                        number(b[Kind::workspace]), number(b.time_axis()), number(b.total()), number(c.plan.disk),
                        c.fits ? "yes" : "no"});
    }
    if (!candidates.empty()) {
        const Plan& plan = candidates.front().plan;
        out += fmt::format("window of {} steps; limits: all kinds {}, time axis {}, disk {}\n", steps, limit(budget.ram),
                           limit(budget.time_axis), budget.disk == 0 ? "none offered" : limit(budget.disk));
        out += fmt::format("bytes under every plan: parameters {}, gradients {}, moments {}, data {}\n",
                           plan.predicted[Kind::parameters], plan.predicted[Kind::gradients],
                           plan.predicted[Kind::moments], plan.predicted[Kind::data]);
        out += fmt::format("time: of {}, 1 where nothing is run again\n",
                           plan.measured ? "measured seconds" : "counted operations");
    }
    return out + table(rows) + measured_as_text(candidates);
}

std::string as_json(const std::vector<Candidate>& candidates, Index steps, const Budget& budget) {
    const auto limit = [](std::int64_t bytes) { return bytes == Budget::unlimited ? Json(nullptr) : Json(bytes); };
    Json out;
    out["limits"] = {{"total", limit(budget.ram)}, {"time_axis", limit(budget.time_axis)}, {"disk", limit(budget.disk)}};
    out["candidates"] = Json::array();
    for (const Candidate& c : candidates) {
        Json row;
        add_plan(row, c.plan, steps);
        row["fits"] = c.fits;
        row["chosen"] = c.chosen;
        row["bytes"]["predicted"] = json_of(c.plan.predicted);
        if (c.measured) row["bytes"]["measured"] = json_of(*c.measured);
        if (c.seconds) row["seconds"] = *c.seconds;
        out["candidates"].push_back(std::move(row));
    }
    return out.dump(2) + "\n";
}

std::string fit_report(const char* key, Index largest, Index now, bool json) {
    if (json) return Json{{"key", key}, {"largest", largest}, {"now", now}}.dump(2) + "\n";
    return fmt::format("the largest {} that fits is {} (now {})\n", key, largest, now);
}

std::string as_text(const std::vector<PartLoss>& losses) {
    std::string out;
    for (const PartLoss& p : losses) out += part_in_words(p);
    return out;
}

std::string as_json(const std::vector<PartLoss>& losses, Index update, const std::string& snapshot) {
    Json out;
    out["snapshot"] = snapshot;
    out["update"] = update;
    for (const PartLoss& p : losses) out[p.part] = json_of(p);
    return out.dump(2) + "\n";
}

std::string as_text(const ModelInfo& info) {
    const auto number = [](std::int64_t n) { return fmt::format("{}", n); };
    const auto features = [&](Index n, const char* none) { return n > 0 ? number(n) : std::string(none); };
    std::vector<std::vector<std::string>> rows{
        {"layer", "reads", "gives", "parameters", "carry bytes", "memory bytes", "tape bytes", "workspace bytes"}};
    LayerInfo sum;
    for (const LayerInfo& l : info.layers) {
        rows.push_back({l.name, features(l.inputs, "tokens"), features(l.outputs, "loss"), number(l.parameters),
                        number(l.carry), number(l.memory), number(l.tape), number(l.workspace)});
        sum.parameters += l.parameters;
        sum.carry += l.carry;
        sum.memory += l.memory;
        sum.tape += l.tape;
        sum.workspace = std::max(sum.workspace, l.workspace);
    }
    rows.push_back({"all", "", "", number(sum.parameters), number(sum.carry), number(sum.memory), number(sum.tape), number(sum.workspace)});
    return fmt::format("{}\n{} sequences in {} shards, links of {} steps\n", info.model, info.batch, info.shards,
                       info.chunk) +
           table(rows);
}

std::string as_json(const ModelInfo& info) {
    Json out;
    out["model"] = info.model;
    out["batch"] = info.batch;
    out["shards"] = info.shards;
    out["chunk"] = info.chunk;
    out["layers"] = Json::array();
    for (const LayerInfo& l : info.layers)
        out["layers"].push_back({{"name", l.name},
                                 {"inputs", l.inputs},
                                 {"outputs", l.outputs},
                                 {"parameters", l.parameters},
                                 {"parameter_names", l.names},
                                 {"bytes", {{"carry", l.carry}, {"memory", l.memory}, {"tape", l.tape}, {"workspace", l.workspace}}}});
    return out.dump(2) + "\n";
}

std::string as_text(const std::vector<ChainCandidate>& candidates, Index steps, bool bytes) {
    const auto number = [](std::int64_t n) { return fmt::format("{}", n); };
    const auto size = [&](std::int64_t n) { return bytes ? bytes_in_words(n) : number(n); };
    const bool disk =
        std::any_of(candidates.begin(), candidates.end(), [](const ChainCandidate& c) { return c.slots[1] > 0; });
    std::vector<std::string> head{"schedule", "advances", "recompute", "ram slots", bytes ? "ram bytes" : "ram units"};
    if (disk) head.insert(head.end(), {"disk slots", bytes ? "disk bytes" : "disk units", "disk writes", "disk reads"});
    head.insert(head.end(), {"time", "fits"});
    std::vector<std::vector<std::string>> rows{head};
    for (const ChainCandidate& c : candidates) {
        std::vector<std::string> row{in_words(c.schedule), number(c.advances),
                                     fmt::format("{:.3f}", c.recompute_factor()), number(c.slots[0]), size(c.bytes[0])};
        if (disk)
            row.insert(row.end(), {number(c.slots[1]), size(c.bytes[1]), number(c.writes[1]), number(c.reads[1])});
        row.insert(row.end(), {fmt::format("{:.6g}", c.time), c.fits ? "yes" : "no"});
        rows.push_back(std::move(row));
    }
    return fmt::format("{} steps, each recorded once\n", steps) + table(rows);
}

std::string as_json(const std::vector<ChainCandidate>& candidates, Index steps) {
    Json out = Json::array();
    for (const ChainCandidate& c : candidates) {
        Json row;
        add_schedule(row, c.schedule);
        row["steps"] = steps;
        row["advances"] = c.advances;
        row["recorded"] = c.recorded;
        row["recompute_factor"] = c.recompute_factor();
        for (const auto& [at, tier] : {std::pair{std::size_t{0}, "ram"}, std::pair{std::size_t{1}, "disk"}}) {
            row["peak"][tier] = {{"slots", c.slots[at]}, {"bytes", c.bytes[at]}};
            if (c.counted) row["accesses"][tier] = {{"writes", c.writes[at]}, {"reads", c.reads[at]}};
        }
        row["time"] = c.time;
        row["fits"] = c.fits;
        out.push_back(std::move(row));
    }
    return out.dump(2) + "\n";
}

std::string as_json(const Action& a) {
    Json out;
    out["verb"] = to_string(a.verb);
    for (const auto& [key, slot] : {std::pair{"from", a.from}, std::pair{"to", a.to}})
        if (slot.index >= 0) out[key] = {{"tier", to_string(slot.tier)}, {"slot", slot.index}};
    out["first"] = a.steps.first;
    out["last"] = a.steps.last;
    return out.dump();
}

std::string in_words(const Graph& graph, const GraphStep& step) {
    return (step.verb == GraphStep::Verb::compute ? "compute " : "drop ") + name_of(graph, step.node);
}

std::string as_json(const Graph& graph, const GraphStep& step) {
    Json out;
    out["verb"] = step.verb == GraphStep::Verb::compute ? "compute" : "drop";
    out["node"] = step.node;
    if (const std::string& name = graph.nodes[static_cast<std::size_t>(step.node)].name; !name.empty())
        out["name"] = name;
    return out.dump();
}

std::string as_text(const Graph& graph) {
    std::vector<std::vector<std::string>> rows{{"node", "time", "bytes", "needs"}};
    double time = 0.0;
    for (const GraphNode& node : graph.nodes) {
        std::string needs;
        for (const Index pred : node.preds)
            needs += (needs.empty() ? "" : "; ") + graph.nodes[static_cast<std::size_t>(pred)].name;
        rows.push_back({node.name, fmt::format("{:.6g}", node.time), fmt::format("{}", node.bytes), needs});
        time += node.time;
    }
    return fmt::format("{} nodes; once each: time {:.6g}, peak {}; no plan below {}\n", graph.nodes.size(), time,
                       bytes_in_words(referee(graph, once_in_order(graph)).peak_bytes),
                       bytes_in_words(largest_node_bytes(graph))) +
           table(rows);
}

std::string as_text(const Graph& graph, const GraphPlan& plan, std::int64_t budget) {
    const GraphPlay play = referee(graph, plan.steps, budget);
    double once = 0.0;
    for (const GraphNode& node : graph.nodes) once += node.time;
    std::vector<std::vector<std::string>> rows{
        {"method", "time", "of every node once", "recomputed", "peak bytes", "bound"}};
    rows.push_back({plan.method, fmt::format("{:.6g}", plan.cost), fmt::format("{:.6g}", once),
                    fmt::format("{}", play.recomputed), fmt::format("{}", plan.peak_bytes),
                    plan.proven ? std::string(plan.orders == GraphOrders::any ? "proven" : "proven among staged orders")
                                : fmt::format("{:.6g} ({:.2f} % below)", plan.lower_bound, 100.0 * plan.gap())});
    return fmt::format("{} nodes, limit {}\n", graph.nodes.size(), bytes_in_words(budget)) + table(rows);
}

std::string as_json(const Graph& graph, const GraphPlan& plan, std::int64_t budget) {
    Json out;
    out["nodes"] = graph.nodes.size();
    out["limit"] = budget;
    out["method"] = plan.method;
    out["time"] = plan.cost;
    out["lower_bound"] = plan.lower_bound;
    out["proven"] = plan.proven;
    out["orders"] = plan.orders == GraphOrders::any ? "any" : "staged";  // which plans the bound speaks of
    out["recomputed"] = referee(graph, plan.steps, budget).recomputed;
    out["peak_bytes"] = plan.peak_bytes;
    return out.dump(2) + "\n";
}

std::string sample_as_json(std::string_view prompt, std::string_view sample, double temperature, std::uint64_t seed) {
    Json out;
    out["prompt"] = prompt;
    out["sample"] = sample;
    out["bytes"] = sample.size();
    out["temperature"] = temperature;
    out["seed"] = seed;
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string version_as_json() {
    const BuildInfo& info = build_info();
    Json out;
    out["version"] = info.version;
    out["compiler"] = info.compiler;
    out["flags"] = info.flags;
    out["build_type"] = info.build_type;
    return out.dump(2) + "\n";
}

std::string metrics_line(const UpdateReport& r, const UpdateNote& note) {
    Json out;
    out["update"] = r.update;
    out["first"] = r.first;
    out["steps"] = r.steps;
    add_loss(out, r.loss, note.bits);
    out["positions"] = r.positions;
    out["gradient_norm"] = r.gradient_norm;
    out["rate"] = r.rate;
    out["advances"] = r.counts.advances;
    out["recorded"] = r.counts.recorded;
    out["seconds"] = note.seconds;
    out["live"] = {{"time_axis", note.live.time_axis()}, {"total", note.live.total()}};
    if (note.peak) out["peak"] = json_of(*note.peak);
    if (note.peak_rss > 0) out["peak_rss"] = note.peak_rss;
    for (std::size_t v = 0; v < static_cast<std::size_t>(Verb::turn); ++v)  // behind it no work is done
        if (note.spent[v] > 0.0)  // whole nanoseconds take fewer digits
            out["spent"][to_string(static_cast<Verb>(v))] = std::round(1e9 * note.spent[v]) / 1e9;
    return out.dump() + "\n";
}

std::string metrics_line(const PartLoss& loss, Index update) {
    Json out;
    out["update"] = update;
    out["part"] = loss.part;
    out.update(json_of(loss));
    return out.dump() + "\n";
}

Index update_of(std::string_view line) {
    const Json read = Json::parse(line, nullptr, false);
    return read.is_object() && read.contains("update") && read["update"].is_number_integer()
               ? read["update"].get<Index>()
               : -1;
}

}  // namespace backsweep::cli
