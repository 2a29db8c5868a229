// SPDX-License-Identifier: MIT
#include "cli/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace backsweep::cli {

namespace {

volatile std::sig_atomic_t noted = 0;

}  // namespace

void pin_blas() noexcept {
    if (openblas_set_num_threads) openblas_set_num_threads(1);
}

void note_interrupts() noexcept {
    struct sigaction action {};
    action.sa_handler = [](int signal) { noted = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

int interrupted() noexcept {
    return noted;
}

void survive_file_limits() noexcept {
    std::signal(SIGXFSZ, SIG_IGN);
}

bool is_terminal(std::FILE* file) noexcept {
    return isatty(fileno(file)) == 1;
}

std::int64_t peak_rss() noexcept {
    rusage usage{};
    return getrusage(RUSAGE_SELF, &usage) == 0 ? std::int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace backsweep::cli
