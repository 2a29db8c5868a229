#!/bin/sh
# consumer.sh STEP BUILD WORK COMPONENTS
# STEP install puts BUILD's package into WORK/prefix; cmake and pkg_config build the programs of project/, the examples
# of the README and those of experiments/examples against it, and run them. COMPONENTS: those built, separated by
# semicolons. The Fortran programs are built where there is gfortran (or what FC names).
# SPDX-License-Identifier: MIT
set -eu
step=$1
build=$2
work=$3
components=$4
here=$(cd "$(dirname "$0")" && pwd)
prefix=$work/prefix
examples=$here/../../experiments/examples
: "${FC:=gfortran}"
fortran=$(command -v "$FC" || true)

run() {
    echo "+ $*"
    "$@"
}

case $step in
install)
    rm -rf "$prefix"
    run "$CMAKE" --install "$build" --prefix "$prefix" >/dev/null
    ;;
cmake)
    rm -rf "$work/cmake"
    run "$CMAKE" -S "$here/project" -B "$work/cmake" -G "$GENERATOR" "-DCMAKE_PREFIX_PATH=$prefix" \
        "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" "-DCOMPONENTS=$components" >"$work/cmake.log" 2>&1 ||
        { cat "$work/cmake.log"; exit 1; }
    run "$CMAKE" --build "$work/cmake"
    for program in "$work"/cmake/consumer_*; do run "$program"; done
    for example in "$examples"/*/CMakeLists.txt; do
        name=$(basename "$(dirname "$example")")
        rm -rf "$work/cmake_$name"
        run "$CMAKE" -S "$examples/$name" -B "$work/cmake_$name" -G "$GENERATOR" "-DCMAKE_PREFIX_PATH=$prefix" \
            "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" "-DCMAKE_Fortran_COMPILER=$fortran" \
            >"$work/cmake_$name.log" 2>&1 || { cat "$work/cmake_$name.log"; exit 1; }
        run "$CMAKE" --build "$work/cmake_$name"
        run "$work/cmake_$name/${name}_c"
        run "$work/cmake_$name/${name}_cpp"
        [ -z "$fortran" ] || run "$work/cmake_$name/${name}_fortran"
    done
    ;;
pkg_config)
    mkdir -p "$work/pkg_config"
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
    for source in "$here"/project/*.c "$here"/project/*.cpp "$here"/*.c "$here"/*.cpp; do
        [ -f "$source" ] || continue
        name=$(basename "$source")
        program=$work/pkg_config/consumer_${name%.*}
        case $name in
        nn.cpp) package=nn ;;
        graph.cpp) package=graph ;;
        *.c) package=schedule ;;
        *) package=chain ;;
        esac
        case ";$components;" in *";$package;"*) ;; *) continue ;; esac
        case $name in
        *.c) compiler="$CC -std=c99" ;;
        *) compiler="$CXX -std=c++20" ;;
        esac
        # shellcheck disable=SC2046,SC2086
        run $compiler -Wall -Wextra -Werror "$source" -o "$program" \
            $(pkg-config --cflags --libs ${STATIC:+--static} "backsweep-$package")
        run "$program"
    done
    for example in "$examples"/*/Makefile; do
        name=$(basename "$(dirname "$example")")
        rm -rf "$work/make_$name"
        run make -C "$examples/$name" check "BUILD=$work/make_$name" "CC=$CC" "CXX=$CXX" "FC=$FC" \
            "PKG_CONFIG=pkg-config${STATIC:+ --static}" "programs=c cpp${fortran:+ fortran}"
    done
    ;;
*)
    echo "unknown step '$step'; one of: install, cmake, pkg_config"
    exit 2
    ;;
esac
