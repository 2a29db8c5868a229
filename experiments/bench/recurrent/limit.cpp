// What one core can do at most in single precision, by the widest vectors that it has: multiplications and additions on
// registers alone, and products of a recurrent matrix with one vector, which read the matrix from the cache it lies in.
// SPDX-License-Identifier: MIT
#include "contestant.hpp"

#include <barrier>
#include <memory>
#include <new>
#include <thread>
#include <utility>

namespace {

using bench::Case;

/// Independent sums on registers: enough that each addition finds its last result done.
constexpr int sums = 12;

template <class V>
[[gnu::always_inline]] inline float on_registers(std::int64_t rounds) {
    V sum[sums], factor, term;
    for (int k = 0; k < sums; ++k) sum[k] = V{} + static_cast<float>(k);  // different, or one would do for all
    const volatile float numbers[]{0.9987f, 0.0007f};  // unknown, or a sum that stays what it is would not be made
    factor = V{} + numbers[0];
    term = V{} + numbers[1];
    for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
        for (int k = 0; k < sums; ++k) sum[k] = sum[k] * factor + term;
        asm volatile("");  // so that it is run where it stands
    }
    V all{};
    for (const V& s : sum) all += s;
    return all[0];
}

template <class V>
[[gnu::always_inline]] inline float on_a_matrix(const float* matrix, std::int64_t size, std::int64_t rounds) {
    constexpr std::int64_t lanes = sizeof(V) / sizeof(float);
    V sum[sums], factor;
    for (V& s : sum) s = V{};
    factor = V{} + 0.001f;
    for (std::int64_t r = 0; r < rounds; ++r) {
        for (std::int64_t k = 0; k + sums * lanes <= size; k += sums * lanes) {
#pragma GCC unroll 12
            for (int s = 0; s < sums; ++s) sum[s] += *reinterpret_cast<const V*>(matrix + k + s * lanes) * factor;
        }
        asm volatile("" ::: "memory");
    }
    V all{};
    for (const V& s : sum) all += s;
    return all[0];
}

/// May alias the floats that it is made of.
template <int bytes>
struct Vector {
    typedef float type __attribute__((vector_size(bytes), may_alias));
};

struct Loops {
    const char* name;
    std::int64_t lanes;
    float (*registers)(std::int64_t rounds);
    float (*matrix)(const float* matrix, std::int64_t size, std::int64_t rounds);
};

#if defined(__x86_64__)
[[gnu::target("avx512f")]] float registers_512(std::int64_t n) {
    return on_registers<Vector<64>::type>(n);
}
[[gnu::target("avx512f")]] float matrix_512(const float* m, std::int64_t s, std::int64_t n) {
    return on_a_matrix<Vector<64>::type>(m, s, n);
}
[[gnu::target("avx2,fma")]] float registers_256(std::int64_t n) {
    return on_registers<Vector<32>::type>(n);
}
[[gnu::target("avx2,fma")]] float matrix_256(const float* m, std::int64_t s, std::int64_t n) {
    return on_a_matrix<Vector<32>::type>(m, s, n);
}
#endif
float registers_128(std::int64_t n) {
    return on_registers<Vector<16>::type>(n);
}
float matrix_128(const float* m, std::int64_t s, std::int64_t n) {
    return on_a_matrix<Vector<16>::type>(m, s, n);
}

Loops widest() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return {"AVX-512", 16, registers_512, matrix_512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return {"AVX2 with FMA", 8, registers_256, matrix_256};
#endif
    return {"128 bits", 4, registers_128, matrix_128};
}

/// A step measures both, on every thread at the same time; facts() gives their sums in operations a second.
class Limit {
public:
    explicit Limit(const Case& c) : threads_(c.threads), size_(c.hidden * c.hidden * (c.cell == "gru" ? 3 : 4)) {}
    std::string version() const { return loops_.name; }
    void step() {
        std::vector<double> of_registers(static_cast<std::size_t>(threads_)), of_matrix(of_registers.size());
        std::barrier together(threads_);
        const auto work = [&](std::size_t thread) {
            const std::unique_ptr<float[], Free> matrix(
                new (std::align_val_t{64}) float[static_cast<std::size_t>(size_)]);
            std::fill_n(matrix.get(), size_, 1.0f);
            const std::int64_t rounds = 20'000'000, passes = std::max<std::int64_t>(1, 400'000'000 / size_);
            float kept = loops_.matrix(matrix.get(), size_, 1);
            together.arrive_and_wait();
            const clockid_t clock = threads_ > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
            const double begin = bench::seconds(clock);
            kept += loops_.registers(rounds);
            const double middle = bench::seconds(clock);
            kept += loops_.matrix(matrix.get(), size_, passes);
            const double end = bench::seconds(clock);
            asm volatile("" ::"m"(kept));
            const auto each = static_cast<std::int64_t>(sums) * loops_.lanes;
            of_registers[thread] = 2.0 * static_cast<double>(rounds * each) / (middle - begin);
            of_matrix[thread] = 2.0 * static_cast<double>(passes * (size_ / each * each)) / (end - middle);
        };
        {
            std::vector<std::jthread> others;
            for (std::int64_t t = 1; t < threads_; ++t) others.emplace_back(work, static_cast<std::size_t>(t));
            work(0);
        }
        registers_ = matrix_ = 0.0;
        for (const double rate : of_registers) registers_ += rate;
        for (const double rate : of_matrix) matrix_ += rate;
    }
    static void gradients(const std::string&) { throw std::invalid_argument("the limit has no gradients"); }
    std::string facts() const {
        return "{\"registers\": " + std::to_string(registers_) + ", \"matrix\": " + std::to_string(matrix_) + "}";
    }

private:
    struct Free {
        void operator()(float* p) const noexcept { ::operator delete[](p, std::align_val_t{64}); }
    };
    Loops loops_ = widest();
    std::int64_t threads_, size_;
    double registers_ = 0.0, matrix_ = 0.0;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::serve<Limit>(argc, argv);
}
