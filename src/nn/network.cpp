// Layout, widths and starting values of networks; the table of devices.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/network.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "nn/catalogue.hpp"

#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

namespace backsweep {
namespace {

struct Builders {
    Builder<float> single;
    Builder<double> twice;
};

/// Guarded, for rooms may register while another thread builds. The CPU is always there.
struct Table {
    std::mutex mutex;
    std::map<std::string, Builders, std::less<>> devices{{"cpu", {&cpu::build<float>, &cpu::build<double>}}};
};

Table& table() {
    static Table instance;
    return instance;
}

double starting_value(const Start& start, const Random& random, std::uint64_t element) {
    switch (start.law) {
        case Start::Law::zero:
            return 0.0;
        case Start::Law::uniform:
            return start.scale * (2.0 * random.uniform(0, element) - 1.0);
        case Start::Law::normal:
            break;
    }
    return start.scale * random.normal(0, element);
}

}  // namespace

template <class Real>
Network<Real>::Network(ModelSpec spec, Layers layers) : spec_(std::move(spec)),
                                                        layers_(std::move(layers)) {
    if (layers_.empty()) throw InvalidArgument("a network needs at least one layer");
    Index outputs = 0;
    for (Index l = 0; l < depth(); ++l) {
        const Footprint sizes = layer(l).footprint(1, 1);
        if (l > 0 && sizes.inputs != outputs)
            throw InvalidArgument("layer '" + layer(l).name() + "' reads " + std::to_string(sizes.inputs) +
                                  " features, but '" + layer(l - 1).name() + "' below it gives " +
                                  std::to_string(outputs) + "; make them equal");
        outputs = sizes.outputs;
        if ((outputs == 0) != (l + 1 == depth()))
            throw InvalidArgument("a network ends with its loss and has no other, but layer '" + layer(l).name() +
                                  "', number " + std::to_string(l) + " of " + std::to_string(depth()) + ", has " +
                                  std::to_string(outputs) + " outputs");
        parameter_offsets_.push_back(layout_.size());
        for (ParameterShape& shape : layer(l).parameters()) layout_.append(std::move(shape));
        carry_offsets_.push_back(carry_);
        carry_ += sizes.carry;
        if (sizes.carry > 0) carry_depth_ = l + 1;
    }
}

template <class Real>
void Network<Real>::start(std::uint64_t seed, std::span<Real> parameters) const {
    if (static_cast<Index>(parameters.size()) != layout_.size())
        throw InvalidArgument("the network has " + std::to_string(layout_.size()) +
                              " parameters, but room was given for " + std::to_string(parameters.size()));
    std::uint32_t number = 0;
    for (const ParameterView& view : layout_.views()) {
        const Random random(seed, number++);
        for (Index e = 0; e < view.size(); ++e) {
            const bool zero = view.cols > 0 && e / view.cols == view.start.zero_row;
            const double value = zero ? 0.0 : starting_value(view.start, random, static_cast<std::uint64_t>(e));
            parameters[static_cast<std::size_t>(view.offset + e)] = static_cast<Real>(value);
        }
    }
}

template class Network<float>;
template class Network<double>;

template <class Real>
Network<Real> assemble(const ModelSpec& spec, const Catalogue<Real>& catalogue) {
    if (const std::string problem = spec.problem(); !problem.empty()) throw InvalidArgument(problem);
    typename Network<Real>::Layers layers;
    for (const LayerSpec& any : spec.layers) {
        if (const auto* embedding = std::get_if<EmbeddingSpec>(&any)) layers.push_back(catalogue.embedding(*embedding));
        if (const auto* dense = std::get_if<DenseSpec>(&any)) layers.push_back(catalogue.dense(*dense));
        if (const auto* lstm = std::get_if<LstmSpec>(&any))
            for (Index l = 0; l < lstm->layers; ++l) layers.push_back(catalogue.lstm(*lstm, l));
    }
    layers.push_back(catalogue.loss(spec.loss, spec.outputs()));
    return {spec, std::move(layers)};
}

template Network<float> assemble(const ModelSpec&, const Catalogue<float>&);
template Network<double> assemble(const ModelSpec&, const Catalogue<double>&);

template <class Real>
Network<Real> build(const ModelSpec& spec, std::string_view device) {
    Table& t = table();
    Builder<Real> builder = nullptr;
    {
        const std::lock_guard lock(t.mutex);
        if (const auto found = t.devices.find(device); found != t.devices.end()) {
            if constexpr (std::is_same_v<Real, float>)
                builder = found->second.single;
            else
                builder = found->second.twice;
        }
    }
    if (builder) return builder(spec);
    std::string known;
    for (const std::string& name : devices()) known += (known.empty() ? "" : ", ") + name;
    throw InvalidArgument("unknown device '" + std::string(device) + "'; known: " + known);
}

template Network<float> build(const ModelSpec&, std::string_view);
template Network<double> build(const ModelSpec&, std::string_view);

void register_builder(std::string device, Builder<float> single, Builder<double> twice) {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    if (!t.devices.try_emplace(device, Builders{single, twice}).second)
        throw InvalidArgument("device '" + device + "' is registered already; choose another name");
}

std::vector<std::string> devices() {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    std::vector<std::string> names;
    for (const auto& entry : t.devices) names.push_back(entry.first);
    return names;
}

}  // namespace backsweep
