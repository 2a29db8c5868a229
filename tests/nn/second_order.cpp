// Layers of dual numbers, one at a time and every array of a call moving: fast against plain loops, values against the
// layers of double, tangents of outputs and gradients against central differences.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE second_order
#include "support/unit_test.hpp"

#include "backsweep/base/random.hpp"
#include "backsweep/nn/dual.hpp"
#include "nn/cpu/layers.hpp"
#include "nn/reference/layers.hpp"
#include "support/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

using namespace backsweep;
using namespace backsweep::test;

namespace {

using D = Dual<double>;
constexpr std::uint32_t stream = 3;  // of random masks
constexpr double step = 1e-4;        // of central differences
constexpr Index context_steps = 7;

enum class Driver { reference, cpu };
enum class Marking { none, tails, packed };

struct Case {
    std::string name;
    std::variant<LayerSpec, LossSpec> spec;
    Index features = 0;  ///< of a loss
    Marking marking = Marking::none;
    Index steps = 5, batch = 3;
    bool hides_keys = false;
};

template <class Real>
LayerPointer<Real> make(Driver driver, const Case& one) {
    const bool fast = driver == Driver::cpu;
    if (const auto* loss = std::get_if<LossSpec>(&one.spec))
        return fast ? cpu::loss<Real>(*loss, one.features) : reference::loss<Real>(*loss, one.features);
    return std::visit(
        [&]<class Spec>(const Spec& spec) -> LayerPointer<Real> {
            using Cell = RecurrentSpec::Cell;
            if constexpr (std::is_same_v<Spec, EmbeddingSpec>)
                return fast ? cpu::embedding<Real>(spec) : reference::embedding<Real>(spec);
            if constexpr (std::is_same_v<Spec, DenseSpec>)
                return fast ? cpu::dense<Real>(spec) : reference::dense<Real>(spec);
            if constexpr (std::is_same_v<Spec, NormSpec>)
                return fast ? cpu::norm<Real>(spec) : reference::norm<Real>(spec);
            if constexpr (std::is_same_v<Spec, ActivationSpec>)
                return fast ? cpu::activation<Real>(spec) : reference::activation<Real>(spec);
            if constexpr (std::is_same_v<Spec, DropoutSpec>)
                return fast ? cpu::dropout<Real>(spec, stream) : reference::dropout<Real>(spec, stream);
            if constexpr (std::is_same_v<Spec, FoldSpec>) return cpu::fold<Real>(spec);
            if constexpr (std::is_same_v<Spec, AttentionSpec>)
                return fast ? cpu::attention<Real>(spec, stream) : reference::attention<Real>(spec, stream);
            if constexpr (std::is_same_v<Spec, RecurrentSpec>) {
                const RecurrentPart part{spec, 0, false};
                if (spec.cell == Cell::lstm) return fast ? cpu::lstm<Real>(part) : reference::lstm<Real>(part);
                if (spec.cell == Cell::gru) return fast ? cpu::gru<Real>(part) : reference::gru<Real>(part);
                return fast ? cpu::rnn<Real>(part) : reference::rnn<Real>(part);
            }
            return nullptr;
        },
        std::get<LayerSpec>(one.spec));
}

/// What a layer reads that is no data: everything of which its gradients are functions.
enum Array { parameters, tied, x, carry, memory, keys, context_values, dy, dcarry, dmemory, arrays };
template <class Real>
using Point = std::array<std::vector<Real>, arrays>;

/// What one run of a layer, forward and back, gives, by name.
template <class Real>
using Outcome = std::map<std::string, std::vector<Real>>;

std::vector<double> random_values(Index count, std::uint32_t number, double size = 1.0) {
    const Random random(20240607, number);
    std::vector<double> values;
    for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k)
        values.push_back(size * (2.0 * random.uniform(0, k) - 1.0));
    return values;
}

/// A point, or a direction, for a case: of another `number` another.
Point<double> random_point(const Case& one, std::uint32_t number) {
    const auto layer = make<double>(Driver::cpu, one);
    const Footprint sizes = layer->footprint(one.steps, one.batch);
    const Index positions = one.steps * one.batch;
    std::array<Index, arrays> count{};
    for (const ParameterShape& shape : layer->parameters()) count[parameters] += shape.size();
    if (!layer->tied().empty()) count[tied] = sizes.inputs * sizes.outputs;
    count[x] = positions * sizes.inputs;
    count[carry] = count[dcarry] = sizes.carry * one.batch;
    count[dy] = positions * sizes.outputs;
    for (const MemoryShape& shape : layer->memories()) {
        count[memory] = shape.rows * one.batch * shape.features;
        count[dmemory] = shape.gradient ? (shape.rows + one.steps) * one.batch * shape.features : 0;
    }
    if (const auto* any = std::get_if<LayerSpec>(&one.spec))
        if (const auto* attention = std::get_if<AttentionSpec>(any); attention && attention->across) {
            count[keys] = context_steps * one.batch * attention->keys();
            count[context_values] = attention->value_features > 0 ? context_steps * one.batch * attention->values() : 0;
        }
    Point<double> point;
    for (std::size_t a = 0; a < arrays; ++a)
        point[a] = random_values(count[a], number + static_cast<std::uint32_t>(a), a == x ? 1.5 : 1.0);
    // A variance is positive; one of them is below its least.
    if (const auto* loss = std::get_if<LossSpec>(&one.spec);
        loss && loss->kind == LossSpec::Kind::gaussian_nll && number < 100)
        for (std::size_t p = 0; p < point[x].size(); ++p)
            if (static_cast<Index>(p) % one.features >= loss->targets(one.features))
                point[x][p] = p % 7 == 0 ? 1e-3 : 0.3 + std::fabs(point[x][p]);
    return point;
}

/// Records and reverses one segment.
template <class Real>
Outcome<Real> run(Driver driver, const Case& one, const Point<Real>& at) {
    const auto layer = make<Real>(driver, one);
    const Index T = one.steps, B = one.batch, positions = T * B;
    const Footprint sizes = layer->footprint(T, B);
    const auto made = [](Index count) { return std::vector<Real>(static_cast<std::size_t>(count)); };
    const auto data = [](auto& v) { return v.empty() ? nullptr : v.data(); };

    Segment<Real> segment;
    segment.first = 1000;
    segment.steps = T;
    segment.batch = B;
    segment.seed = 5;
    segment.scale = 0.7;
    std::vector<std::int32_t> tokens, classes;
    std::vector<Mark> marks;
    std::vector<std::uint8_t> hidden;
    std::vector<Real> targets, weights;
    const std::vector<double> given = random_values(positions * std::max<Index>(one.features, 1), 90),
                              weight = random_values(positions, 91);
    for (const double t : given) targets.push_back(t);
    for (const double w : weight) weights.push_back(w);
    for (Index p = 0; p < positions; ++p) {
        const Index t = p / B, b = p % B;
        tokens.push_back(static_cast<std::int32_t>((3 * p + 1) % 7));
        classes.push_back(static_cast<std::int32_t>((2 * p + 1) % std::max<Index>(one.features, 1)));
        hidden.push_back(p % 4 == 2);
        Mark mark = Mark::step;
        if (one.marking == Marking::tails && t >= T - 2 * b) mark = Mark::filler;
        if (one.marking == Marking::packed && (t + 2 * b) % 4 == 1) mark = Mark::first;
        if (one.marking == Marking::packed && (t + 2 * b) % 4 == 0 && b % 2 == 1) mark = Mark::filler;
        marks.push_back(mark);
    }
    segment.tokens = tokens.data();
    segment.classes = classes.data();
    segment.values = targets.data();
    segment.weights = weights.data();
    if (one.marking != Marking::none) segment.marks = marks.data();
    segment.begins = one.marking == Marking::tails;
    if (one.hides_keys) segment.key_padding = hidden.data();

    Outcome<Real> out;
    Point<Real> own = at;
    own[parameters].reserve(1);  // even of no parameters there is a place
    out["gradients"].reserve(1);
    std::vector<Real> losses = made(positions);
    double loss = 0.0;
    if (sizes.outputs == 0) {
        segment.loss = &loss;
        segment.losses = losses.data();
    }
    Context<Real> context;
    std::vector<Mark> of_context;
    if (!own[keys].empty()) {
        out["dkeys"] = made(static_cast<Index>(own[keys].size()));
        out["dvalues"] = made(static_cast<Index>(own[context_values].size()));
        for (Index k = 0; k < context_steps * B; ++k) of_context.push_back(k % 5 == 3 ? Mark::filler : Mark::step);
        context = {context_steps,     own[keys].data(),    data(own[context_values]),
                   of_context.data(), out["dkeys"].data(), data(out["dvalues"])};
        segment.context = &context;
    }
    std::vector<std::uint8_t> seen;
    Real *rows = nullptr, *drows = nullptr;
    for (const MemoryShape& shape : layer->memories()) {
        segment.remembered = shape.rows;
        for (Index k = 0; k < shape.rows * B; ++k) seen.push_back(k >= B || k % 2 == 0);
        segment.seen = seen.data();
        own[memory].resize(static_cast<std::size_t>((shape.rows + T) * B * shape.features));
        rows = own[memory].data();
        drows = data(own[dmemory]);
    }
    std::vector<Real> tape = made(sizes.tape), workspace = made(sizes.workspace);
    out["y"] = made(positions * sizes.outputs);
    out["carry"] = made(B * sizes.carry);
    layer->record({segment, own[parameters].data(), data(own[x]), data(out["y"]), data(own[carry]), data(out["carry"]),
                   data(tape), data(workspace), data(own[tied]), &rows});
    out["gradients"].assign(own[parameters].size(), Real{0});
    out["tied gradients"] = made(static_cast<Index>(own[tied].size()));
    out["dx"] = made(positions * sizes.inputs);
    Backward<Real> back{segment,
                        own[parameters].data(),
                        out["gradients"].data(),
                        data(tape),
                        data(own[carry]),
                        data(own[dy]),
                        data(out["dx"]),
                        data(own[dcarry]),
                        data(workspace),
                        data(own[tied]),
                        data(out["tied gradients"]),
                        &rows,
                        &drows};
    back.x = data(own[x]);
    back.y = data(out["y"]);
    layer->reverse(back);
    out["dcarry"] = own[dcarry];
    out["dmemory"] = own[dmemory];
    if (sizes.outputs == 0) {
        losses.push_back(loss);
        out["losses"] = losses;
    }
    return out;
}

template <class Part>
std::vector<double> part_of(const std::vector<D>& duals, Part part) {
    std::vector<double> numbers;
    for (const D& d : duals) numbers.push_back(part(d));
    return numbers;
}
std::vector<double> values_of(const std::vector<D>& duals) {
    return part_of(duals, [](D d) { return d.value; });
}
std::vector<double> tangents_of(const std::vector<D>& duals) {
    return part_of(duals, [](D d) { return d.tangent; });
}

Point<double> moved(Point<double> point, const Point<double>& direction, double h) {
    for (std::size_t a = 0; a < arrays; ++a)
        for (std::size_t k = 0; k < point[a].size(); ++k) point[a][k] += h * direction[a][k];
    return point;
}

/// Derivatives of all that a run gives, of fourth order.
Outcome<double> central_differences(const Case& one, const Point<double>& point, const Point<double>& direction) {
    const auto at = [&](double h) { return run<double>(Driver::cpu, one, moved(point, direction, h)); };
    const Outcome<double> above = at(step), below = at(-step), far_above = at(2 * step), far_below = at(-2 * step);
    Outcome<double> d;
    for (const auto& [name, numbers] : above)
        for (std::size_t k = 0; k < numbers.size(); ++k)
            d[name].push_back(
                (8.0 * (numbers[k] - below.at(name)[k]) - (far_above.at(name)[k] - far_below.at(name)[k])) /
                (12.0 * step));
    return d;
}

/// The largest errors that were seen, relative to the largest number of their array.
struct Worst {
    double plain = 0.0, value = 0.0, tangent = 0.0;
};

void check(const Case& one, Worst& worst) {
    const Point<double> point = random_point(one, 10), direction = random_point(one, 110);
    Point<D> lifted;
    for (std::size_t a = 0; a < arrays; ++a)
        for (std::size_t k = 0; k < point[a].size(); ++k) lifted[a].push_back({point[a][k], direction[a][k]});
    const Outcome<D> got = run<D>(Driver::cpu, one, lifted), plain = run<D>(Driver::reference, one, lifted);
    const Outcome<double> values = run<double>(Driver::cpu, one, point),
                          differences = central_differences(one, point, direction);
    const auto near = [](const std::vector<double>& a, const std::vector<double>& b, double relative, double& most) {
        const Comparison c = compare(a, b, {relative, 1e-15});
        if (c.limit > 1e-15) most = std::fmax(most, c.worst / (c.limit - 1e-15) * relative);
        return c;
    };
    for (const auto& [name, numbers] : got) {
        if (numbers.empty()) continue;
        BOOST_TEST_CONTEXT(name) {
            BOOST_TEST(near(values_of(numbers), values_of(plain.at(name)), 1e-12, worst.plain));
            BOOST_TEST(near(values_of(numbers), values.at(name), 1e-12, worst.value));
            if (name == "losses") continue;  // sums of double
            BOOST_TEST(near(tangents_of(numbers), tangents_of(plain.at(name)), 1e-12, worst.plain));
            BOOST_TEST(near(tangents_of(numbers), differences.at(name), 1e-6, worst.tangent));
        }
    }
}

void check(const std::vector<Case>& cases) {
    Worst worst;
    for (const Case& one : cases) BOOST_TEST_CONTEXT(one.name) check(one, worst);
    BOOST_TEST_MESSAGE("largest differences of " << cases.size() << " cases: " << worst.plain << " from plain loops, "
                                                 << worst.value << " from the values of double, " << worst.tangent
                                                 << " from central differences");
}

/// The same case under every marking, and of one step of one sequence.
void append(std::vector<Case>& cases, const Case& one) {
    for (const Marking marking : {Marking::none, Marking::tails, Marking::packed}) {
        cases.push_back(one);
        cases.back().name += ", marking " + std::to_string(static_cast<int>(marking));
        cases.back().marking = marking;
    }
    cases.push_back(one);
    cases.back().name += ", one position";
    cases.back().steps = cases.back().batch = 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cells) {
    using Cell = RecurrentSpec::Cell;
    std::vector<Case> cases;
    const std::pair<std::string, Cell> kinds[] = {
        {"lstm", Cell::lstm}, {"gru", Cell::gru}, {"rnn_tanh", Cell::rnn_tanh}, {"rnn_relu", Cell::rnn_relu}};
    for (const auto& kind : kinds) {
        const Cell cell = kind.second;
        const RecurrentSpec one{.name = "rnn", .inputs = 3, .hidden = 6, .cell = cell};
        const auto add = [&](const char* what, auto change) {
            RecurrentSpec spec = one;
            change(spec);
            append(cases, {kind.first + what, spec});
        };
        add("", [](RecurrentSpec&) {});
        add(", without bias, from a learned state", [](RecurrentSpec& s) { s.bias = false, s.learned_state = true; });
        add(" of three heads", [](RecurrentSpec& s) { s.heads = 3; });
        add(", wide", [](RecurrentSpec& s) { s.inputs = 35, s.hidden = 33; });
        if (cell == Cell::lstm) add(" with projection", [](RecurrentSpec& s) { s.projection = 2; });
        if (cell == Cell::lstm || cell == Cell::gru) {
            add(" with layer norm", [](RecurrentSpec& s) { s.layer_norm = true; });
            add(" with layer norm, without bias, from a learned state",
                [](RecurrentSpec& s) { s.layer_norm = s.learned_state = true, s.bias = false; });
            add(", gates made again", [](RecurrentSpec& s) { s.save = {}; });
            add(" with layer norm, gates made again", [](RecurrentSpec& s) { s.layer_norm = true, s.save = {}; });
        }
    }
    check(cases);
}

BOOST_AUTO_TEST_CASE(layers_of_positions) {
    std::vector<Case> cases;
    append(cases, {"embedding", EmbeddingSpec{.name = "embedding", .vocabulary = 7, .features = 5, .padding = 2}});
    append(cases, {"dense", DenseSpec{.name = "head", .inputs = 5, .outputs = 3}});
    append(cases, {"tied dense", DenseSpec{.name = "head", .inputs = 4, .outputs = 7, .tied = "embedding"}});
    append(cases, {"dense without bias", DenseSpec{.name = "head", .inputs = 1, .outputs = 2, .bias = false}});
    append(cases, {"wide dense", DenseSpec{.name = "head", .inputs = 70, .outputs = 37}});
    append(cases, {"fold", FoldSpec{.name = "fold", .inputs = 6, .outputs = 2}});
    for (const bool locked : {false, true})
        append(cases, {"dropout", DropoutSpec{.name = "dropout", .features = 5, .rate = 0.4, .locked = locked}});
    for (const auto kind : {NormSpec::Kind::layer, NormSpec::Kind::rms})
        for (const bool affine : {false, true})
            append(cases, {"norm", NormSpec{.name = "norm", .features = 11, .kind = kind, .affine = affine}});
    using Kind = ActivationSpec::Kind;
    for (const Kind kind : {Kind::relu, Kind::silu, Kind::gelu, Kind::gelu_tanh, Kind::tanh, Kind::sigmoid,
                            Kind::softplus, Kind::softmax, Kind::log_softmax})
        append(cases, {"activation " + std::to_string(static_cast<int>(kind)),
                       ActivationSpec{.name = "activation", .features = 9, .kind = kind}});
    check(cases);
}

BOOST_AUTO_TEST_CASE(attention) {
    using Position = AttentionSpec::Position;
    std::vector<Case> cases;
    const auto add = [&](const char* name, auto change) {
        AttentionSpec a{.name = "attention", .features = 4, .heads = 2};
        change(a);
        for (const bool hides : {false, true})
            append(cases, {name + std::string(hides ? ", keys hidden" : ""), a, 0, Marking::none, 5, 3, hides});
    };
    add("linear with memory", [](AttentionSpec& a) { a.memory = 4; });
    add("detached memory in a window", [](AttentionSpec& a) { a.memory = 4, a.window = 3, a.detached = true; });
    add("without bias, nothing saved", [](AttentionSpec& a) { a.memory = 2, a.bias = false, a.save = {}; });
    add("alibi", [](AttentionSpec& a) { a.memory = 3, a.position = Position::alibi; });
    add("rotary", [](AttentionSpec& a) { a.memory = 3, a.position = Position::rotary, a.head_features = 6; });
    add("relative", [](AttentionSpec& a) { a.memory = 4, a.position = Position::relative; });
    add("relative with dropout",
        [](AttentionSpec& a) { a.memory = 4, a.position = Position::relative, a.dropout = 0.3; });
    add("gated", [](AttentionSpec& a) { a.memory = 4, a.projection = AttentionSpec::Projection::gated, a.heads = 1; });
    add("gated with dropout", [](AttentionSpec& a) {
        a.memory = 4, a.projection = AttentionSpec::Projection::gated, a.dropout = 0.3, a.save = {"key"};
    });
    add("full", [](AttentionSpec& a) { a.mask = AttentionSpec::Mask::full, a.position = Position::alibi; });
    add("across", [](AttentionSpec& a) {
        a.mask = AttentionSpec::Mask::full, a.across = true, a.key_features = 3, a.value_features = 5;
    });
    // Several tiles of queries and of keys.
    cases.push_back({"long",
                     AttentionSpec{.name = "attention",
                                   .features = 4,
                                   .heads = 2,
                                   .position = Position::relative,
                                   .memory = 150,
                                   .dropout = 0.1},
                     0, Marking::none, 270, 1, true});
    check(cases);
}

BOOST_AUTO_TEST_CASE(losses) {
    using Kind = LossSpec::Kind;
    std::vector<Case> cases;
    const auto add = [&](const char* name, LossSpec spec, Index features = 6) {
        append(cases, {name, spec, features});
        spec.at = LossSpec::At::last;
        append(cases, {name + std::string(", last steps"), spec, features});
    };
    LossSpec smoothed;
    smoothed.label_smoothing = 0.1;
    smoothed.class_weights = {0.25, 1.5, 0.75, 2.0, 1.0, 0.5};
    smoothed.ignore_index = 3;
    add("cross entropy", {});
    add("cross entropy, smoothed", smoothed);
    add("mean squared error", {.kind = Kind::mean_squared_error});
    add("inner product", {.kind = Kind::inner_product});
    add("l1", {.kind = Kind::l1});
    add("huber", {.kind = Kind::huber, .delta = 0.6});
    add("smooth l1", {.kind = Kind::smooth_l1, .beta = 0.6});
    add("binary cross entropy", {.kind = Kind::binary_cross_entropy, .pos_weight = {0.25, 1.5, 0.75, 2.0, 1.0, 0.5}});
    add("gaussian", {.kind = Kind::gaussian_nll, .epsilon = 0.01, .full = true});
    add("gaussian, one variance", {.kind = Kind::gaussian_nll, .epsilon = 0.01, .shared_variance = true});
    check(cases);
}
