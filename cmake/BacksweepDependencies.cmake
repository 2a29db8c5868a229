# Searches for what the rooms need (docs/dependencies.md). The planning rooms need threads, and two libraries for the disk.
# SPDX-License-Identifier: MIT
find_package(Threads REQUIRED)
find_package(zstd 1.5 REQUIRED)
find_path(BACKSWEEP_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

if(BACKSWEEP_WITH_BOOST)
    set(boost_components iostreams)
    if(BACKSWEEP_BUILD_TESTS)
        list(APPEND boost_components unit_test_framework)
    endif()
    find_package(Boost 1.74 REQUIRED COMPONENTS ${boost_components})
endif()

# The graph room exists where CBC is found; Debian's package describes it to pkg-config only.
if(BACKSWEEP_WITH_GRAPH)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(BACKSWEEP_CBC QUIET IMPORTED_TARGET cbc)
    endif()
    if(TARGET PkgConfig::BACKSWEEP_CBC)
        find_package(nlohmann_json 3.11 REQUIRED)
    else()
        message(STATUS "The component graph is left out: no COIN-OR CBC (Debian: coinor-libcbc-dev)")
    endif()
endif()

if(BACKSWEEP_WITH_NN)
    # Armadillo is used as headers over OpenBLAS, without its wrapper library: no ARPACK, SuperLU or HDF5 at link time.
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS REQUIRED)
    find_path(BACKSWEEP_ARMADILLO_INCLUDE_DIR armadillo REQUIRED)
    find_path(BACKSWEEP_RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
    find_package(fmt 9 REQUIRED)
    find_package(nlohmann_json 3.11 REQUIRED)
    find_package(tomlplusplus 3.3 REQUIRED)
    find_package(CLI11 2.1 REQUIRED)
    find_package(hwy 1.0 CONFIG REQUIRED)
endif()
