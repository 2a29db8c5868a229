// SPDX-License-Identifier: MIT
#include "backsweep/nn/network_graph.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace backsweep {

namespace {

using What = NetworkNode::What;
constexpr Index none = -1;

template <class Real>
class Extraction {
public:
    explicit Extraction(NetworkGraph<Real>& to) : to_(to), positions_(to.steps * to.batch) {}

    void operator()(const Network<Real>& network) {
        Index value = none;
        if (const Index inputs = network.inputs(); inputs > 0) value = add({.what = What::input, .features = inputs}, "input");
        for (link_ = 0; link_ < network.depth(); ++link_) value = forward(network.layer(link_), value);
        Index dy = none;
        for (link_ = network.depth(); link_-- > 0;)
            dy = backward(network.layer(link_), dy, {}, link_ > 0 || to_.input_gradient);
    }

private:
    /// What a layer's reverse run reads.
    struct Ran {
        Index x = none, y = none, tape = none, record = none;
    };

    NetworkNode& node(Index n) { return to_.nodes[static_cast<std::size_t>(n)]; }
    double numbers(Index features) const { return static_cast<double>(features * positions_); }

    void need(Index n, Index pred) {
        std::vector<Index>& preds = to_.graph.nodes[static_cast<std::size_t>(n)].preds;
        if (pred != none && std::find(preds.begin(), preds.end(), pred) == preds.end()) preds.push_back(pred);
    }

    /// `time`: of what the node does besides moving its rows and adding to them.
    Index add(NetworkNode made, std::string name, double time = 0.0) {
        const bool copies = made.what != What::record && made.what != What::reverse && made.what != What::sum;
        made.link = link_;
        made.size = made.before + made.features * positions_;
        while (!names_.insert(name).second) name += "'";
        to_.graph.nodes.push_back({time + (copies ? numbers(made.features) : 0.0),
                                   made.size * static_cast<std::int64_t>(sizeof(Real)),
                                   {},
                                   std::move(name)});
        to_.nodes.push_back(std::move(made));
        const Index n = static_cast<Index>(to_.nodes.size()) - 1;
        for (const Index read : {node(n).x, node(n).y, node(n).tape, node(n).dy}) need(n, read);
        return n;
    }

    /// The rows of `n` take those of `from` too.
    void add_rows(Index n, Index from) {
        node(n).added.push_back(from);
        need(n, from);
        to_.graph.nodes[static_cast<std::size_t>(n)].time += numbers(node(n).features);
    }

    Index forward(const Layer<Real>& layer, Index x) {
        const Opened<Real> parts = layer.opened();
        if (parts.layers.empty()) return run(layer, x);
        Index value = x;
        for (const Layer<Real>* inner : parts.layers) value = forward(*inner, value);
        if (parts.join == Join::add) {
            if (is_read(value)) value = add({.what = What::sum, .y = value, .features = node(value).features}, layer.name());
            add_rows(value, x);
        } else if (parts.join == Join::concatenate) {
            const Index features = node(x).features + node(value).features;
            value = add({.what = What::concatenate, .x = x, .y = value, .features = features}, layer.name());
        }
        return value;
    }

    /// Whether the reverse run of the layer that just gave this value reads it.
    bool is_read(Index value) const { return !ran_.empty() && ran_.back().y == value; }

    Index run(const Layer<Real>& layer, Index x) {
        const Footprint size = layer.footprint(to_.steps, to_.batch);
        const Index output = size.outputs * positions_, tape = aligned<Real>(size.tape);
        const bool apart = size.outputs > 0 && tape > output;
        NetworkNode made{.what = What::record, .layer = static_cast<Index>(ran_.size()), .x = x, .features = size.outputs};
        made.before = tape;
        const Index recorded = add(made, layer.name() + (apart ? ", tape" : ""), layer.work(to_.steps, to_.batch).forward);
        ran_.push_back({size.reads_x ? x : none, size.reads_y ? recorded : none, tape > 0 ? recorded : none, recorded});
        return apart ? add({.what = What::output, .tape = recorded, .features = size.outputs}, layer.name()) : recorded;
    }

    /// The adjoint of what the layer reads, to which those of `skips` are added; `wanted`: whether there is to be one.
    Index backward(const Layer<Real>& layer, Index dy, std::vector<Index> skips, bool wanted) {
        const Opened<Real> parts = layer.opened();
        if (parts.layers.empty()) return reverse(layer, dy, skips, wanted);
        if (parts.join != Join::none) skips.insert(skips.begin(), dy);
        if (parts.join == Join::concatenate) {
            const Index features = parts.layers.back()->footprint(1, 1).outputs;
            dy = add({.what = What::split, .dy = dy, .features = features}, layer.name() + ", split");
        }
        for (std::size_t i = parts.layers.size(); i-- > 0;)
            dy = backward(*parts.layers[i], dy, i == 0 ? skips : std::vector<Index>{}, i > 0 || wanted);
        return dy;
    }

    Index reverse(const Layer<Real>& layer, Index dy, const std::vector<Index>& skips, bool wanted) {
        const Ran ran = ran_.back();
        ran_.pop_back();
        NetworkNode made{.what = What::reverse, .layer = static_cast<Index>(ran_.size())};
        made.x = ran.x;
        made.y = ran.y;
        made.tape = ran.tape;
        made.dy = dy;
        made.features = wanted ? layer.footprint(1, 1).inputs : 0;
        const Index n = add(made, layer.name() + ", reverse", layer.work(to_.steps, to_.batch).reverse);
        if (dy == none) need(n, ran.record);  // a loss that keeps nothing is to be computed all the same
        if (made.features > 0)
            for (const Index skip : skips) add_rows(n, skip);
        return n;
    }

    NetworkGraph<Real>& to_;
    Index positions_;
    Index link_ = 0;
    std::vector<Ran> ran_;  // of the opened network's layers, those not yet reversed
    std::set<std::string> names_;
};

}  // namespace

template <class Real>
NetworkGraph<Real> network_graph(const Network<Real>& network, Index steps, Index batch, bool input_gradient) {
    if (steps < 1 || batch < 1)
        throw InvalidArgument("the graph of a network is that of at least 1 step and 1 sequence, got " + std::to_string(steps) +
                              " and " + std::to_string(batch));
    if (network.outputs() > 0)
        throw InvalidArgument("the graph of a network ends with its loss, but this is a part without one; give the whole network");
    if (input_gradient && network.inputs() == 0)
        throw InvalidArgument("the graph was to give the gradient of the inputs, but this network reads tokens; leave it out");
    NetworkGraph<Real> made{{}, {}, network.opened(), steps, batch, input_gradient};
    Extraction<Real> extract(made);
    extract(network);
    return made;
}

template NetworkGraph<float> network_graph(const Network<float>&, Index, Index, bool);
template NetworkGraph<double> network_graph(const Network<double>&, Index, Index, bool);

}  // namespace backsweep
