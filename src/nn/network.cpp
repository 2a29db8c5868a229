// Layout, widths and starting values of networks; the table of devices.
// SPDX-License-Identifier: MIT
#include "backsweep/nn/network.hpp"

#include "backsweep/base/buffer.hpp"
#include "backsweep/base/error.hpp"
#include "backsweep/base/random.hpp"
#include "nn/catalogue.hpp"
#include "nn/composite.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

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

/// In parts that a compiler adds by vectors, in a fixed order.
double dot(Index n, const double* x, const double* y) {
    constexpr Index parts = 8;
    double sum[parts] = {};
    Index k = 0;
    for (; k + parts <= n; k += parts)
        for (Index part = 0; part < parts; ++part) sum[part] += x[k + part] * y[k + part];
    for (; k < n; ++k) sum[0] += x[k] * y[k];
    return std::accumulate(sum + 1, sum + parts, sum[0]);
}

/// [rows][cols], rows, or columns if there are fewer, orthonormal: Q of the QR decomposition of normal numbers, R's
/// diagonal positive, by Gram and Schmidt, twice, which is enough [GLRE05]. LAPACK's bits change with BLAS's threads.
std::vector<double> orthogonal(Index rows, Index cols, const Random& random, std::uint64_t first) {
    const bool wide = cols >= rows;
    const Index count = std::min(rows, cols), length = std::max(rows, cols);
    const auto element = [=](Index v, Index k) { return wide ? v * cols + k : k * cols + v; };
    std::vector<double> vectors(static_cast<std::size_t>(rows * cols)), result(vectors.size());
    for (Index v = 0; v < count; ++v) {
        double* const own = vectors.data() + v * length;
        for (Index k = 0; k < length; ++k) own[k] = random.normal(0, first + static_cast<std::uint64_t>(element(v, k)));
        for (int time = 0; time < 2; ++time)
            for (const double* other = vectors.data(); other != own; other += length) {
                const double along = dot(length, other, own);
                for (Index k = 0; k < length; ++k) own[k] -= along * other[k];
            }
        const double norm = std::sqrt(dot(length, own, own));
        for (Index k = 0; k < length; ++k) result[static_cast<std::size_t>(element(v, k))] = own[k] /= norm;
    }
    return result;
}

/// Assigns the starting values of a parameter, in C order.
template <class Real>
void fill(const ParameterView& view, const Random& random, Real* values) {
    const Start& start = view.start;
    const Index cols = std::max<Index>(view.cols, 1);
    const auto each = [&](auto&& value) {
        for (Index e = 0; e < view.size(); ++e) values[e] = static_cast<Real>(value(e));
    };
    switch (start.law) {
        case Start::Law::zero:
            each([](Index) { return 0.0; });
            break;
        case Start::Law::constant:
            each([&](Index) { return start.scale; });
            break;
        case Start::Law::uniform:
            each([&](Index e) { return start.scale * (2.0 * random.uniform(0, static_cast<std::uint64_t>(e)) - 1.0); });
            break;
        case Start::Law::normal:
            each([&](Index e) { return start.scale * random.normal(0, static_cast<std::uint64_t>(e)); });
            break;
        case Start::Law::identity:
            each([&](Index e) { return e / cols % start.block == e % cols ? start.scale : 0.0; });
            break;
        case Start::Law::orthogonal:
            for (Index row = 0; row < view.rows; row += start.block) {
                const auto block = orthogonal(start.block, cols, random, static_cast<std::uint64_t>(row * cols));
                std::transform(block.begin(), block.end(), values + row * cols,
                               [&](double e) { return static_cast<Real>(start.scale * e); });
            }
            break;
    }
    if (start.zero_row >= 0) std::fill_n(values + start.zero_row * cols, cols, Real{0});
    for (Index e = start.fixed.elements.first; e < start.fixed.elements.last; ++e)
        values[e] = static_cast<Real>(start.fixed.value);
}

}  // namespace

template <class Real>
Network<Real>::Network(ModelSpec spec, Layers layers)
    : spec_(std::make_shared<const ModelSpec>(std::move(spec))),
      layers_(std::make_move_iterator(layers.begin()), std::make_move_iterator(layers.end())) {
    if (layers_.empty()) throw InvalidArgument("a network needs at least one layer");
    ParameterLayout layout;
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
        parameter_offsets_.push_back(layout.size());
        for (ParameterShape& shape : layer(l).parameters()) layout.append(std::move(shape));
        const std::string tied = layer(l).tied();
        tied_offsets_.push_back(tied.empty() ? -1 : layout.find(tied).offset);
    }
    layout_ = std::make_shared<const ParameterLayout>(std::move(layout));
    count();
}

template <class Real>
Network<Real> Network<Real>::part(Range range) const {
    if (range.first < 0 || range.last > depth() || range.empty())
        throw InvalidArgument("a part of a network of " + std::to_string(depth()) +
                              " layers was asked for from layer " + std::to_string(range.first) + " to " +
                              std::to_string(range.last) + "; take at least one of its own");
    const auto cut = [&](const auto& all) {
        return std::decay_t<decltype(all)>(all.begin() + range.first, all.begin() + range.last);
    };
    Network part;
    part.spec_ = spec_;
    part.first_ = first_ + range.first;
    part.layers_ = cut(layers_);
    part.layout_ = layout_;
    part.parameter_offsets_ = cut(parameter_offsets_);
    part.tied_offsets_ = cut(tied_offsets_);
    part.count();
    return part;
}

template <class Real>
Network<Real> Network<Real>::opened() const {
    Network flat;
    flat.spec_ = spec_;
    flat.first_ = first_;
    flat.layout_ = layout_;
    const auto open = [&](const auto& self, const std::shared_ptr<const Layer<Real>>& layer, Index offset,
                          Index tied) -> void {
        const std::vector<const Layer<Real>*> parts = layer->opened().layers;
        if (parts.empty()) {
            flat.layers_.push_back(layer);
            flat.parameter_offsets_.push_back(offset);
            flat.tied_offsets_.push_back(tied);
        }
        for (const Layer<Real>* part : parts) {
            self(self, std::shared_ptr<const Layer<Real>>(layer, part), offset, -1);
            for (const ParameterShape& shape : part->parameters()) offset += shape.size();
        }
    };
    for (Index l = 0; l < depth(); ++l)
        open(open, layers_[static_cast<std::size_t>(l)], parameter_offset(l), tied_offset(l));
    flat.count();
    return flat;
}

template <class Real>
void Network<Real>::count() {
    inputs_ = layer(0).footprint(1, 1).inputs;
    const Footprint end = layer(depth() - 1).footprint(1, 1);
    outputs_ = end.outputs;
    links_ = outputs_ == 0 && !end.reads_x && depth() > 1 ? depth() - 1 : depth();
    for (Index l = 0; l < depth(); ++l) {
        const Footprint sizes = layer(l).footprint(1, 1);
        memory_offsets_.push_back(static_cast<Index>(memories_.size()));
        for (const MemoryShape& memory : layer(l).memories()) memories_.push_back(memory);
        prepared_offsets_.push_back(prepared_);
        prepared_ += aligned<Real>(layer(l).prepared());
        carry_offsets_.push_back(carry_);
        carry_ += sizes.carry;
        layer_carry_ = std::max(layer_carry_, sizes.carry);
        if (sizes.carry > 0 || memory_offsets_.back() < static_cast<Index>(memories_.size())) carry_depth_ = l + 1;
    }
    carry_offsets_.push_back(carry_);
    if (outputs_ > 0) carry_depth_ = depth();
    for (const MemoryShape& memory : memories_) {
        remembered_ = std::max(remembered_, memory.rows);
        state_ += memory.rows * memory.features;
        adjoint_ += memory.gradient ? memory.rows * memory.features : 0;
    }
    state_ += carry_ + remembered_;
    adjoint_ += carry_;
}

template <class Real>
void Network<Real>::start(std::uint64_t seed, std::span<Real> parameters) const {
    if (static_cast<Index>(parameters.size()) != layout_->size())
        throw InvalidArgument("the network has " + std::to_string(layout_->size()) +
                              " parameters, but room was given for " + std::to_string(parameters.size()));
    std::uint32_t number = 0;
    for (const ParameterView& view : layout_->views())
        fill(view, Random(seed, number++), parameters.data() + view.offset);
}

template <class Real>
void Network<Real>::prepare(const Real* parameters, Real* prepared) const {
    for (Index l = 0; l < depth(); ++l)
        layer(l).prepare(parameters + parameter_offset(l), prepared + prepared_offset(l));
}

template class Network<float>;
template class Network<double>;
template class Network<Dual<double>>;

namespace {

/// Makes layers one after the other; `streams` numbers those that draw random numbers.
template <class Real>
class Assembly {
public:
    explicit Assembly(const Catalogue<Real>& catalogue) : catalogue_(catalogue) {}

    typename Network<Real>::Layers layers(const std::vector<LayerSpec>& specs) {
        typename Network<Real>::Layers layers;
        for (const LayerSpec& any : specs) std::visit([&](const auto& spec) { append(spec, layers); }, any);
        return layers;
    }

private:
    using Layers = typename Network<Real>::Layers;

    void append(const EmbeddingSpec& spec, Layers& to) { to.push_back(catalogue_.embedding(spec)); }
    void append(const DenseSpec& spec, Layers& to) { to.push_back(catalogue_.dense(spec)); }
    void append(const NormSpec& spec, Layers& to) { to.push_back(catalogue_.norm(spec)); }
    void append(const ActivationSpec& spec, Layers& to) { to.push_back(catalogue_.activation(spec)); }
    void append(const DropoutSpec& spec, Layers& to) { to.push_back(catalogue_.dropout(spec, streams_++)); }
    void append(const FoldSpec& spec, Layers& to) { to.push_back(catalogue_.fold(spec)); }
    void append(const AttentionSpec& spec, Layers& to) {
        to.push_back(catalogue_.attention(spec, spec.dropout > 0.0 ? streams_++ : 0));
    }
    void append(const ResidualSpec& spec, Layers& to) { to.push_back(residual<Real>(spec.name, layers(spec.layers))); }
    void append(const ConcatenateSpec& spec, Layers& to) {
        to.push_back(concatenate<Real>(spec.name, layers(spec.layers)));
    }

    void append(const CheckpointSpec& spec, Layers& to) {
        to.push_back(checkpointed<Real>(spec.name, layers(spec.layers)));
    }

    void append(const RecurrentSpec& spec, Layers& to) {
        for (Index l = 0; l < spec.layers; ++l) {
            if (spec.bidirectional)
                to.push_back(bidirectional<Real>(part({spec, l, false}), part({spec, l, true})));
            else
                to.push_back(part({spec, l, false}));
            if (spec.dropout > 0.0 && l + 1 < spec.layers)
                append(DropoutSpec{spec.name + ", dropout " + std::to_string(l), spec.outputs(), spec.dropout,
                                   spec.locked},
                       to);
        }
    }

    LayerPointer<Real> part(const RecurrentPart& part) {
        using Cell = RecurrentSpec::Cell;
        const auto maker = part.spec.cell == Cell::lstm  ? catalogue_.lstm
                           : part.spec.cell == Cell::gru ? catalogue_.gru
                                                         : catalogue_.rnn;
        LayerPointer<Real> layer = maker(part);
        if (part.spec.weight_drop == 0.0) return layer;
        return weight_drop<Real>(std::move(layer), part.spec.name + ".weight_hh" + part.suffix(), part.spec.weight_drop,
                                 streams_++);
    }

    const Catalogue<Real>& catalogue_;
    std::uint32_t streams_ = 1u << 31;  // starting values of parameters have those from 0 on
};

}  // namespace

template <class Real>
Network<Real> assemble(const ModelSpec& spec, const Catalogue<Real>& catalogue) {
    if (const std::string problem = spec.problem(); !problem.empty()) throw InvalidArgument(problem);
    if (spec.loss.saves("logits")) {
        auto layers = Assembly<Real>(catalogue).layers(spec.layers);
        layers.push_back(catalogue.loss(spec.loss, spec.outputs()));
        return {spec, std::move(layers)};
    }
    auto layers = Assembly<Real>(catalogue).layers({spec.layers.begin(), spec.layers.end() - 1});
    layers.push_back(catalogue.head(std::get<DenseSpec>(spec.layers.back()), spec.loss));
    return {spec, std::move(layers)};
}

template Network<float> assemble(const ModelSpec&, const Catalogue<float>&);
template Network<double> assemble(const ModelSpec&, const Catalogue<double>&);
template Network<Dual<double>> assemble(const ModelSpec&, const Catalogue<Dual<double>>&);

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
