// An owned, 64-byte aligned block of numbers that is booked in a ledger.
// Ledger and kind belong to the holder, not to the bytes: moving or swapping re-books them. A default-constructed
// holder is unbound: it adopts the ledger, and the kind unless rebook() has set one, of the first buffer it meets.
// SPDX-License-Identifier: MIT
#pragma once

#include "backsweep/base/ledger.hpp"
#include "backsweep/base/range.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace backsweep {

/// `count` elements up to the next multiple of 64 bytes: what parts of one block take, so that each begins aligned.
template <class T>
constexpr Index aligned(Index count) noexcept {
    constexpr Index line = 64 / static_cast<Index>(sizeof(T));
    return (count + line - 1) / line * line;
}

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    /// Empty and unbound.
    Buffer() noexcept = default;

    /// Empty; what it will hold is booked as `kind` in `ledger`.
    explicit Buffer(Kind kind, Ledger& ledger = Ledger::process()) noexcept
        : ledger_(&ledger),
          kind_(kind),
          kind_set_(true) {}

    /// `size` elements, all zero.
    Buffer(Index size, Kind kind, Ledger& ledger = Ledger::process()) : Buffer(kind, ledger) { assign(size, T{}); }

    Buffer(const Buffer& other) { *this = other; }

    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)),
          ledger_(other.ledger_),
          kind_(other.kind_),
          kind_set_(other.kind_set_) {}

    /// Copies the values; keeps its own kind and, where it suffices, its own memory.
    Buffer& operator=(const Buffer& other) {
        if (this == &other) return *this;
        adopt(other);
        resize(other.size_);
        std::copy_n(other.data_, other.size_, data_);
        return *this;
    }

    /// Takes the memory over and books it under this holder's own kind.
    Buffer& operator=(Buffer&& other) noexcept {
        if (this == &other) return *this;
        release();
        swap(other);
        return *this;
    }

    ~Buffer() { release(); }

    /// Exchanges the memory; each holder keeps its ledger and kind.
    void swap(Buffer& other) noexcept {
        adopt(other);
        other.adopt(*this);
        const std::int64_t growth = other.bytes() - bytes();  // not 0 only if both are bound
        if (growth != 0 && ledger_ == other.ledger_) {
            ledger_->rebook(other.kind_, kind_, growth);
        } else if (growth > 0) {  // what shrinks goes first: a common parent must see no peak
            other.ledger_->book(other.kind_, -growth);
            ledger_->book(kind_, growth);
        } else if (growth < 0) {
            ledger_->book(kind_, growth);
            other.ledger_->book(other.kind_, -growth);
        }
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    friend void swap(Buffer& a, Buffer& b) noexcept { a.swap(b); }

    /// Changes the size; the values are unspecified if it grows past the capacity, which is never given back.
    void resize(Index size) {
        if (size > capacity_) {
            release();
            if (!ledger_) ledger_ = &Ledger::process();
            data_ = static_cast<T*>(::operator new(sizeof(T) * static_cast<std::size_t>(size), alignment));
            capacity_ = size;
            ledger_->book(kind_, bytes());
        }
        size_ = size;
    }

    /// Makes room for `size` elements; the values are unspecified if that takes new memory.
    void reserve(Index size) {
        const Index now = size_;
        resize(std::max(size, size_));
        size_ = now;
    }

    void assign(Index size, T value) {
        resize(size);
        std::fill_n(data_, size_, value);
    }
    void fill(T value) noexcept { std::fill_n(data_, size_, value); }

    /// Gives the memory back.
    void release() noexcept {
        if (!data_) return;
        ledger_->book(kind_, -bytes());
        ::operator delete(data_, alignment);
        data_ = nullptr;
        size_ = capacity_ = 0;
    }

    /// Binds an unbound holder.
    void bind(Kind kind, Ledger& ledger) noexcept {
        if (ledger_) return;
        ledger_ = &ledger;
        kind_ = kind;
        kind_set_ = true;
    }

    /// Books the present and all later memory as `kind`.
    void rebook(Kind kind) noexcept {
        if (ledger_) ledger_->rebook(kind_, kind, bytes());
        kind_ = kind;
        kind_set_ = true;
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    Index size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    /// Bytes allocated (capacity, not size).
    std::int64_t bytes() const noexcept { return capacity_ * static_cast<std::int64_t>(sizeof(T)); }
    Kind kind() const noexcept { return kind_; }

    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + size_; }
    T& operator[](Index i) noexcept { return data_[i]; }
    const T& operator[](Index i) const noexcept { return data_[i]; }

    std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(size_)}; }
    std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }

private:
    static constexpr std::align_val_t alignment{64};

    void adopt(const Buffer& other) noexcept {
        if (ledger_) return;
        ledger_ = other.ledger_;
        if (kind_set_) return;
        kind_ = other.kind_;
        kind_set_ = other.kind_set_;
    }

    T* data_ = nullptr;
    Index size_ = 0;
    Index capacity_ = 0;
    Ledger* ledger_ = nullptr;  // null: unbound, and nothing is held
    Kind kind_ = Kind::workspace;
    bool kind_set_ = false;
};

}  // namespace backsweep
