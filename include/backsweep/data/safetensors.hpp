// The .safetensors format: named tensors and a map of strings in one file. Reader and writer.
// Layout: 8 bytes header length N (little-endian), N bytes of JSON, then the tensors' bytes in C order without gaps.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/range.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace backsweep {

/// Element types of a tensor in a file.
enum class DType : std::int32_t { f64, f32, i64, i32, u8, boolean };

/// The format's name of the type ("F64").
const char* to_string(DType type) noexcept;
/// Bytes of one element.
Index size_of(DType type) noexcept;

/// The type in which elements of T are stored.
template <class T>
constexpr DType dtype_of() noexcept {
    if constexpr (std::is_same_v<T, double>)
        return DType::f64;
    else if constexpr (std::is_same_v<T, float>)
        return DType::f32;
    else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>)
        return DType::i64;
    else if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>)
        return DType::i32;
    else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, char>)
        return DType::u8;
    else
        static_assert(std::is_same_v<T, std::byte>, "no element type of a safetensors file");
    return DType::u8;
}

/// A named tensor; `data` points to memory that another owns (the file read, or the caller's arrays).
struct TensorView {
    std::string name;
    DType dtype = DType::f64;
    std::vector<Index> shape;         ///< row-major; empty: a scalar
    std::span<const std::byte> data;  ///< not necessarily aligned

    /// Number of elements.
    Index size() const noexcept;
    /// The elements, converted: Real is double or float, from F64 and F32; throws InvalidArgument for other types.
    template <class Real>
    std::vector<Real> values() const;
    /// The elements of I64 (exact beyond 2^53), I32, U8 and BOOL; throws InvalidArgument for floating-point types.
    std::vector<std::int64_t> integers() const;
};

/// A view of `elements` for writing; they must outlive it.
template <class T>
TensorView tensor_view(std::string name, std::vector<Index> shape, std::span<const T> elements) {
    return {std::move(name), dtype_of<T>(), std::move(shape), std::as_bytes(elements)};
}

/// A file that was read, whole and checked. Movable, and the views stay valid; not copyable, for they point into it.
class Safetensors {
public:
    Safetensors() = default;
    Safetensors(Safetensors&&) noexcept = default;
    Safetensors& operator=(Safetensors&&) noexcept = default;

    /// Throws StoreError, naming the path and what is wrong, if the file cannot be read or is malformed: truncated,
    /// header beyond the end, bad JSON, a name twice, an unknown type, offsets that overlap, leave gaps or do not fit
    /// the shape.
    static Safetensors read(const std::filesystem::path& path);
    /// The same for bytes in memory; `source` stands for the path in messages.
    static Safetensors parse(std::vector<std::byte> bytes, const std::string& source);

    const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
    /// In the order of the data.
    const std::vector<TensorView>& tensors() const noexcept { return tensors_; }
    /// Null if there is none of that name.
    const TensorView* find(std::string_view name) const noexcept;
    /// Throws StoreError, naming the source, if there is none of that name.
    const TensorView& at(std::string_view name) const;
    /// A value of the metadata; throws StoreError, naming the source, if there is none.
    const std::string& metadata(const std::string& key) const;

private:
    std::string source_;
    std::vector<std::byte> bytes_;
    std::map<std::string, std::string> metadata_;
    std::vector<TensorView> tensors_;
};

/// Writes tensors, those of 8-byte elements first, then 4, then 1 (each in the given order), and the metadata. Equal
/// arguments give equal bytes. The stream's state is the caller's to check. Throws InvalidArgument for a name that
/// stands twice or is "__metadata__", and for data whose size does not fit the shape.
void write_safetensors(std::ostream& out, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// The same into memory.
std::vector<std::byte> safetensors_bytes(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata = {});

}  // namespace backsweep
