// Boost.Test, or, where the planning rooms are built without Boost, a small stand-in with the macros their tests use.
// A test executable defines BOOST_TEST_MODULE in one source before it includes this file; that source gets main().
// SPDX-License-Identifier: MIT
#pragma once

#ifndef BACKSWEEP_PLAIN_MAIN

#if defined(BOOST_TEST_MODULE) && !defined(BOOST_TEST_MAIN)
#define BOOST_TEST_MAIN BOOST_TEST_MODULE  // where Boost's own headers are precompiled, they have not seen it
#endif
#include <boost/test/unit_test.hpp>

#else

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// Boost.Test compares inside its own headers, where mixed signs pass in silence; so do they here.
#pragma GCC diagnostic ignored "-Wsign-compare"

namespace plain_test {

struct Case {
    const char* name;
    void (*body)();
};

/// Thrown by the macros that end a test case.
struct Stop {};

struct State {
    std::vector<Case> cases;
    std::vector<std::string> context;
    long checks = 0;
    long failures = 0;
};

inline State& state() {
    static State instance;
    return instance;
}

struct Registrar {
    Registrar(const char* name, void (*body)()) { state().cases.push_back({name, body}); }
};

struct Context {
    explicit Context(std::string text) { state().context.push_back(std::move(text)); }
    ~Context() { state().context.pop_back(); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
};

inline void check(bool passed, bool fatal, const char* file, int line, const std::string& text) {
    ++state().checks;
    if (passed) return;
    ++state().failures;
    std::cerr << file << '(' << line << "): failed: " << text << '\n';
    for (const std::string& frame : state().context) std::cerr << "    with " << frame << '\n';
    if (fatal) throw Stop{};
}

template <class T>
std::string shown(const T& value) {
    std::ostringstream out;
    if constexpr (requires { out << value; })
        out << value;
    else
        out << "<value>";
    return out.str();
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* file, int line, const char* text) {
    const bool equal = a == b;
    check(equal, false, file, line, equal ? std::string{} : text + (" [" + shown(a) + " != " + shown(b) + "]"));
}

inline int run() {
    for (const Case& test : state().cases) {
        const long before = state().failures;
        try {
            test.body();
        } catch (const Stop&) {
        } catch (const std::exception& error) {
            check(false, false, test.name, 0, std::string("unexpected exception: ") + error.what());
        } catch (...) {
            check(false, false, test.name, 0, "unexpected exception of unknown type");
        }
        if (state().failures != before) std::cerr << "in test case " << test.name << '\n';
    }
    std::cout << state().cases.size() << " test cases, " << state().checks << " checks, " << state().failures
              << " failures\n";
    return state().failures == 0 && !state().cases.empty() ? 0 : 1;
}

}  // namespace plain_test

#define PLAIN_TEST_TEXT(...) ((std::ostringstream{} << __VA_ARGS__).str())
#define PLAIN_TEST_CHECK1(fatal, cond) ::plain_test::check(static_cast<bool>(cond), fatal, __FILE__, __LINE__, #cond)
#define PLAIN_TEST_CHECK2(fatal, cond, ...)                                                                   \
    do {                                                                                                      \
        const bool passed_ = static_cast<bool>(cond);                                                         \
        ::plain_test::check(passed_, fatal, __FILE__, __LINE__, passed_ ? "" : PLAIN_TEST_TEXT(__VA_ARGS__)); \
    } while (false)
#define PLAIN_TEST_PICK(_1, _2, name, ...) name
#define PLAIN_TEST_THROWS(expr, type, condition, text)                                               \
    do {                                                                                             \
        bool caught_ = false;                                                                        \
        try {                                                                                        \
            expr;                                                                                    \
        } catch (const type& error_) {                                                               \
            static_cast<void>(error_);                                                               \
            caught_ = true;                                                                          \
            ::plain_test::check(condition, false, __FILE__, __LINE__, text);                         \
        }                                                                                            \
        if (!caught_) ::plain_test::check(false, false, __FILE__, __LINE__, #expr " throws " #type); \
    } while (false)

#define BOOST_AUTO_TEST_SUITE(name) namespace name {
#define BOOST_AUTO_TEST_SUITE_END() }
#define BOOST_AUTO_TEST_CASE(name)                                                  \
    static void test_case_##name();                                                 \
    static const ::plain_test::Registrar registrar_##name(#name, test_case_##name); \
    static void test_case_##name()

#define BOOST_TEST(...) PLAIN_TEST_PICK(__VA_ARGS__, PLAIN_TEST_CHECK2, PLAIN_TEST_CHECK1, )(false, __VA_ARGS__)
#define BOOST_TEST_REQUIRE(...) PLAIN_TEST_PICK(__VA_ARGS__, PLAIN_TEST_CHECK2, PLAIN_TEST_CHECK1, )(true, __VA_ARGS__)
#define BOOST_CHECK(cond) PLAIN_TEST_CHECK1(false, cond)
#define BOOST_REQUIRE(cond) PLAIN_TEST_CHECK1(true, cond)
#define BOOST_CHECK_MESSAGE(cond, message) PLAIN_TEST_CHECK2(false, cond, message)
#define BOOST_REQUIRE_MESSAGE(cond, message) PLAIN_TEST_CHECK2(true, cond, message)
#define BOOST_CHECK_EQUAL(a, b) ::plain_test::check_equal(a, b, __FILE__, __LINE__, #a " == " #b)
#define BOOST_CHECK_THROW(expr, type) PLAIN_TEST_THROWS(expr, type, true, "")
#define BOOST_CHECK_EXCEPTION(expr, type, predicate) \
    PLAIN_TEST_THROWS(expr, type, predicate(error_), #predicate " accepts the exception of " #expr)
#define BOOST_CHECK_NO_THROW(expr)                                                          \
    do {                                                                                    \
        try {                                                                               \
            expr;                                                                           \
            ::plain_test::check(true, false, __FILE__, __LINE__, "");                       \
        } catch (...) {                                                                     \
            ::plain_test::check(false, false, __FILE__, __LINE__, #expr " does not throw"); \
        }                                                                                   \
    } while (false)
#define BOOST_TEST_CONTEXT(...) if (const ::plain_test::Context context_{PLAIN_TEST_TEXT(__VA_ARGS__)}; true)
#define BOOST_TEST_MESSAGE(...) static_cast<void>(PLAIN_TEST_TEXT(__VA_ARGS__))
#define BOOST_FAIL(message) ::plain_test::check(false, true, __FILE__, __LINE__, PLAIN_TEST_TEXT(message))

#ifdef BOOST_TEST_MODULE
int main() {
    return plain_test::run();
}
#endif

#endif
