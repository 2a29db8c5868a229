# How every target of the project is compiled, and how libraries and tests are declared.
# SPDX-License-Identifier: MIT
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include(GNUInstallDirs)

# Several presets compile the same sources; ccache, where it is installed, does so once.
find_program(BACKSWEEP_CCACHE ccache)
if(BACKSWEEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${BACKSWEEP_CCACHE})
    # Precompiled headers are part of what ccache compares, once it may.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${BACKSWEEP_CCACHE})
endif()

# Warnings, sanitizers and coverage of one target; nothing of it reaches consumers.
function(backsweep_compile_options target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion)
    if(BACKSWEEP_WARNINGS_AS_ERRORS)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(BACKSWEEP_SANITIZE)
        target_compile_options(${target} PRIVATE
            -fsanitize=${BACKSWEEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=${BACKSWEEP_SANITIZE})
    endif()
    if(BACKSWEEP_COVERAGE)
        target_compile_options(${target} PRIVATE --coverage)
        target_link_options(${target} PRIVATE --coverage)
    endif()
endfunction()

# backsweep_add_library(<name> ROOMS <folder>... [STATIC])
# Declares backsweep_<name> with its alias backsweep::<name> and enters the rooms, which add their sources.
# Without STATIC the library follows BUILD_SHARED_LIBS, hides its symbols and carries a SOVERSION.
function(backsweep_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC" "" "ROOMS")
    set(target backsweep_${name})
    if(arg_STATIC)
        add_library(${target} STATIC)
    else()
        add_library(${target})
        set_target_properties(${target} PROPERTIES
            VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
            C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
        # Instantiations of the standard library's templates are marked visible by its headers; the script hides them.
        set(script ${PROJECT_SOURCE_DIR}/cmake/hidden_symbols.map)
        target_link_options(${target} PRIVATE $<$<BOOL:${BUILD_SHARED_LIBS}>:LINKER:--version-script=${script}>)
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
    endif()
    add_library(backsweep::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_include_directories(${target}
        PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
        PRIVATE ${PROJECT_SOURCE_DIR}/src)
    backsweep_compile_options(${target})
    foreach(room IN LISTS arg_ROOMS)
        if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt)
            add_subdirectory(${room})
        endif()
    endforeach()
endfunction()

# backsweep_add_test(<room>.<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...] [TIMEOUT <s>]
#                    [ARGUMENTS <word>...] [SERIAL])
# One executable, one CTest test; label fast and 120 s unless told. SERIAL: nothing runs beside it (it measures time).
# Without the numeric rooms a test that links one of their libraries is left out. The targets tests_<room> and
# tests_<label> build all tests of a room or label.
function(backsweep_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;NO_PRECOMPILED_HEADERS" "TIMEOUT" "SOURCES;LIBRARIES;LABELS;ARGUMENTS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "backsweep_add_test(${name}): unknown words: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    foreach(library IN LISTS arg_LIBRARIES)
        if(NOT TARGET ${library} AND NOT BACKSWEEP_WITH_NN)
            return()
        endif()
    endforeach()
    string(REPLACE "." "_" target test_${name})
    add_executable(${target} ${arg_SOURCES})
    backsweep_compile_options(${target})
    set(kind plain)
    if(NOT bits IN_LIST arg_LABELS OR BACKSWEEP_SANITIZE)  # bits are about release flags; light ones compile sooner
        set(kind light)
        backsweep_light_options(${target})
    endif()
    if(TARGET test_headers_${kind} AND NOT arg_NO_PRECOMPILED_HEADERS)
        target_precompile_headers(${target} REUSE_FROM test_headers_${kind})
    endif()
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} backsweep_test_support)
    add_test(NAME ${name} COMMAND ${target} ${arg_ARGUMENTS})
    backsweep_test_properties(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
    set_property(TEST ${name} PROPERTY RUN_SERIAL ${arg_SERIAL})
    string(REGEX REPLACE "\\..*" "" room ${name})
    foreach(group IN LISTS room arg_LABELS)
        if(NOT TARGET tests_${group})
            add_custom_target(tests_${group})
        endif()
        add_dependencies(tests_${group} ${target})
    endforeach()
endfunction()

function(backsweep_light_options target)
    if(BACKSWEEP_SANITIZE)  # instrumented templates take three times as long at -O1
        target_compile_options(${target} PRIVATE -O0)
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>
        $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-use-after-free>)  # g++ 12 sees some at -O1 that are none
endfunction()

# What every CTest test of the project has: labels (fast unless told), a time limit, one BLAS thread, the two skips.
function(backsweep_test_properties name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS")
    if(NOT arg_LABELS)
        set(arg_LABELS fast)
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
        if(slow IN_LIST arg_LABELS)
            set(arg_TIMEOUT 900)
        endif()
    endif()
    if(BACKSWEEP_SANITIZE)
        math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
    endif()
    set(environment OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 BACKSWEEP_SOURCE_DIR=${PROJECT_SOURCE_DIR})
    if(TARGET backsweep)
        list(APPEND environment BACKSWEEP_PROGRAM=$<TARGET_FILE:backsweep>)
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}"
        SKIP_REGULAR_EXPRESSION "skipped: (no data|no CUDA device|no python3-torch)")
endfunction()
