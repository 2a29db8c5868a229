// The metadata hold one JSON text a member; `checksum` is the CRC-32 over the others and all tensors, both by name.
// SPDX-License-Identifier: MIT
#include "backsweep/train/snapshot.hpp"

#include "backsweep/base/error.hpp"
#include "backsweep/train/durable_file.hpp"
#include "backsweep/train/spec_json.hpp"
#include "train/checksum.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <system_error>

namespace backsweep {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* format_key = "backsweep_snapshot";
constexpr const char* format_version = "1";
constexpr const char* checksum_key = "checksum";
constexpr const char* updates_name = "optimizer.updates";

std::string moment_prefix(const std::string& moment) {
    return "optimizer." + moment + ".";
}

std::map<std::string, std::string> metadata_of(const Snapshot& s) try {
    const json progress{{"update", s.update}, {"epoch", s.epoch}, {"step", s.step}, {"seed", s.seed}};
    return {{"format", "pt"},
            {format_key, format_version},
            {"progress", progress.dump()},
            {"model", to_json(s.model)},
            {"optimizer", to_json(s.optimizer)},
            {"rate", to_json(s.rate)},
            {"plateau", to_json(s.plateau)},
            {"clip", to_json(s.clip)},
            {"windows", to_json(s.windows)},
            {"plan", s.plan},
            {"notes", json(s.notes).dump()}};
} catch (const json::exception& e) {
    throw InvalidArgument(fmt::format("a snapshot holds only UTF-8 text outside its tensors: {}", e.what()));
}

std::string checksum_of(const std::map<std::string, std::string>& metadata, std::vector<TensorView> tensors) {
    Checksum sum;
    for (const auto& [key, value] : metadata)
        if (key != checksum_key) sum.add(fmt::format("{} {} {}\n", key, value.size(), value));
    std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
    for (const TensorView& t : tensors) {
        sum.add(fmt::format("{} {} {}\n", t.name, to_string(t.dtype), t.shape));
        sum.add(t.data);
    }
    return sum.text();
}

std::vector<Index> shape_of(const ParameterShape& parameter) {
    if (parameter.cols == 0) return {parameter.rows};
    return {parameter.rows, parameter.cols};
}

void check_size(const ParameterLayout& layout, std::size_t size) {
    if (static_cast<Index>(size) != layout.size())
        throw InvalidArgument(fmt::format("the parameters have {} elements, but {} came", layout.size(), size));
}

template <class Real>
std::span<Real> part_of(const ParameterView& parameter, std::span<Real> values) {
    return values.subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.size()));
}

fs::path path_of(const fs::path& folder, Index update) {
    return folder / fmt::format("snapshot-{:09}.safetensors", update);
}

/// The update in a generation's name, or -1.
Index update_of(const fs::path& path) {
    const std::string name = path.filename().string();
    constexpr std::string_view before = "snapshot-", after = ".safetensors";
    if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + 9 + after.size())
        return -1;
    Index update = 0;
    for (const char c : name.substr(before.size(), name.size() - before.size() - after.size())) {
        if (c < '0' || c > '9' || update > (Index{1} << 58)) return -1;
        update = 10 * update + (c - '0');
    }
    return update;
}

}  // namespace

const TensorView* Snapshot::find(std::string_view name) const noexcept {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const TensorView& t) { return t.name == name; });
    return found == tensors.end() ? nullptr : &*found;
}

const TensorView& Snapshot::wanted(std::string_view name, DType type, const std::vector<Index>& shape) const {
    const TensorView* t = find(name);
    if (!t) throw StoreError(fmt::format("{} has no tensor '{}'; it is of another model or run", source, name));
    if (t->dtype != type || t->shape != shape)
        throw StoreError(fmt::format("{} holds '{}' as {} {}, but {} {} is wanted; it is of another model or precision",
                                     source, name, to_string(t->dtype), t->shape, to_string(type), shape));
    return *t;
}

template <class Real>
void Snapshot::add_parameters(const ParameterLayout& layout, std::span<const Real> values, const std::string& prefix) {
    check_size(layout, values.size());
    for (const ParameterView& v : layout.views()) add<Real>(prefix + v.name, shape_of(v), part_of(v, values));
}

template <class Real>
void Snapshot::read_parameters(const ParameterLayout& layout, std::span<Real> values, const std::string& prefix) const {
    check_size(layout, values.size());
    std::vector<const TensorView*> found;
    for (const ParameterView& v : layout.views())
        found.push_back(&wanted(prefix + v.name, dtype_of<Real>(), shape_of(v)));
    for (std::size_t k = 0; k < found.size(); ++k) {
        const auto to = std::as_writable_bytes(part_of(layout.views()[k], values));
        std::copy(found[k]->data.begin(), found[k]->data.end(), to.begin());
    }
}

template <class Real>
void Snapshot::add_optimizer(const ParameterLayout& layout, const Optimizer<Real>& state) {
    optimizer = state.spec();
    for (const auto& [name, values] : state.moments()) add_parameters<Real>(layout, values, moment_prefix(name));
    keep<std::int64_t>(updates_name, {1}, {state.updates()});
}

template <class Real>
void Snapshot::read_optimizer(const ParameterLayout& layout, Optimizer<Real>& state) const {
    if (const std::string here = to_json(optimizer), there = to_json(state.spec()); here != there)
        throw InvalidArgument(
            fmt::format("{} was saved under the optimizer {}, which is to be {} now; go on with the former, or start "
                        "from the weights alone",
                        source, here, there));
    std::array<std::int64_t, 1> updates{};
    read<std::int64_t>(updates_name, updates);
    for (const auto& [name, values] : state.moments())
        for (const ParameterView& v : layout.views())
            wanted(moment_prefix(name) + v.name, dtype_of<Real>(), shape_of(v));
    for (const auto& [name, values] : state.moments()) read_parameters<Real>(layout, values, moment_prefix(name));
    state.set_updates(updates[0]);
}

template void Snapshot::add_parameters<float>(const ParameterLayout&, std::span<const float>, const std::string&);
template void Snapshot::add_parameters<double>(const ParameterLayout&, std::span<const double>, const std::string&);
template void Snapshot::read_parameters<float>(const ParameterLayout&, std::span<float>, const std::string&) const;
template void Snapshot::read_parameters<double>(const ParameterLayout&, std::span<double>, const std::string&) const;
template void Snapshot::add_optimizer<float>(const ParameterLayout&, const Optimizer<float>&);
template void Snapshot::add_optimizer<double>(const ParameterLayout&, const Optimizer<double>&);
template void Snapshot::read_optimizer<float>(const ParameterLayout&, Optimizer<float>&) const;
template void Snapshot::read_optimizer<double>(const ParameterLayout&, Optimizer<double>&) const;

void Snapshot::require(const ModelSpec& wanted) const {
    if (to_json(model) == to_json(wanted)) return;
    const std::string here = describe(model), there = describe(wanted);
    if (here != there)
        throw InvalidArgument(fmt::format("{} is of the model ({}), but the model here is ({})", source, here, there));
    throw InvalidArgument(
        fmt::format("{} is of the model {}, but the model here is {}", source, to_json(model), to_json(wanted)));
}

fs::path save_snapshot(const fs::path& folder, Snapshot& snapshot, Index keep) {
    if (keep < 2)
        throw InvalidArgument(
            fmt::format("at least 2 generations must be kept, not {}, for a save may be cut short", keep));
    const fs::path path = path_of(folder, snapshot.update);
    std::map<std::string, std::string> metadata = metadata_of(snapshot);
    metadata[checksum_key] = snapshot.checksum = checksum_of(metadata, snapshot.tensors);

    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw StoreError(fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
    DurableFile file(path);
    write_safetensors(file.stream(), snapshot.tensors, metadata);
    file.commit();

    std::vector<fs::path> generations = snapshots(folder);
    std::erase_if(generations, [&](const fs::path& p) { return update_of(p) > snapshot.update; });
    for (std::size_t k = 0; k + static_cast<std::size_t>(keep) < generations.size(); ++k)
        if (fs::remove(generations[k], error); error)
            throw StoreError(fmt::format("'{}' was saved, but the old '{}' cannot be removed: {}", path.string(),
                                         generations[k].string(), error.message()));
    remove_stale_files(folder);
    return path;
}

std::vector<fs::path> snapshots(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code error;
    fs::directory_iterator items(folder, error);
    if (error && error != std::errc::no_such_file_or_directory)
        throw StoreError(fmt::format("cannot read the folder '{}': {}", folder.string(), error.message()));
    for (const auto& item : items)
        if (update_of(item.path()) >= 0) found.push_back(item.path());
    std::sort(found.begin(), found.end(),
              [](const fs::path& a, const fs::path& b) { return update_of(a) < update_of(b); });
    return found;
}

Snapshot read_snapshot(const fs::path& path) {
    const auto file = std::make_shared<const Safetensors>(Safetensors::read(path));
    const std::string name = fmt::format("'{}'", path.string());
    const auto refuse = [&](const std::string& reason) {
        throw StoreError(fmt::format("cannot go on from {}: {}", name, reason));
    };
    const auto& metadata = file->metadata();
    if (!metadata.contains(format_key)) refuse("it is a .safetensors file, but no snapshot of a run");
    if (metadata.at(format_key) != format_version)
        refuse(fmt::format("it is of format {}, but this program reads format {}", metadata.at(format_key),
                           format_version));
    Snapshot s;
    s.checksum = checksum_of(metadata, file->tensors());
    if (const std::string& written = file->metadata(checksum_key); written != s.checksum)
        refuse(fmt::format("its checksum is {}, but {} was written; the file is damaged", s.checksum, written));
    try {
        const json progress = json::parse(file->metadata("progress"));
        progress.at("update").get_to(s.update);
        progress.at("epoch").get_to(s.epoch);
        progress.at("step").get_to(s.step);
        progress.at("seed").get_to(s.seed);
        s.model = model_from_json(file->metadata("model"));
        s.optimizer = optimizer_from_json(file->metadata("optimizer"));
        s.rate = rate_from_json(file->metadata("rate"));
        if (metadata.contains("plateau")) s.plateau = plateau_from_json(file->metadata("plateau"));
        s.clip = clip_from_json(file->metadata("clip"));
        if (metadata.contains("windows")) s.windows = windows_from_json(file->metadata("windows"));
        s.plan = file->metadata("plan");
        json::parse(file->metadata("notes")).get_to(s.notes);
    } catch (const json::exception& e) {
        refuse(e.what());
    } catch (const InvalidArgument& e) {
        refuse(e.what());
    }
    s.tensors = file->tensors();
    s.source = name;
    s.memory = {file};
    return s;
}

NewestSnapshot read_newest(const fs::path& folder) {
    std::vector<std::string> skipped;
    std::vector<fs::path> generations = snapshots(folder);
    for (; !generations.empty(); generations.pop_back()) {
        try {
            return {read_snapshot(generations.back()), generations.back(), skipped};
        } catch (const StoreError& e) {
            skipped.emplace_back(e.what());
        }
    }
    throw StoreError(fmt::format("no snapshot in '{}' can be read{}{}", folder.string(),
                                 skipped.empty() ? "; it holds none" : ":\n  ", fmt::join(skipped, "\n  ")));
}

}  // namespace backsweep
