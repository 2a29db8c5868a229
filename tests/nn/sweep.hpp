// The simplest executor for tests of layers: every segment recorded, every tape kept, then all reversed. On its way it
// checks the laws that every layer obeys: advance = record in bits, calls repeated give the same bits, every output is
// assigned.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/random.hpp"
#include "backsweep/nn/network.hpp"
#include "nn/reference/build.hpp"
#include "support/compare.hpp"
#include "support/unit_test.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace backsweep::test {

enum class Driver { reference, cpu };
inline constexpr std::array drivers{Driver::reference, Driver::cpu};
inline const char* to_string(Driver driver) {
    return driver == Driver::cpu ? "cpu" : "reference";
}

template <class Real>
Network<Real> build(Driver driver, const ModelSpec& spec) {
    return driver == Driver::cpu ? cpu::build<Real>(spec) : reference::build<Real>(spec);
}

/// The data of one run. Arrays that the model does not read may be empty; empty carry and dcarry are zero.
template <class Real>
struct Problem {
    Index steps = 1;
    Index batch = 1;
    std::vector<std::int32_t> tokens, classes;
    std::vector<Real> x, values, weights;
    std::vector<Real> carry;   ///< before the first step
    std::vector<Real> dcarry;  ///< adjoint of the state after the last
    Index loss_from = 0;
    double scale = 1.0;
    std::vector<Mark> marks{};  ///< empty: none
    bool begins = false;
    bool training = true;
    std::uint64_t seed = 5;
    std::vector<std::vector<Real>> memory{};  ///< of each of the network's, its rows before the first step; empty: none
    std::vector<std::uint8_t> seen{};         ///< [rows][batch], as many as the longest of these has
    std::vector<std::uint8_t> key_padding{};  ///< [step][batch]; empty: none
    std::vector<Real> keys{}, values_of_context{};  ///< [step][batch][feature] of a context; no values: the keys
    Index context_steps = 0;                        ///< 0: there is no context
};

template <class Real>
struct Outcome {
    double loss = 0.0;  ///< sum over the segments, before scale
    std::vector<Real> losses, y, carry;
    std::vector<Real> gradients, dx, dcarry;
    std::vector<std::vector<Real>> dmemory{};  ///< of each memory's rows before the first step; detached: empty
    std::vector<Real> dkeys{}, dvalues{};
};

/// A vector in which forgotten elements show.
template <class Real>
std::vector<Real> unassigned(Index size) {
    return std::vector<Real>(static_cast<std::size_t>(size), std::numeric_limits<Real>::quiet_NaN());
}

template <class Real>
bool all_assigned(const std::vector<Real>& values) {
    return std::none_of(values.begin(), values.end(), [](Real v) { return std::isnan(v); });
}

/// `count` numbers in +-size, a function of (seed, stream).
template <class Real = double>
std::vector<Real> random_values(Index count, std::uint32_t stream, double size = 1.0) {
    const Random random(20240607, stream);
    std::vector<Real> values;
    for (Index k = 0; k < count; ++k)
        values.push_back(static_cast<Real>(size * (2.0 * random.uniform(0, static_cast<std::uint64_t>(k)) - 1.0)));
    return values;
}

inline std::vector<std::int32_t> random_tokens(Index count, Index below, std::uint32_t stream) {
    const Random random(20240607, stream);
    std::vector<std::int32_t> values;
    for (Index k = 0; k < count; ++k)
        values.push_back(static_cast<std::int32_t>(
            random.below(static_cast<std::uint32_t>(below), 1, static_cast<std::uint64_t>(k))));
    return values;
}

template <class To, class From>
std::vector<To> cast(const std::vector<From>& from) {
    std::vector<To> to;
    for (const From v : from) to.push_back(static_cast<To>(v));
    return to;
}

template <class To, class From>
Problem<To> cast(const Problem<From>& p) {
    std::vector<std::vector<To>> memory;
    for (const auto& rows : p.memory) memory.push_back(cast<To>(rows));
    return {p.steps,
            p.batch,
            p.tokens,
            p.classes,
            cast<To>(p.x),
            cast<To>(p.values),
            cast<To>(p.weights),
            cast<To>(p.carry),
            cast<To>(p.dcarry),
            p.loss_from,
            p.scale,
            p.marks,
            p.begins,
            p.training,
            p.seed,
            memory,
            p.seen,
            p.key_padding,
            cast<To>(p.keys),
            cast<To>(p.values_of_context),
            p.context_steps};
}

/// Where the parameter, or its gradients, that layer l is tied to lie; null: nowhere.
template <class Real, class T>
T* tied(const Network<Real>& network, T* flat, Index l) {
    return network.tied_offset(l) < 0 ? nullptr : flat + network.tied_offset(l);
}

/// The network's memories over a whole sweep: all rows, those before the first step and every step's, and their adjoints.
template <class Real>
class MemoryLogs {
public:
    MemoryLogs(const Network<Real>& network, const Problem<Real>& problem)
        : shapes_(network.memories()), batch_(problem.batch), longest_(network.remembered()), problem_(problem) {
        prefix_ = static_cast<Index>(problem.seen.size()) / batch_;
        for (std::size_t m = 0; m < shapes_.size(); ++m) {
            std::vector<Real> log = problem.memory.empty() ? std::vector<Real>{} : problem.memory[m];
            BOOST_TEST_REQUIRE(static_cast<Index>(log.size()) == before(m) * row(m));
            log.resize(static_cast<std::size_t>((before(m) + problem.steps) * row(m)),
                       std::numeric_limits<Real>::quiet_NaN());
            dlogs_.emplace_back(shapes_[m].gradient ? log.size() : 0, Real{0});
            logs_.push_back(std::move(log));
        }
        rows_.resize(shapes_.size());
        drows_.resize(shapes_.size());
    }

    /// The segment's rows; `seen` is what it points to.
    void point(Segment<Real>& at, Index first, std::vector<std::uint8_t>& seen) {
        at.remembered = std::min(longest_, prefix_ + first);
        seen.assign(static_cast<std::size_t>(at.remembered * batch_), 0);
        for (Index b = 0; b < batch_; ++b)
            for (Index back = 1; back <= at.remembered; ++back) {
                const Index t = first - back, p = t * batch_ + b;
                seen[static_cast<std::size_t>((at.remembered - back) * batch_ + b)] = t < 0 ? problem_.seen[static_cast<std::size_t>(p + prefix_ * batch_)] : visible(p);
                if ((t == 0 && problem_.begins) || (t >= 0 && mark(p) == Mark::first)) break;
            }
        at.seen = seen.data();
        for (std::size_t m = 0; m < shapes_.size(); ++m) {
            const Index from = (before(m) + first - at.rows_before(shapes_[m].rows)) * row(m);
            rows_[m] = logs_[m].data() + from;
            drows_[m] = dlogs_[m].empty() ? nullptr : dlogs_[m].data() + from;
        }
    }

    Real* const* rows(Index m) const { return shapes_.empty() ? nullptr : rows_.data() + m; }
    Real* const* drows(Index m) const { return shapes_.empty() ? nullptr : drows_.data() + m; }
    std::vector<std::vector<Real>>& dlogs() { return dlogs_; }
    std::vector<std::vector<Real>> dprefix() const {
        std::vector<std::vector<Real>> all = dlogs_;
        for (std::size_t m = 0; m < all.size(); ++m)
            if (!all[m].empty()) all[m].resize(static_cast<std::size_t>(before(m) * row(m)));
        return all;
    }

private:
    Index before(std::size_t m) const { return std::min(shapes_[m].rows, prefix_); }
    Index row(std::size_t m) const { return shapes_[m].features * batch_; }
    Mark mark(Index p) const { return problem_.marks.empty() ? Mark::step : problem_.marks[static_cast<std::size_t>(p)]; }
    bool visible(Index p) const {
        return mark(p) != Mark::filler &&
               (problem_.key_padding.empty() || problem_.key_padding[static_cast<std::size_t>(p)] == 0);
    }

    std::vector<MemoryShape> shapes_;
    Index batch_, longest_, prefix_ = 0;
    const Problem<Real>& problem_;
    std::vector<std::vector<Real>> logs_, dlogs_;
    std::vector<Real*> rows_, drows_;
};

/// Whether a layer is attention, whose tape has gaps between its parts; what reverse reads of them shows as NaN there.
inline bool attends(const std::vector<LayerSpec>& layers) {
    return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
        const auto* inner = within(layer);
        return std::holds_alternative<AttentionSpec>(layer) || (inner && attends(*inner));
    });
}

/// none: forward only, nothing checked (for finite differences, which call it often).
enum class Checks { none, laws };

/// Runs layers first_layer.. of a network in segments of `chunk` steps; the last may be short.
template <class Real>
Outcome<Real> sweep(const Network<Real>& network, const std::vector<Real>& parameters, const Problem<Real>& problem,
                    Index chunk, Index first_layer = 0, Checks checks = Checks::laws) {
    struct Recorded {
        Segment<Real> at;
        std::vector<Real> carry_in;
        std::vector<std::vector<Real>> y, tape;
        std::vector<std::uint8_t> seen{};
    };
    const Index B = problem.batch, depth = network.depth();
    const auto offset = [](const auto& v, Index elements) { return v.empty() ? nullptr : v.data() + elements; };
    const Index inputs = network.layer(first_layer).footprint(1, 1).inputs;

    Outcome<Real> out;
    out.losses = unassigned<Real>(problem.steps * B);
    out.carry =
        problem.carry.empty() ? std::vector<Real>(static_cast<std::size_t>(network.carry() * B)) : problem.carry;
    BOOST_TEST_REQUIRE(static_cast<Index>(out.carry.size()) == network.carry() * B);
    std::vector<Recorded> segments;
    MemoryLogs<Real> logs(network, problem);
    out.dkeys.resize(problem.keys.size());
    out.dvalues.resize(problem.values_of_context.size());
    const Context<Real> context{problem.context_steps, offset(problem.keys, 0), offset(problem.values_of_context, 0),
                                nullptr, out.dkeys.data(), out.dvalues.empty() ? nullptr : out.dvalues.data()};
    for (Index first = 0; first < problem.steps; first += chunk) {
        Recorded r;
        double loss = std::numeric_limits<double>::quiet_NaN();
        r.at.first = 1000 + first;
        r.at.steps = std::min(chunk, problem.steps - first);
        r.at.batch = B;
        r.at.tokens = offset(problem.tokens, first * B);
        r.at.classes = offset(problem.classes, first * B);
        r.at.values = offset(problem.values, first * B * network.spec().targets());
        r.at.weights = offset(problem.weights, first * B);
        r.at.loss_from = std::max<Index>(problem.loss_from - first, 0);
        r.at.scale = problem.scale;
        r.at.marks = offset(problem.marks, first * B);
        r.at.begins = problem.begins && first == 0;
        r.at.behind = problem.steps - first - r.at.steps;
        r.at.training = problem.training;
        r.at.seed = problem.seed;
        r.at.key_padding = offset(problem.key_padding, first * B);
        if (problem.context_steps > 0) r.at.context = &context;
        logs.point(r.at, first, r.seen);
        r.at.losses = out.losses.data() + first * B;
        r.carry_in = out.carry;
        const Real* x = offset(problem.x, first * B * inputs);
        for (Index l = first_layer; l < depth; ++l) {
            const Layer<Real>& layer = network.layer(l);
            const Footprint sizes = layer.footprint(r.at.steps, B);
            const Index carry = network.carry_offset(l, B);
            std::array<std::vector<Real>, 4> y, after, tape;
            r.at.loss = &loss;
            for (std::size_t run = 0; run < (checks == Checks::laws ? 4 : 1); ++run) {  // the third is advance, the fourth without y
                y[run] = unassigned<Real>(r.at.steps * B * sizes.outputs);
                after[run] = unassigned<Real>(B * sizes.carry);
                tape[run] = unassigned<Real>(sizes.tape);
                std::vector<Real> workspace = unassigned<Real>(sizes.workspace);
                const Forward<Real> call{r.at,
                                         parameters.data() + network.parameter_offset(l),
                                         x,
                                         run == 3 && !sizes.reads_y ? nullptr : y[run].data(),
                                         r.carry_in.data() + carry,
                                         after[run].data(),
                                         run == 2 ? nullptr : tape[run].data(),
                                         workspace.data(),
                                         tied(network, parameters.data(), l),
                                         logs.rows(network.memory_offset(l))};
                if (run == 2)
                    layer.advance(call);
                else
                    layer.record(call);
            }
            if (checks == Checks::laws) BOOST_TEST_CONTEXT("layer " << layer.name() << ", segment at " << first) {
                    for (const std::size_t run : {1, 2}) {
                        BOOST_TEST(same_bits(y[run], y[0]));
                        BOOST_TEST(same_bits(after[run], after[0]));
                    }
                    for (const std::size_t run : {1, 3}) BOOST_TEST(same_bits(tape[run], tape[0]));
                    // The state behind the segment may be left as it is where only the tape is wanted.
                    BOOST_TEST((same_bits(after[3], after[0]) || same_bits(after[3], unassigned<Real>(B * sizes.carry))));
                    BOOST_TEST(all_assigned(y[0]));
                    BOOST_TEST(all_assigned(after[0]));
                    if (!attends(network.spec().layers)) BOOST_TEST(all_assigned(tape[0]));
                }
            std::copy(after[0].begin(), after[0].end(), out.carry.begin() + carry);
            r.y.push_back(std::move(y[0]));
            r.tape.push_back(std::move(tape[0]));
            x = r.y.back().data();
        }
        if (depth - first_layer > 1) {
            const std::vector<Real>& last = r.y[r.y.size() - 2];
            out.y.insert(out.y.end(), last.begin(), last.end());
        }
        out.loss += loss;
        segments.push_back(std::move(r));
    }
    if (checks == Checks::none) return out;
    BOOST_TEST(all_assigned(out.losses));

    out.gradients.assign(static_cast<std::size_t>(network.parameters().size()), Real{0});
    out.dcarry =
        problem.dcarry.empty() ? std::vector<Real>(static_cast<std::size_t>(network.carry() * B)) : problem.dcarry;
    for (auto r = segments.rbegin(); r != segments.rend(); ++r) {
        std::vector<Real> dy;
        logs.point(r->at, r->at.first - 1000, r->seen);
        r->at.loss = nullptr;
        r->at.losses = nullptr;
        for (Index l = depth - 1; l >= first_layer; --l) {
            const Layer<Real>& layer = network.layer(l);
            const Footprint sizes = layer.footprint(r->at.steps, B);
            const Index carry = network.carry_offset(l, B);
            std::vector<Real> dx, first_gradients, first_dx, first_dcarry;
            const std::vector<Real> gradients = out.gradients, dcarry = out.dcarry, dkeys = out.dkeys,
                                    dvalues = out.dvalues;
            const auto dlogs = logs.dlogs();
            const Real* const x = l > first_layer ? r->y[static_cast<std::size_t>(l - first_layer) - 1].data()
                                                  : offset(problem.x, (r->at.first - 1000) * B * inputs);
            for (int run = 0; run < 3; ++run) {  // the last without dx
                out.gradients = gradients;
                out.dcarry = dcarry;
                std::copy(dkeys.begin(), dkeys.end(), out.dkeys.begin());  // the context points there
                std::copy(dvalues.begin(), dvalues.end(), out.dvalues.begin());
                for (std::size_t m = 0; m < dlogs.size(); ++m)
                    std::copy(dlogs[m].begin(), dlogs[m].end(), logs.dlogs()[m].begin());
                dx = unassigned<Real>(r->at.steps * B * sizes.inputs);
                std::vector<Real> workspace = unassigned<Real>(sizes.workspace);
                layer.reverse({r->at, parameters.data() + network.parameter_offset(l),
                               out.gradients.data() + network.parameter_offset(l),
                               r->tape[static_cast<std::size_t>(l - first_layer)].data(), r->carry_in.data() + carry,
                               dy.empty() ? nullptr : dy.data(), run == 2 ? nullptr : dx.data(),
                               out.dcarry.data() + carry, workspace.data(), tied(network, parameters.data(), l),
                               tied(network, out.gradients.data(), l), logs.rows(network.memory_offset(l)),
                               logs.drows(network.memory_offset(l)), sizes.reads_x ? x : nullptr,
                               sizes.reads_y ? r->y[static_cast<std::size_t>(l - first_layer)].data() : nullptr});
                if (run == 0) {
                    first_gradients = out.gradients;
                    first_dx = dx;
                    first_dcarry = out.dcarry;
                }
                BOOST_TEST_CONTEXT("reverse of layer " << layer.name()) {
                    BOOST_TEST(same_bits(out.gradients, first_gradients));
                    BOOST_TEST(same_bits(out.dcarry, first_dcarry));
                    if (run == 1) BOOST_TEST(same_bits(dx, first_dx));
                    BOOST_TEST(all_assigned(out.gradients));
                    BOOST_TEST(all_assigned(out.dcarry));
                    BOOST_TEST(all_assigned(first_dx));
                }
            }
            dy = std::move(first_dx);
        }
        out.dx.insert(out.dx.begin(), dy.begin(), dy.end());
    }
    out.dmemory = logs.dprefix();
    return out;
}

/// Central differences of value() in every element of `array`, on which it depends, of fourth order.
template <class F>
std::vector<double> central_differences(std::vector<double>& array, F value) {
    constexpr double h = 1e-5;
    std::vector<double> d;
    for (double& element : array) {
        const double kept = element;
        const auto difference = [&](double step) {
            element = kept + step;
            const double above = value();
            element = kept - step;
            const double below = value();
            element = kept;
            return above - below;
        };
        d.push_back((8.0 * difference(h) - difference(2.0 * h)) / (12.0 * h));
    }
    return d;
}

}  // namespace backsweep::test
