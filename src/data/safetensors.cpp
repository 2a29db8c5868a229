// The .safetensors format (https://github.com/huggingface/safetensors), strict in both directions.
// SPDX-License-Identifier: MIT
#include "backsweep/data/safetensors.hpp"

#include "backsweep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <ostream>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

namespace backsweep {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so must the machine be");

using Json = nlohmann::ordered_json;

struct TypeRow {
    DType type;
    const char* name;
    Index bytes;
};
constexpr std::array<TypeRow, 6> types{{{DType::f64, "F64", 8},
                                        {DType::f32, "F32", 4},
                                        {DType::i64, "I64", 8},
                                        {DType::i32, "I32", 4},
                                        {DType::u8, "U8", 1},
                                        {DType::boolean, "BOOL", 1}}};

constexpr const char* metadata_key = "__metadata__";
constexpr std::uint64_t prefix = sizeof(std::uint64_t);

std::string shape_text(const std::vector<Index>& shape) {
    std::string text = "[";
    for (const Index n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
    return text + "]";
}

/// Bytes of a tensor, or -1 if the number does not fit.
Index bytes_of(const std::vector<Index>& shape, DType type) {
    Index n = size_of(type);
    for (const Index extent : shape)
        if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) return -1;
    return n;
}

/// Parses the header; nlohmann keeps the last of equal keys, so that they are looked for on the way.
Json parse_header(const char* first, const char* last) {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&keys](int depth, Json::parse_event_t event, Json& value) {
        if (depth > 4) throw StoreError("the header is nested too deeply");
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
            throw StoreError("the name '" + value.get<std::string>() + "' stands twice in the header");
        return true;
    };
    return Json::parse(first, last, watch);
}

std::uint64_t natural(const Json& value, const std::string& what) {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
        throw StoreError(what + " must be a whole number >= 0, but is " + value.dump());
    return value.get<std::uint64_t>();
}

const Json& member(const Json& entry, const char* key, const std::string& name) {
    const auto found = entry.find(key);
    if (found == entry.end()) throw StoreError("tensor '" + name + "' has no '" + key + "'");
    return *found;
}

/// One entry of the header; `data` are all bytes after it.
TensorView tensor(const std::string& name, const Json& entry, std::span<const std::byte> data) {
    if (!entry.is_object())
        throw StoreError("the entry of tensor '" + name + "' must be an object, but is " + entry.dump());
    for (const auto& [key, value] : entry.items())
        if (key != "dtype" && key != "shape" && key != "data_offsets")
            throw StoreError("tensor '" + name + "' has an unknown key '" + key + "'");

    TensorView t;
    t.name = name;
    const Json& dtype = member(entry, "dtype", name);
    const auto row = std::find_if(types.begin(), types.end(), [&](const TypeRow& r) { return dtype == r.name; });
    if (row == types.end())
        throw StoreError("tensor '" + name + "' has the type " + dtype.dump() +
                         "; known: F64, F32, I64, I32, U8, BOOL");
    t.dtype = row->type;

    const Json& shape = member(entry, "shape", name);
    if (!shape.is_array())
        throw StoreError("the shape of tensor '" + name + "' must be a list, but is " + shape.dump());
    for (const Json& n : shape) t.shape.push_back(static_cast<Index>(natural(n, "an extent of tensor '" + name + "'")));

    const Json& offsets = member(entry, "data_offsets", name);
    if (!offsets.is_array() || offsets.size() != 2)
        throw StoreError("the offsets of tensor '" + name + "' must be a list of two, but are " + offsets.dump());
    const std::uint64_t first = natural(offsets[0], "an offset of tensor '" + name + "'");
    const std::uint64_t last = natural(offsets[1], "an offset of tensor '" + name + "'");
    if (first > last || last > data.size())
        throw StoreError("tensor '" + name + "' lies at bytes " + offsets.dump() + ", but the file has " +
                         std::to_string(data.size()) + " bytes of data; it is truncated or damaged");
    const Index wanted = bytes_of(t.shape, t.dtype);
    if (wanted < 0 || static_cast<std::uint64_t>(wanted) != last - first)
        throw StoreError("tensor '" + name + "' of type " + row->name + " and shape " + shape_text(t.shape) +
                         " needs " +
                         (wanted < 0 ? "more bytes than can be counted" : std::to_string(wanted) + " bytes") +
                         ", but its offsets hold " + std::to_string(last - first));
    t.data = data.subspan(first, last - first);
    return t;
}

template <class From, class To>
std::vector<To> converted(std::span<const std::byte> data) {
    std::vector<From> raw(data.size() / sizeof(From));
    if (!raw.empty()) std::memcpy(raw.data(), data.data(), data.size());
    if constexpr (std::is_same_v<From, To>) {
        return raw;
    } else {
        std::vector<To> values(raw.size());
        std::transform(raw.begin(), raw.end(), values.begin(), [](From v) { return static_cast<To>(v); });
        return values;
    }
}

}  // namespace

const char* to_string(DType type) noexcept {
    return types[static_cast<std::size_t>(type)].name;
}

Index size_of(DType type) noexcept {
    return types[static_cast<std::size_t>(type)].bytes;
}

Index TensorView::size() const noexcept {
    return static_cast<Index>(data.size()) / size_of(dtype);
}

template <class Real>
std::vector<Real> TensorView::values() const {
    switch (dtype) {
        case DType::f64:
            return converted<double, Real>(data);
        case DType::f32:
            return converted<float, Real>(data);
        default:
            break;
    }
    throw InvalidArgument("tensor '" + name + "' holds " + to_string(dtype) +
                          ", not floating-point numbers; read its integers()");
}
template std::vector<float> TensorView::values<float>() const;
template std::vector<double> TensorView::values<double>() const;

std::vector<std::int64_t> TensorView::integers() const {
    switch (dtype) {
        case DType::i64:
            return converted<std::int64_t, std::int64_t>(data);
        case DType::i32:
            return converted<std::int32_t, std::int64_t>(data);
        case DType::u8:
        case DType::boolean:
            return converted<std::uint8_t, std::int64_t>(data);
        default:
            break;
    }
    throw InvalidArgument("tensor '" + name + "' holds " + to_string(dtype) + ", not integers; read its values()");
}

Safetensors Safetensors::read(const std::filesystem::path& path) {
    errno = 0;
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    const auto failed = [&path](const char* doing) {
        return StoreError("'" + path.string() + "': cannot " + doing + ": " +
                          (errno != 0 ? std::strerror(errno) : "not a readable file"));
    };
    if (!in) throw failed("open");
    const auto size = static_cast<std::streamoff>(in.tellg());
    std::error_code ignored;
    if (size < 0 || std::filesystem::is_directory(path, ignored)) throw failed("read");
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    in.seekg(0);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), size)) throw failed("read");
    return parse(std::move(bytes), path.string());
}

Safetensors Safetensors::parse(std::vector<std::byte> bytes, const std::string& source) {
    Safetensors file;
    file.source_ = source;
    file.bytes_ = std::move(bytes);
    const std::span<const std::byte> all = file.bytes_;
    try {
        if (all.size() < prefix)
            throw StoreError("a safetensors file has at least 8 bytes, but this one has " + std::to_string(all.size()));
        std::uint64_t length = 0;
        std::memcpy(&length, all.data(), prefix);
        if (length > all.size() - prefix)
            throw StoreError("the header should have " + std::to_string(length) + " bytes, but the file has only " +
                             std::to_string(all.size() - prefix) +
                             " after the first 8; it is truncated or no safetensors file");
        const char* text = reinterpret_cast<const char*>(all.data()) + prefix;
        const Json header = parse_header(text, text + length);
        if (!header.is_object()) throw StoreError("the header must be a JSON object");

        const auto data = all.subspan(prefix + length);
        for (const auto& [name, entry] : header.items()) {
            if (name != metadata_key) {
                file.tensors_.push_back(tensor(name, entry, data));
                continue;
            }
            if (!entry.is_object()) throw StoreError("__metadata__ must be an object");
            for (const auto& [key, value] : entry.items()) {
                if (!value.is_string())
                    throw StoreError("__metadata__ must hold strings, but '" + key + "' is " + value.dump());
                file.metadata_[key] = value.get<std::string>();
            }
        }
        const auto at = [&data](const TensorView& t) { return t.data.data() - data.data(); };
        std::stable_sort(file.tensors_.begin(), file.tensors_.end(), [&](const TensorView& a, const TensorView& b) {
            return std::pair(at(a), a.data.size()) < std::pair(at(b), b.data.size());
        });
        std::ptrdiff_t end = 0;
        for (const TensorView& t : file.tensors_) {
            if (at(t) != end)
                throw StoreError("tensor '" + t.name + "' begins at byte " + std::to_string(at(t)) +
                                 " of the data, but the one before it ends at " + std::to_string(end) + ": " +
                                 (at(t) < end ? "they overlap" : "there is a gap"));
            end += static_cast<std::ptrdiff_t>(t.data.size());
        }
        if (static_cast<std::size_t>(end) != data.size())
            throw StoreError("the tensors end at byte " + std::to_string(end) + " of the data, but the file has " +
                             std::to_string(data.size()));
    } catch (const StoreError& e) {
        throw StoreError("'" + source + "': " + e.what());
    } catch (const nlohmann::json::exception& e) {
        throw StoreError("'" + source + "': the header is no valid JSON: " + e.what());
    }
    return file;
}

const TensorView* Safetensors::find(std::string_view name) const noexcept {
    const auto found =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorView& t) { return t.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
}

const TensorView& Safetensors::at(std::string_view name) const {
    if (const TensorView* t = find(name)) return *t;
    throw StoreError("'" + source_ + "': there is no tensor '" + std::string(name) + "'");
}

const std::string& Safetensors::metadata(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) throw StoreError("'" + source_ + "': the metadata have no '" + key + "'");
    return found->second;
}

void write_safetensors(std::ostream& out, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::vector<const TensorView*> order;
    std::set<std::string_view> names{metadata_key};
    for (const TensorView& t : tensors) {
        if (!names.insert(t.name).second)
            throw InvalidArgument(
                "tensors of a safetensors file must have different names other than __metadata__, but '" + t.name +
                "' was given");
        if (bytes_of(t.shape, t.dtype) != static_cast<Index>(t.data.size()))
            throw InvalidArgument("tensor '" + t.name + "' of type " + to_string(t.dtype) + " and shape " +
                                  shape_text(t.shape) + " was given with " + std::to_string(t.data.size()) + " bytes");
        order.push_back(&t);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const TensorView* a, const TensorView* b) { return size_of(a->dtype) > size_of(b->dtype); });

    Json header = Json::object();
    if (!metadata.empty()) header[metadata_key] = metadata;
    std::size_t offset = 0;
    for (const TensorView* t : order) {
        header[t->name] = {
            {"dtype", to_string(t->dtype)}, {"shape", t->shape}, {"data_offsets", {offset, offset + t->data.size()}}};
        offset += t->data.size();
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const Json::exception&) {
        throw InvalidArgument("names and metadata of a safetensors file must be valid UTF-8");
    }
    text.append((prefix - text.size() % prefix) % prefix, ' ');

    const std::uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), prefix);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const TensorView* t : order)
        out.write(reinterpret_cast<const char*>(t->data.data()), static_cast<std::streamsize>(t->data.size()));
}

std::vector<std::byte> safetensors_bytes(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata) {
    std::ostringstream out;
    write_safetensors(out, tensors, metadata);
    const std::string_view text = out.view();
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

}  // namespace backsweep
