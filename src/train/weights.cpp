// SPDX-License-Identifier: MIT
#include "backsweep/train/weights.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/data/safetensors.hpp"
#include "backsweep/train/durable_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace backsweep {
namespace {

std::vector<Index> shape_of(const ParameterView& view) {
    return view.cols == 0 ? std::vector<Index>{view.rows} : std::vector<Index>{view.rows, view.cols};
}

template <class Real>
void check_size(const Network<Real>& network, std::size_t size) {
    if (static_cast<Index>(size) != network.parameters().size())
        throw InvalidArgument(fmt::format("the network has {} parameters, got {}", network.parameters().size(), size));
}

/// The names under which PyTorch's state_dict has a tied parameter once more, and the parameter's own.
template <class Real>
std::map<std::string, std::string> second_names(const Network<Real>& network) {
    std::map<std::string, std::string> names;
    for (Index l = 0; l < network.depth(); ++l)
        if (const std::string tied = network.layer(l).tied(); !tied.empty())
            names[network.layer(l).name() + ".weight"] = tied;
    return names;
}

}  // namespace

template <class Real>
void save_weights(const std::filesystem::path& path, const Network<Real>& network, std::span<const Real> parameters) {
    check_size(network, parameters.size());
    std::vector<TensorView> tensors;
    for (const ParameterView& v : network.parameters().views())
        tensors.push_back(tensor_view<Real>(
            v.name, shape_of(v),
            parameters.subspan(static_cast<std::size_t>(v.offset), static_cast<std::size_t>(v.size()))));
    DurableFile file(path);
    write_safetensors(file.stream(), tensors, {{"format", "pt"}});
    file.commit();
}

template <class Real>
void load_weights(const std::filesystem::path& path, const Network<Real>& network, std::span<Real> parameters) {
    check_size(network, parameters.size());
    const Safetensors file = Safetensors::read(path);
    const auto refuse = [&](const std::string& why) {
        throw InvalidArgument(fmt::format("'{}' does not hold this model's weights: {}", path.string(), why));
    };
    std::vector<std::vector<Real>> values;
    std::set<std::string> known;
    for (const ParameterView& v : network.parameters().views()) {
        const TensorView* const tensor = file.find(v.name);
        if (!tensor) {
            std::vector<std::string> there;
            for (const TensorView& t : file.tensors()) there.push_back(t.name);
            refuse(fmt::format("it has no tensor '{}'; it has: {}", v.name, fmt::join(there, ", ")));
        }
        if (tensor->shape != shape_of(v))
            refuse(fmt::format("'{}' must have the shape ({}), but has ({})", v.name, fmt::join(shape_of(v), ", "),
                               fmt::join(tensor->shape, ", ")));
        if (tensor->dtype != DType::f64 && tensor->dtype != DType::f32)
            refuse(fmt::format("'{}' must be F32 or F64, but is {}", v.name, to_string(tensor->dtype)));
        if (tensor->dtype == DType::f64 && sizeof(Real) < sizeof(double))
            refuse(fmt::format("'{}' is F64 and would be rounded; take double precision, or store the file as F32",
                               v.name));
        values.push_back(tensor->template values<Real>());
        known.insert(v.name);
    }
    for (const auto& [second, own] : second_names(network)) {
        const TensorView* const tensor = file.find(second);
        if (!tensor) continue;
        const TensorView& table = file.at(own);
        if (tensor->dtype != table.dtype || tensor->shape != table.shape ||
            !std::equal(tensor->data.begin(), tensor->data.end(), table.data.begin(), table.data.end()))
            refuse(fmt::format("'{}' is tied to '{}', but the file has other values for it", second, own));
        known.insert(second);
    }
    for (const TensorView& tensor : file.tensors())
        if (!known.contains(tensor.name))
            refuse(fmt::format("the model has no parameter '{}'; name layers alike, or take it out", tensor.name));
    for (std::size_t k = 0; k < values.size(); ++k)
        std::copy(values[k].begin(), values[k].end(), parameters.begin() + network.parameters().views()[k].offset);
}

template void save_weights(const std::filesystem::path&, const Network<float>&, std::span<const float>);
template void save_weights(const std::filesystem::path&, const Network<double>&, std::span<const double>);
template void load_weights(const std::filesystem::path&, const Network<float>&, std::span<float>);
template void load_weights(const std::filesystem::path&, const Network<double>&, std::span<double>);

}  // namespace backsweep
