# Installation: libraries, public headers, the CMake package and the pkg-config files.
# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Backsweep)
set(components schedule chain)
set(unbuilt_headers)
if(TARGET backsweep_graph)
    list(APPEND components graph)
    if(NOT BUILD_SHARED_LIBS)
        set(graph_private "Requires.private: cbc")
    endif()
else()
    list(APPEND unbuilt_headers PATTERN backsweep/graph EXCLUDE)
endif()
if(BACKSWEEP_WITH_NN)
    list(APPEND components nn)
else()
    foreach(room nn ode train data)
        list(APPEND unbuilt_headers PATTERN backsweep/${room} EXCLUDE)
    endforeach()
    list(APPEND unbuilt_headers PATTERN base/random.hpp EXCLUDE)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.f90" ${unbuilt_headers})
foreach(component IN LISTS components)
    set_target_properties(backsweep_${component} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS backsweep_${component} EXPORT Backsweep_${component})
    install(EXPORT Backsweep_${component} NAMESPACE backsweep:: DESTINATION ${package_dir})
endforeach()
if(TARGET backsweep)
    file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(backsweep PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
    install(TARGETS backsweep)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BacksweepConfig.cmake.in BacksweepConfig.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(BacksweepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/BacksweepConfig.cmake ${PROJECT_BINARY_DIR}/BacksweepConfigVersion.cmake
    DESTINATION ${package_dir})

# The .pc files name the prefix relative to themselves, so an installation can be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
foreach(component IN LISTS components)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/backsweep-${component}.pc.in backsweep-${component}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/backsweep-${component}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
