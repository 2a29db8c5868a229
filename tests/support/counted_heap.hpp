// Replaces operator new and delete of the executable that includes it, to know what the heap holds and how often it was
// asked.
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> heap_live{0}, heap_peak{0}, heap_calls{0};

// The size stands in a block of its own before the memory, so that alignment is kept.
constexpr std::size_t header = 64;

void* counted_new_or_null(std::size_t size) noexcept {
    const std::size_t whole = header + (size + header - 1) / header * header;
    auto* const block = static_cast<std::byte*>(std::aligned_alloc(header, whole));
    if (!block) return nullptr;
    ++heap_calls;
    *reinterpret_cast<std::size_t*>(block) = size;
    const std::int64_t now = heap_live += static_cast<std::int64_t>(size);
    std::int64_t seen = heap_peak;
    while (seen < now && !heap_peak.compare_exchange_weak(seen, now)) {}
    return block + header;
}
void* counted_new(std::size_t size) {
    if (void* const memory = counted_new_or_null(size)) return memory;
    throw std::bad_alloc();
}

void counted_delete(void* memory) noexcept {
    if (!memory) return;
    std::byte* const block = static_cast<std::byte*>(memory) - header;
    heap_live -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block));
    std::free(block);
}

}  // namespace

void* operator new(std::size_t size) {
    return counted_new(size);
}
void* operator new[](std::size_t size) {
    return counted_new(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return counted_new_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return counted_new_or_null(size);
}
void* operator new(std::size_t size, std::align_val_t) {
    return counted_new(size);
}
void* operator new[](std::size_t size, std::align_val_t) {
    return counted_new(size);
}
void operator delete(void* p) noexcept {
    counted_delete(p);
}
void operator delete[](void* p) noexcept {
    counted_delete(p);
}
void operator delete(void* p, std::size_t) noexcept {
    counted_delete(p);
}
void operator delete[](void* p, std::size_t) noexcept {
    counted_delete(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
    counted_delete(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
    counted_delete(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    counted_delete(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
    counted_delete(p);
}
