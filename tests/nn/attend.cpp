// The attention kernel against plain loops, and laws of both: shapes that no tile divides, windows, memory, hidden keys,
// distances, dropout.
// SPDX-License-Identifier: MIT
#define BOOST_TEST_MODULE attend
#include "support/unit_test.hpp"

#include "nn/attend_problem.hpp"
#include "nn/cpu/rotary.hpp"
#include "nn/each_kind.hpp"

#include <cmath>
#include <map>

using namespace backsweep;
using namespace backsweep::test;

namespace {

AttendCase of(std::string name, Index queries, Index offset, Index width, Index value_width) {
    AttendCase c{std::move(name), {}};
    c.attend.queries = queries;
    c.attend.keys = offset + queries;
    c.attend.offset = offset;
    c.attend.width = width;
    c.attend.value_width = value_width;
    c.attend.scale = 1.0 / std::sqrt(static_cast<double>(width));
    return c;
}

AttendCase with(AttendCase c, const std::string& what, auto... change) {
    c.name += ", " + what;
    (change(c), ...);
    return c;
}

auto window(Index steps) {
    return [steps](AttendCase& c) { c.attend.window = steps; };
}
auto slope(double s) {
    return [s](AttendCase& c) { c.attend.slope = s; };
}
void full(AttendCase& c) {
    c.attend.causal = false;
}
void relative(AttendCase& c) {
    c.relative = true;
}
auto keys(Index count) {
    return [count](AttendCase& c) { c.attend.keys = count; };
}
auto large(double size) {
    return [size](AttendCase& c) { c.size = size; };
}
/// Every third key and a stretch in the middle.
void hidden(AttendCase& c) {
    const Index n = c.attend.keys;
    for (Index j = 0; j < n; ++j) c.hidden.push_back(j % 3 == 1 || (j >= n / 3 && j < n / 2));
}
/// The first so many: queries that see these alone see nothing.
auto hidden_first(Index count) {
    return [count](AttendCase& c) {
        for (Index j = 0; j < c.attend.keys; ++j) c.hidden.push_back(j < count);
    };
}
auto dropout(double rate, Index step) {
    return [rate, step](AttendCase& c) { c.attend.dropout = {rate, 7, 3, step, 5}; };
}

/// Small enough for differences, yet with everything in it.
std::vector<AttendCase> small_cases() {
    const AttendCase c = of("7 queries", 7, 0, 3, 5), m = of("5 queries behind 4", 5, 4, 4, 2);
    return {
        c,
        m,
        of("one query", 1, 0, 1, 1),
        of("one query behind 6", 1, 6, 2, 3),
        with(c, "full", full),
        with(m, "full", full),
        with(c, "full, 11 keys", full, keys(11)),
        with(c, "full, 2 keys", full, keys(2)),
        with(c, "4 keys", keys(4)),
        with(c, "window 1", window(1)),
        with(m, "window 3", window(3)),
        with(c, "2 keys, window 3", keys(2), window(3)),
        with(c, "ALiBi", slope(0.25)),
        with(m, "ALiBi, window 4", slope(0.6), window(4)),
        with(m, "ALiBi, full", slope(0.3), full),
        with(c, "relative", relative),
        with(m, "relative", relative),
        with(m, "relative, window 4", relative, window(4)),
        with(m, "relative, ALiBi, hidden", relative, slope(0.1), hidden),
        with(c, "hidden", hidden),
        with(m, "hidden, full", hidden, full),
        with(c, "first hidden", hidden_first(3)),
        with(m, "first hidden, window 2", hidden_first(7), window(2)),
        with(c, "all hidden", hidden_first(7)),
        with(m, "dropout", dropout(0.4, 100)),
        with(m, "dropout, relative, hidden", dropout(0.2, 0), relative, hidden),
        with(c, "dropout, full", dropout(0.5, 2), full),
    };
}

/// More than two tiles each way, and no multiple of a tile.
std::vector<AttendCase> large_cases() {
    const AttendCase c = of("777 queries", 777, 0, 7, 9), m = of("301 queries behind 530", 301, 530, 8, 4);
    return {
        c,
        m,
        of("one query behind 1300", 1, 1300, 5, 5),
        of("tiles", 256, 512, 16, 16),
        of("a tile and one more", 257, 257, 4, 4),
        of("300 queries of 37 features", 300, 20, 37, 21),
        of("100 queries of 130 features", 100, 3, 130, 70),
        with(c, "full", full),
        with(m, "full", full),
        with(c, "full, 33 keys", full, keys(33)),
        with(c, "300 keys, window 40", keys(300), window(40)),
        with(c, "window 1", window(1)),
        with(m, "window 17", window(17)),
        with(m, "window 400", window(400)),
        with(c, "ALiBi", slope(0.004)),
        with(m, "ALiBi, full", slope(0.01), full),
        with(m, "ALiBi, window 300, hidden", slope(0.02), window(300), hidden),
        with(c, "relative", relative),
        with(m, "relative", relative),
        with(m, "relative, window 290", relative, window(290)),
        with(m, "relative, hidden", relative, hidden),
        with(c, "hidden", hidden),
        with(c, "first 400 hidden", hidden_first(400)),
        with(m, "first 600 hidden, window 50", hidden_first(600), window(50)),
        with(m, "all hidden", hidden_first(831)),
        with(c, "large", large(12.0)),
        with(m, "large, ALiBi", large(12.0), slope(0.5)),
        with(m, "huge", large(40.0)),
        with(m, "dropout", dropout(0.4, 100)),
        with(m, "dropout, hidden, around step 2^32", dropout(0.4, (Index{1} << 32) - 40), hidden),
        with(c, "dropout, full, before step 0", dropout(0.3, -400), full),
        with(m, "dropout, relative, window 350", dropout(0.3, 9), relative, window(350)),
    };
}

std::vector<AttendCase> all_cases() {
    std::vector<AttendCase> all = small_cases();
    for (AttendCase& c : large_cases()) all.push_back(std::move(c));
    return all;
}

bool sees_nothing(const AttendCase& c, Index i) {
    const Range seen = c.attend.seen(i);
    for (Index j = seen.first; j < seen.last; ++j)
        if (c.hidden.empty() || !c.hidden[static_cast<std::size_t>(j)]) return false;
    return true;
}

/// sum of d_o o.
double objective(Driver driver, const AttendCase& c, const AttendData<double>& d) {
    const auto o = run(driver, c, d).o;
    double sum = 0.0;
    for (std::size_t k = 0; k < o.size(); ++k) sum += o[k] * d.d_o[k];
    return sum;
}

void check_near(const AttendResult<double>& got, const AttendResult<double>& wanted, double relative) {
    std::map<std::string, std::vector<double>> all;
    wanted.for_each([&](const char* name, const auto& w) { all[name] = w; });
    got.for_each([&](const char* name, const auto& g) {
        const auto& w = all.at(name);
        if (g.empty() && w.empty()) return;
        const Comparison c = compare(g, w, {relative, 1e-15});
        BOOST_TEST(c, name << ": " << c);
    });
}

void check_same(const AttendResult<float>& got, const AttendResult<float>& wanted) {
    std::map<std::string, std::vector<float>> all;
    wanted.for_each([&](const char* name, const auto& w) { all[name] = w; });
    got.for_each([&](const char* name, const auto& g) {
        const Comparison c = same_bits(g, all.at(name));
        BOOST_TEST(c, name << ": " << c);
    });
}

}  // namespace

BOOST_AUTO_TEST_CASE(kernel_and_plain_loops_agree_in_double) {
    for (const AttendCase& c : all_cases()) BOOST_TEST_CONTEXT(c.name) {
            const auto d = data_for(c);
            check_near(run(Driver::cpu, c, d, 0, 0.5), run(Driver::reference, c, d, 0, 0.5), c.size > 1.0 ? 1e-11 : 1e-12);
        }
}

BOOST_AUTO_TEST_CASE(queries_that_see_nothing_give_exactly_0) {
    for (const Driver driver : drivers)
        for (const AttendCase& c : all_cases()) BOOST_TEST_CONTEXT(c.name << ", " << to_string(driver)) {
                const auto d = data_for(c);
                const auto got = run(driver, c, d);
                const auto zero = [](const std::vector<double>& rows, Index row, Index width) {
                    return std::all_of(rows.begin() + row * width, rows.begin() + (row + 1) * width,
                                       [](double x) { return x == 0.0; });
                };
                for (Index i = 0; i < c.attend.queries; ++i) {
                    const bool blind = sees_nothing(c, i);
                    const double lse = got.lse[static_cast<std::size_t>(i)];
                    BOOST_TEST((blind ? lse == -std::numeric_limits<double>::infinity() : std::isfinite(lse)));
                    if (blind)
                        BOOST_TEST((zero(got.o, i, c.attend.value_width) && zero(got.dq, i, c.attend.width)));
                }
                for (std::size_t j = 0; j < c.hidden.size(); ++j)
                    if (c.hidden[j])
                        BOOST_TEST((zero(got.dk, static_cast<Index>(j), c.attend.width) &&
                                    zero(got.dv, static_cast<Index>(j), c.attend.value_width)));
            }
}

BOOST_AUTO_TEST_CASE(reverse_agrees_with_central_differences) {
    for (const Driver driver : drivers)
        for (const AttendCase& c : small_cases()) BOOST_TEST_CONTEXT(c.name << ", " << to_string(driver)) {
                auto d = data_for(c);
                const auto got = run(driver, c, d);
                const auto check = [&](const char* name, std::vector<double>& array, const std::vector<double>& gradient) {
                    if (array.empty()) return;
                    const auto wanted = central_differences(array, [&] { return objective(driver, c, d); });
                    const Comparison found = compare(gradient, wanted, {1e-8, 1e-9});
                    BOOST_TEST(found, name << ": " << found);
                };
                check("q", d.q, got.dq), check("k", d.k, got.dk), check("v", d.v, got.dv);
                check("r", d.r, got.dr), check("u", d.u, got.du), check("w", d.w, got.dw);
            }
}

// <gradient, direction> = the derivative along the direction, in all arguments at once.
BOOST_AUTO_TEST_CASE(the_dot_product_agrees) {
    for (const AttendCase& c : large_cases()) BOOST_TEST_CONTEXT(c.name) {
            if (c.size > 1.0) continue;  // too curved for a difference
            const auto d = data_for(c), direction = data_for(c, 50);
            const auto got = run(Driver::cpu, c, d);
            double along = 0.0, terms = 0.0;
            const auto project = [&](const std::vector<double>& gradient, const std::vector<double>& v) {
                for (std::size_t k = 0; k < v.size(); ++k) {
                    along += gradient[k] * v[k];
                    terms += std::abs(gradient[k] * v[k]);
                }
            };
            project(got.dq, direction.q), project(got.dk, direction.k), project(got.dv, direction.v);
            project(got.dr, direction.r), project(got.du, direction.u), project(got.dw, direction.w);
            const auto moved = [&](double h) {
                auto at = d;
                const auto move = [h](std::vector<double>& x, const std::vector<double>& v) {
                    for (std::size_t k = 0; k < x.size(); ++k) x[k] += h * v[k];
                };
                move(at.q, direction.q), move(at.k, direction.k), move(at.v, direction.v);
                move(at.r, direction.r), move(at.u, direction.u), move(at.w, direction.w);
                return objective(Driver::cpu, c, at);
            };
            constexpr double h = 1e-4;
            const double difference = (8.0 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12.0 * h);
            BOOST_TEST(std::abs(along - difference) <= 1e-9 * terms, along << " is not " << difference);
        }
}

// In every kind of vectors: as plain loops, and with the bits of the kinds that round alike.
BOOST_AUTO_TEST_CASE(every_kind_of_vectors_agrees) {
    std::map<bool, std::vector<AttendResult<float>>> bits;
    with_each_kind([&](bool fused) {
        std::size_t number = 0;
        for (const AttendCase& c : all_cases()) BOOST_TEST_CONTEXT(c.name) {
                const auto d = data_for(c);
                check_near(run(Driver::cpu, c, d, 0, 0.5), run(Driver::reference, c, d, 0, 0.5), c.size > 1.0 ? 1e-11 : 1e-12);
                auto got = run(Driver::cpu, c, cast<float>(d));
                if (number == bits[fused].size()) bits[fused].push_back(got);
                check_same(got, bits[fused][number++]);
            }
    });
}

// Two keys with logits 0 and x: the second one's probability is e^x / (1 + e^x), here to 2 units in the last place for
// the exponential and a half for the sum, its inverse and the product; 0 from where e^x would be denormal.
BOOST_AUTO_TEST_CASE(small_probabilities_are_good_to_the_last_places) {
    constexpr Index count = 20000;
    Attend<float> a;
    a.queries = count, a.keys = 2, a.width = a.value_width = 1;
    a.causal = false;
    std::vector<float> q(count), o(count), lse(count), workspace(static_cast<std::size_t>(cpu::attend_workspace(a)));
    const std::vector<float> k{0.0F, 1.0F}, v{0.0F, 1.0F};
    for (std::size_t i = 0; i < count; ++i) q[i] = -88.5F * static_cast<float>(i) / static_cast<float>(count - 1);
    with_each_kind([&](bool) {
        cpu::attend<float>(a, {q.data(), 1}, {k.data(), 1}, {v.data(), 1}, {o.data(), 1}, lse.data(), workspace.data());
        double worst = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            if (q[i] < -87.0F) {
                BOOST_TEST_REQUIRE(o[i] == 0.0F);
                continue;
            }
            const double e = std::exp(static_cast<double>(q[i])), wanted = e / (1.0 + e);
            worst = std::fmax(worst, std::abs(static_cast<double>(o[i]) - wanted) / wanted);
        }
        BOOST_TEST(worst <= 3.5 * 0x1.0p-23, worst);
    });
}

// A query that is not a number spoils its own row, a key every query that sees it; nothing is hidden by a mask.
BOOST_AUTO_TEST_CASE(what_is_not_a_number_stays_visible) {
    const AttendCase c = of("70 queries behind 9", 70, 9, 5, 3);
    with_each_kind([&](bool) {
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            auto d = cast<float>(data_for(c));
            d.q[40 * 5 + 2] = bad;
            const auto of_query = run(Driver::cpu, c, d);
            d = cast<float>(data_for(c));
            d.k[49 * 5 + 2] = bad;  // of query 40
            const auto of_key = run(Driver::cpu, c, d);
            Index spoilt = 0;
            for (Index i = 0; i < 70; ++i) {
                const auto finite = [i](const std::vector<float>& rows, Index width) {
                    return std::all_of(rows.begin() + i * width, rows.begin() + (i + 1) * width,
                                       [](float x) { return std::isfinite(x); });
                };
                BOOST_TEST(finite(of_query.o, 3) == (i != 40));
                BOOST_TEST(finite(of_query.dq, 5) == (i != 40));
                if (i < 40)
                    BOOST_TEST(finite(of_key.o, 3));
                else
                    spoilt += !finite(of_key.o, 3);
            }
            BOOST_TEST(spoilt >= (std::isnan(bad) ? 30 : 1));  // a logit of -infinity is a probability of 0
        }
    });
}

// Errors against double, each relative to the largest value of its array, in the middle one of 15 draws.
BOOST_AUTO_TEST_CASE(fast_float_errs_at_most_three_times_as_much_as_plain_float) {
    std::vector<AttendCase> cases = all_cases();
    const AttendCase m = of("150 queries behind 150", 150, 150, 8, 4);
    std::erase_if(cases, [](const AttendCase& c) { return c.attend.queries > 300; });
    for (const double size : {3.0, 12.0, 20.0}) cases.push_back(with(m, "size " + std::to_string(size), large(size)));
    double worst = 0.0;
    for (const AttendCase& c : cases) {
        struct Errors {
            std::vector<double> plain, fast;
        };
        std::map<std::string, Errors> errors;
        for (std::uint32_t draw = 0; draw < 15; ++draw) {
            const auto d = cast<float>(data_for(c, 100 * draw));
            const auto wanted = run(Driver::reference, c, cast<double>(d));
            std::map<std::string, const std::vector<double>*> exact;
            wanted.for_each([&](const char* name, const auto& w) { exact[name] = &w; });
            const auto measure = [&](std::vector<double> Errors::*whose) {
                return [&errors, &exact, whose](const char* name, const auto& got) {
                    const auto& w = *exact.at(name);
                    if (w.empty()) return;
                    const double largest = compare(w, w, {1.0, 0.0}).limit;
                    (errors[name].*whose).push_back(compare(got, w, {}).worst / (largest > 0.0 ? largest : 1.0));
                };
            };
            run(Driver::reference, c, d).for_each(measure(&Errors::plain));
            run(Driver::cpu, c, d).for_each(measure(&Errors::fast));
        }
        const auto middle = [](std::vector<double>& values) {
            std::nth_element(values.begin(), values.begin() + 7, values.end());
            return values[7];
        };
        for (auto& [name, e] : errors) {
            const double slow = std::fmax(middle(e.plain), 0x1.0p-24), got = middle(e.fast);
            BOOST_TEST(got <= 3.0 * slow, c.name << ", " << name << ": error " << got << ", of plain loops " << slow);
            worst = std::fmax(worst, got / slow);
        }
    }
    BOOST_TEST_MESSAGE("largest error of fast float over that of plain float: " << worst);
}

// What lies in a hidden key is not read: neither 0 nor 1e30 nor NaN changes a bit.
BOOST_AUTO_TEST_CASE(hidden_keys_are_not_read) {
    for (const Driver driver : drivers)
        for (const AttendCase& c : all_cases()) BOOST_TEST_CONTEXT(c.name << ", " << to_string(driver)) {
                if (c.hidden.empty()) continue;
                auto d = cast<float>(data_for(c));
                const auto before = run(driver, c, d);
                for (const float filler : {0.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
                    for (Index j = 0; j < c.attend.keys; ++j)
                        if (c.hidden[static_cast<std::size_t>(j)]) {
                            std::fill_n(d.k.begin() + j * c.attend.width, c.attend.width, filler);
                            std::fill_n(d.v.begin() + j * c.attend.value_width, c.attend.value_width, filler);
                        }
                    check_same(run(driver, c, d), before);
                }
            }
}

// Keys before first_key get nothing, not even a 0 added; all else is as it was.
BOOST_AUTO_TEST_CASE(constant_keys_get_no_gradient) {
    for (const Driver driver : drivers)
        for (const AttendCase& c : all_cases()) BOOST_TEST_CONTEXT(c.name << ", " << to_string(driver)) {
                const auto d = data_for(c);
                const auto all = run(driver, c, d, 0, -0.0);
                for (const Index first : {Index{1}, c.attend.offset, c.attend.keys / 2, c.attend.keys}) {
                    if (first > c.attend.keys) continue;
                    auto wanted = all;
                    std::fill_n(wanted.dk.begin(), first * c.attend.width, -0.0);
                    std::fill_n(wanted.dv.begin(), first * c.attend.value_width, -0.0);
                    const auto got = run(driver, c, d, first, -0.0);
                    check_near(got, wanted, 1e-13);
                    for (Index k = 0; k < first * c.attend.width; ++k)
                        BOOST_TEST_REQUIRE(std::signbit(got.dk[static_cast<std::size_t>(k)]));
                    for (Index k = 0; k < first * c.attend.value_width; ++k)
                        BOOST_TEST_REQUIRE(std::signbit(got.dv[static_cast<std::size_t>(k)]));
                }
            }
}

namespace {

/// The part of a long run that queries [first, first + count) are, with `memory` keys before them.
std::pair<AttendCase, AttendData<double>> part(const AttendCase& whole, const AttendData<double>& d, Index first,
                                               Index count, Index memory) {
    AttendCase c = whole;
    const Index key = first - memory;
    c.attend.queries = count;
    c.attend.offset = memory;
    c.attend.keys = memory + count;
    c.attend.dropout.step += first;
    const auto cut = [](const auto& from, Index begin, Index rows, Index width) {
        using Array = std::remove_cvref_t<decltype(from)>;
        return Array(from.begin() + begin * width, from.begin() + (begin + rows) * width);
    };
    const Index w = c.attend.width, v = c.attend.value_width;
    if (!whole.hidden.empty()) c.hidden = cut(whole.hidden, key, memory + count, 1);
    AttendData<double> p;
    p.q = cut(d.q, first, count, w), p.d_o = cut(d.d_o, first, count, v);
    p.k = cut(d.k, key, memory + count, w), p.v = cut(d.v, key, memory + count, v);
    p.r = d.r, p.u = d.u, p.w = d.w;
    return {c, p};
}

}  // namespace

// A long window cut into segments, each with the keys before it as memory: the same outputs and, summed, the same
// gradients; and no more of the memory is needed than the window shows.
BOOST_AUTO_TEST_CASE(segments_with_memory_make_up_the_long_window) {
    const AttendCase c = of("700 queries", 700, 0, 6, 5);
    for (const AttendCase& whole :
         {c, with(c, "window 150", window(150)), with(c, "relative, ALiBi, hidden", relative, slope(0.01), hidden),
          with(c, "dropout, relative, window 90", dropout(0.4, -300), relative, window(90))})
        for (const Driver driver : drivers)
            for (const Index length : {Index{128}, Index{97}}) BOOST_TEST_CONTEXT(whole.name << ", " << length) {
                    const auto d = data_for(whole);
                    const auto wanted = run(driver, whole, d);
                    AttendResult<double> sum = wanted;
                    for (std::vector<double>* member : {&sum.dk, &sum.dv, &sum.dr, &sum.du, &sum.dw})
                        std::fill(member->begin(), member->end(), 0.0);
                    for (Index first = 0; first < whole.attend.queries; first += length) {
                        const Index count = std::min(length, whole.attend.queries - first);
                        const Index needed = whole.attend.window > 0 ? whole.attend.window - 1 : first;
                        const Index memory = std::min(first, needed);
                        const auto [one, data] = part(whole, d, first, count, memory);
                        const auto got = run(driver, one, data);
                        const auto put = [](std::vector<double>& to, const std::vector<double>& from, Index begin) {
                            std::copy(from.begin(), from.end(), to.begin() + begin);
                        };
                        put(sum.o, got.o, first * one.attend.value_width);
                        put(sum.lse, got.lse, first);
                        put(sum.dq, got.dq, first * one.attend.width);
                        const auto add = [](std::vector<double>& to, const std::vector<double>& from, Index begin) {
                            for (std::size_t k = 0; k < from.size(); ++k)
                                to[static_cast<std::size_t>(begin) + k] += from[k];
                        };
                        add(sum.dk, got.dk, (first - memory) * one.attend.width);
                        add(sum.dv, got.dv, (first - memory) * one.attend.value_width);
                        add(sum.dr, got.dr, 0), add(sum.du, got.du, 0), add(sum.dw, got.dw, 0);
                    }
                    check_near(sum, wanted, 1e-12);
                }
}

// Rows before those that a window shows, or before those that are not hidden, change no bit, for tiles are counted from
// the segment's first step.
BOOST_AUTO_TEST_CASE(memory_out_of_sight_changes_no_bit) {
    constexpr Index few = 300;
    for (const AttendCase& c : {with(of("90 queries", 90, 1000, 6, 5), "dropout, window 61", dropout(0.4, 50), window(61)),
                                with(of("400 queries", 400, 1000, 6, 5), "relative, window 300", relative, window(300)),
                                with(of("400 queries", 400, 1000, 6, 5), "700 hidden", hidden_first(1000 - few))}) {
        const auto d = data_for(c);
        AttendCase near = c;
        near.hidden.clear();
        near.attend.offset = c.attend.window > 0 ? c.attend.window - 1 : few;
        near.attend.keys = near.attend.offset + near.attend.queries;
        AttendData<double> data = d;
        data.k.erase(data.k.begin(), data.k.end() - near.attend.keys * near.attend.width);
        data.v.erase(data.v.begin(), data.v.end() - near.attend.keys * near.attend.value_width);
        const auto all = run(Driver::cpu, c, d), got = run(Driver::cpu, near, data);
        BOOST_TEST(same_bits(all.o, got.o));
        BOOST_TEST(same_bits(all.lse, got.lse));
        BOOST_TEST(same_bits(all.dq, got.dq));
        BOOST_TEST(same_bits(std::vector(all.dk.end() - static_cast<std::ptrdiff_t>(got.dk.size()), all.dk.end()), got.dk));
        BOOST_TEST(same_bits(std::vector(all.dv.end() - static_cast<std::ptrdiff_t>(got.dv.size()), all.dv.end()), got.dv));
    }
}

// Of 10^5 probabilities so many are dropped as the rate says, and those that stay make up for them; heads, sequences,
// streams and seeds draw apart.
BOOST_AUTO_TEST_CASE(dropout_drops_a_rate_and_draws_apart) {
    AttendCase c = with(of("400 queries", 400, 0, 1, 400), "dropout", dropout(0.3, 12), full);
    AttendData<double> d = data_for(c);
    std::fill(d.q.begin(), d.q.end(), 0.0);
    for (std::size_t j = 0; j < 400; ++j)
        for (std::size_t f = 0; f < 400; ++f) d.v[j * 400 + f] = j == f ? 400.0 : 0.0;
    const auto factors = run(Driver::cpu, c, d).o;
    Index dropped = 0;
    for (const double f : factors) {
        dropped += f == 0.0;
        if (f != 0.0) BOOST_TEST_REQUIRE(std::abs(f - 1.0 / 0.7) < 1e-12);
    }
    BOOST_TEST(std::abs(static_cast<double>(dropped) - 48000.0) < 5.0 * std::sqrt(160000 * 0.3 * 0.7));
    for (const auto& change : std::vector<AttendDropout>{
             {0.3, 8, 3, 12, 5}, {0.3, 7, 4, 12, 5}, {0.3, 7, 3, 13, 5}, {0.3, 7, 3, 12, 6}}) {
        c.attend.dropout = change;
        const auto other = run(Driver::cpu, c, d).o;
        Index equal = 0;
        for (std::size_t k = 0; k < other.size(); ++k) equal += (other[k] == 0.0) == (factors[k] == 0.0);
        BOOST_TEST(std::abs(static_cast<double>(equal) - 160000 * 0.58) < 5.0 * std::sqrt(160000 * 0.58 * 0.42));
    }
}

BOOST_AUTO_TEST_CASE(the_workspace_depends_on_no_length) {
    AttendCase c = of("short", 1, 0, 8, 8);
    const Index size = cpu::attend_workspace(c.attend);
    c.attend.queries = c.attend.keys = Index{1} << 40;
    BOOST_TEST(cpu::attend_workspace(c.attend) == size);
}

BOOST_AUTO_TEST_CASE(long_sequences_agree_in_double) {
    for (const AttendCase& c : {of("1024", 1024, 0, 64, 64), of("4096", 4096, 0, 4, 4)}) BOOST_TEST_CONTEXT(c.name) {
            const auto d = data_for(c);
            check_near(run(Driver::cpu, c, d), run(Driver::reference, c, d), 1e-12);
        }
}

namespace {

struct Turned {
    Rotary rotary;
    Index first, steps, sequences, heads, width;
};

template <class Real>
std::vector<Real> turned(Driver driver, const Turned& t, Turn turn, const std::vector<Real>& x) {
    Gapped<Real> rows(x, t.heads * t.width);
    if (driver == Driver::cpu)
        cpu::rotate<Real>(t.rotary, turn, t.first, t.steps, t.sequences, t.heads, t.width, rows.rows());
    else
        reference::rotate<Real>(t.rotary, turn, t.first, t.steps, t.sequences, t.heads, t.width, rows.rows());
    return rows.taken();
}

const std::vector<Turned> turns{
    {{6, 10000.0, Rotary::Style::half}, 0, 7, 3, 2, 10},         {{6, 10000.0, Rotary::Style::interleaved}, 5, 7, 3, 2, 6},
    {{2, 100.0, Rotary::Style::half}, 1, 1, 1, 1, 2},            {{0, 100.0, Rotary::Style::half}, 1, 3, 2, 1, 5},
    {{8, 500.0, Rotary::Style::interleaved}, -40, 90, 2, 3, 11}, {{8, 10000.0, Rotary::Style::half}, 1'000'000, 3, 1, 2, 8}};

}  // namespace

// Loops in any order have the same bits; back is the inverse and the transpose.
BOOST_AUTO_TEST_CASE(turning_goes_forth_and_back) {
    for (const Turned& t : turns) BOOST_TEST_CONTEXT(t.first) {
            const Index size = t.steps * t.sequences * t.heads * t.width;
            const auto x = random_values(size, 1), y = random_values(size, 2);
            const auto fast = turned(Driver::cpu, t, Turn::forth, x);
            BOOST_TEST(same_bits(fast, turned(Driver::reference, t, Turn::forth, x)));
            BOOST_TEST(compare(turned(Driver::cpu, t, Turn::back, fast), x, {1e-15, 0.0}));
            const auto back = turned(Driver::cpu, t, Turn::back, y);
            double forth_y = 0.0, x_back = 0.0;
            for (std::size_t k = 0; k < x.size(); ++k) {
                forth_y += fast[k] * y[k];
                x_back += x[k] * back[k];
            }
            BOOST_TEST(std::abs(forth_y - x_back) <= 1e-14 * static_cast<double>(size));
        }
}

// q.k of turned vectors depends on the distance alone, at positions of 10^6 as at 0, in float too; and far positions in
// float are those of double, rounded.
BOOST_AUTO_TEST_CASE(far_positions_are_as_good_as_near_ones) {
    constexpr Index width = 8;
    const auto q = random_values<float>(width, 1), k = random_values<float>(width, 2);
    const auto product = [&](Index position, Index distance) {
        const Rotary rotary{width, 10000.0, Rotary::Style::half};
        const auto a = turned(Driver::cpu, {rotary, position + distance, 1, 1, 1, width}, Turn::forth, q);
        const auto b = turned(Driver::cpu, {rotary, position, 1, 1, 1, width}, Turn::forth, k);
        double sum = 0.0;
        for (std::size_t f = 0; f < a.size(); ++f) sum += static_cast<double>(a[f]) * static_cast<double>(b[f]);
        return sum;
    };
    for (const Index position : {1, 777, 1'000'000, 123'456'789})
        for (const Index distance : {0, 1, 50}) BOOST_TEST(std::abs(product(position, distance) - product(0, distance)) < 1e-6);
    const Turned far = turns.back();
    const auto x = random_values<float>(far.steps * far.heads * far.width, 3);
    BOOST_TEST(compare(turned(Driver::cpu, far, Turn::forth, x), turned(Driver::cpu, far, Turn::forth, cast<double>(x)),
                       {1.2e-7, 0.0}));
}
