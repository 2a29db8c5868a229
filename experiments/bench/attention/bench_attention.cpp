// Attention in linear memory, one head of 64 features, causal: errors and live bytes against the length, 131,072 steps on
// one core, and the same by products with the whole matrix of scores.
// SPDX-License-Identifier: MIT
#include "backsweep/base/buffer.hpp"
#include "backsweep/base/random.hpp"
#include "nn/cpu/attend.hpp"
#include "nn/cpu/kernels.hpp"
#include "nn/cpu/multiply.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace backsweep;

namespace {

constexpr Index width = 64, samples = 24;

double now() {  // of this process's own time, for machines that others use too
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double clock_on_the_wall() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Inputs, results and workspace of one head, booked in a ledger of its own.
template <class Real>
struct Head {
    explicit Head(Index n) : steps(n) {
        for (Buffer<Real>* b : {&q, &k, &v, &o, &d_o, &dq, &dk, &dv}) *b = Buffer<Real>(n * width, Kind::data, ledger);
        lse = Buffer<Real>(n, Kind::tape, ledger);
        std::uint32_t stream = 0;
        for (Buffer<Real>* b : {&q, &k, &v, &d_o}) {
            const Random random(1, stream++);
            for (Index e = 0; e < n * width; ++e)  // numbers of float, whatever Real: the same for both
                b->data()[e] = static_cast<Real>(static_cast<float>(random.normal(0, static_cast<std::uint64_t>(e))));
        }
    }

    Attend<Real> attend() const {
        Attend<Real> a;
        a.queries = a.keys = steps;
        a.width = a.value_width = width;
        a.scale = Real{1} / 8;
        return a;
    }
    Rows<const Real> in(const Buffer<Real>& b) const { return {b.data(), width}; }
    Rows<Real> out(Buffer<Real>& b) const { return {b.data(), width}; }
    AttendReverse<Real> reverse() {
        AttendReverse<Real> call{in(q), in(k), in(v), in(o), lse.data(), in(d_o), out(dq), out(dk), out(dv)};
        return call;
    }

    void tiled() {
        Buffer<Real> workspace(cpu::attend_workspace(attend()), Kind::workspace, ledger);
        cpu::attend<Real>(attend(), in(q), in(k), in(v), out(o), lse.data(), workspace.data());
        cpu::attend_reverse(attend(), reverse(), workspace.data());
    }
    /// All scores at once: products of whole matrices, the probabilities kept for the reverse.
    void quadratic() {
        const Index n = steps;
        Buffer<Real> p(n * n, Kind::tape, ledger), d(n * n, Kind::workspace, ledger);
        const Real scale = attend().scale;
        cpu::multiply('T', 'N', n, n, width, k.data(), width, q.data(), width, Real{0}, p.data(), n);
        for (Index i = 0; i < n; ++i) {
            Real* const row = p.data() + i * n;
            for (Index j = 0; j <= i; ++j) row[j] *= scale;
            const Real max = cpu::largest(i + 1, row), sum = cpu::exponentials(i + 1, max, row);
            for (Index j = 0; j <= i; ++j) row[j] /= sum;
            std::fill(row + i + 1, row + n, Real{0});
        }
        cpu::multiply('N', 'N', width, n, n, v.data(), width, p.data(), n, Real{0}, o.data(), width);
        cpu::multiply('N', 'T', width, n, n, d_o.data(), width, p.data(), n, Real{0}, dv.data(), width);
        cpu::multiply('T', 'N', n, n, width, v.data(), width, d_o.data(), width, Real{0}, d.data(), n);
        for (Index i = 0; i < n; ++i) {
            Real D = 0;
            for (Index f = 0; f < width; ++f) D += o.data()[i * width + f] * d_o.data()[i * width + f];
            for (Index j = 0; j < n; ++j) d.data()[i * n + j] = scale * p.data()[i * n + j] * (d.data()[i * n + j] - D);
        }
        cpu::multiply('N', 'N', width, n, n, k.data(), width, d.data(), n, Real{0}, dq.data(), width);
        cpu::multiply('N', 'T', width, n, n, q.data(), width, d.data(), n, Real{0}, dk.data(), width);
    }

    Ledger ledger;
    Index steps;
    Buffer<Real> q, k, v, o, d_o, dq, dk, dv, lse;
};

/// Rows of o, dq, dk and dv at the sampled steps.
struct Sampled {
    std::vector<long double> o, dq, dk, dv;
};

std::vector<Index> sampled_steps(Index n) {
    std::vector<Index> steps{0, n - 1};
    while (static_cast<Index>(steps.size()) < samples)
        steps.push_back(Random(2, 0).below(static_cast<std::uint32_t>(n), 0, static_cast<std::uint64_t>(steps.size())));
    return steps;
}

template <class Real>
Sampled sample(const Head<Real>& h, const std::vector<Index>& steps) {
    const auto rows = [&](const Buffer<Real>& b) {
        std::vector<long double> all;
        for (const Index i : steps) all.insert(all.end(), b.data() + i * width, b.data() + (i + 1) * width);
        return all;
    };
    return {rows(h.o), rows(h.dq), rows(h.dk), rows(h.dv)};
}

/// The same by loops in Number, O(n) for a row of each. Rows of o and dq stand for themselves; dk and dv take log sums and
/// D = do.o of every query from `sums`, the kernel's, whose own rows are judged by this function too.
template <class Number, class Real, class Sum>
Sampled by_loops(const Head<Real>& h, const Head<Sum>& sums, const std::vector<Index>& steps) {
    const auto dot = [](const auto* x, const auto* y) {
        Number sum = 0;
        for (Index f = 0; f < width; ++f) sum += static_cast<Number>(x[f]) * static_cast<Number>(y[f]);
        return sum;
    };
    const auto row = [](const auto& b, Index i) { return b.data() + i * width; };
    const auto scale = static_cast<Number>(h.attend().scale);
    Sampled all;
    for (const Index i : steps) {
        std::vector<Number> p, dp;
        Number sum = 0, mean = 0;
        for (Index j = 0; j <= i; ++j) p.push_back(scale * dot(row(h.q, i), row(h.k, j)));
        const Number max = *std::max_element(p.begin(), p.end());
        for (Number& x : p) sum += x = std::exp(x - max);
        std::vector<Number> o(width), dq(width), dk(width), dv(width);
        for (Index j = 0; j <= i; ++j) {
            Number& x = p[static_cast<std::size_t>(j)];
            x /= sum;
            dp.push_back(dot(row(h.d_o, i), row(h.v, j)));
            mean += x * dp.back();
            for (std::size_t f = 0; f < width; ++f) o[f] += x * static_cast<Number>(row(h.v, j)[f]);
        }
        for (Index j = 0; j <= i; ++j) {
            const Number ds = scale * (p[static_cast<std::size_t>(j)] * (dp[static_cast<std::size_t>(j)] - mean));
            for (std::size_t f = 0; f < width; ++f) dq[f] += ds * static_cast<Number>(row(h.k, j)[f]);
        }
        for (Index t = i; t < h.steps; ++t) {  // step i as a key
            const Number s = scale * dot(row(h.q, t), row(h.k, i));
            const Number x = static_cast<Number>(std::exp(static_cast<long double>(s) - static_cast<long double>(sums.lse.data()[t])));
            long double D = 0;
            for (Index f = 0; f < width; ++f) D += static_cast<long double>(row(sums.o, t)[f]) * row(sums.d_o, t)[f];
            const Number ds = scale * (x * (dot(row(h.d_o, t), row(h.v, i)) - static_cast<Number>(D)));
            for (std::size_t f = 0; f < width; ++f) {
                dk[f] += ds * static_cast<Number>(row(h.q, t)[f]);
                dv[f] += x * static_cast<Number>(row(h.d_o, t)[f]);
            }
        }
        const auto put = [](std::vector<long double>& to, const std::vector<Number>& from) { to.insert(to.end(), from.begin(), from.end()); };
        put(all.o, o), put(all.dq, dq), put(all.dk, dk), put(all.dv, dv);
    }
    return all;
}

/// Largest error of each array over its largest value.
std::vector<double> errors(const Sampled& got, const Sampled& exact) {
    std::vector<double> all;
    for (const auto member : {&Sampled::o, &Sampled::dq, &Sampled::dk, &Sampled::dv}) {
        long double worst = 0, largest = 0;
        for (std::size_t k = 0; k < (exact.*member).size(); ++k) {
            worst = std::fmax(worst, std::abs((got.*member)[k] - (exact.*member)[k]));
            largest = std::fmax(largest, std::abs((exact.*member)[k]));
            if (!std::isfinite((got.*member)[k])) worst = INFINITY;
        }
        all.push_back(static_cast<double>(worst / largest));
    }
    return all;
}

bool good = true;

void claim(bool holds, const std::string& what) {
    if (!holds) std::printf("NOT MET: %s\n", what.c_str());
    good = good && holds;
}

void errors_and_bytes() {
    std::printf("%8s | error in double: o, dq, dk, dv | in float | of plain float | live bytes, float | of them workspace\n", "N");
    std::vector<double> lengths, bytes;
    for (const Index n : {256, 512, 1024, 2048, 4096, 8192, 16384}) {
        const std::vector<Index> steps = sampled_steps(n);
        Head<double> twice(n);
        twice.tiled();
        const Sampled exact = by_loops<long double>(twice, twice, steps);
        Head<float> once(n);
        once.ledger.reset_peaks();
        once.tiled();
        const auto in_double = errors(sample(twice, steps), exact), in_float = errors(sample(once, steps), exact),
                   plain = errors(by_loops<float>(once, twice, steps), exact);
        std::printf("%8lld |", static_cast<long long>(n));
        for (const auto& e : {in_double, in_float, plain}) std::printf(" %.1e %.1e %.1e %.1e |", e[0], e[1], e[2], e[3]);
        std::printf(" %lld | %lld\n", static_cast<long long>(once.ledger.peak_total()),
                    static_cast<long long>(once.ledger.peak()[Kind::workspace]));
        for (std::size_t k = 0; k < 4; ++k) {
            claim(in_double[k] <= 1e-12, "1e-12 in double");
            claim(in_float[k] <= 3.0 * std::fmax(plain[k], 0x1.0p-24), "three times the error of plain float");
        }
        lengths.push_back(std::log(static_cast<double>(n)));
        bytes.push_back(std::log(static_cast<double>(once.ledger.peak_total())));
    }
    const double exponent = (bytes.back() - bytes.front()) / (lengths.back() - lengths.front());
    const double at_the_end = (bytes.back() - bytes[bytes.size() - 2]) / std::log(2.0);
    std::printf("live bytes grow as N^%.3f, at the end as N^%.3f\n", exponent, at_the_end);
    claim(exponent <= 1.05 && at_the_end <= 1.05, "exponent of live bytes at most 1.05");
}

void one_long_head(Index n) {
    Head<float> h(n);
    const std::vector<Index> steps = sampled_steps(n);
    const double begin = now(), wall = clock_on_the_wall();
    h.tiled();
    const double seconds = now() - begin, wall_seconds = clock_on_the_wall() - wall;
    const double flops = 7.0 * static_cast<double>(n) * static_cast<double>(n) * width;
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::printf("N = %lld, forward and reverse: %.1f s of one core (%.1f s on the wall), %.1f GFLOP/s, %lld live bytes, %lld resident at most; all scores "
                "would take %lld\n",
                static_cast<long long>(n), seconds, wall_seconds, flops / seconds * 1e-9, static_cast<long long>(h.ledger.peak_total()),
                static_cast<long long>(usage.ru_maxrss) * 1024, static_cast<long long>(n) * static_cast<long long>(n) * 4);
    const auto e = errors(sample(h, steps), by_loops<long double>(h, h, steps));
    std::printf("errors of %lld rows of o, dq, dk, dv: %.1e %.1e %.1e %.1e\n", static_cast<long long>(samples), e[0], e[1], e[2], e[3]);
    claim(*std::max_element(e.begin(), e.end()) <= 1e-5, "errors of 1e-5 in float");
    claim(h.ledger.peak_total() <= 300'000'000, "300 MB of live bytes");
}

void against_quadratic() {
    for (const Index n : {1024, 2048, 4096}) {
        std::vector<double> tiled, quadratic;
        std::int64_t tiled_bytes = 0, quadratic_bytes = 0;
        for (int run = 0; run < 5; ++run) {
            Head<float> a(n), b(n);
            double begin = now();
            a.tiled();
            tiled.push_back(now() - begin);
            begin = now();
            b.quadratic();
            quadratic.push_back(now() - begin);
            tiled_bytes = a.ledger.peak_total();
            quadratic_bytes = b.ledger.peak_total();
            const std::vector<Index> steps = sampled_steps(n);
            for (const double e : errors(sample(b, steps), sample(a, steps))) claim(e < 1e-5, "both ways agree");
        }
        std::sort(tiled.begin(), tiled.end());
        std::sort(quadratic.begin(), quadratic.end());
        std::printf("N = %lld: tiles %.4f s, whole matrices %.4f s: %.2f of the time, %.4f of the bytes\n", static_cast<long long>(n), tiled[2],
                    quadratic[2], tiled[2] / quadratic[2], static_cast<double>(tiled_bytes) / static_cast<double>(quadratic_bytes));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (!std::getenv("OPENBLAS_NUM_THREADS")) {  // read when the library is loaded: begin anew
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
    }
    one_long_head(argc > 1 ? std::atoll(argv[1]) : 131'072);  // first, so that resident memory is its own
    errors_and_bytes();
    against_quadratic();
    return good ? 0 : 1;
}
