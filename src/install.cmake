# What is installed where, and the packages. Components are the packages:
#   libheapprof       the library                    heapprof   the command, its manual, completions
#   libheapprof-dev   the header, pkg-config, CMake
include(CMakePackageConfigHelpers)
set(HEAPPROF_CONTACT "heapprof developers <heapprof@heapprof.invalid>" CACHE STRING "Maintainer in the Debian packages")

# Compressed, as Debian has its manual pages and changelogs; when it is configured, so that installing writes nothing here: after a
# `sudo cmake --install` it would be root's.
function(hp_install_compressed file directory component)
  get_filename_component(name ${file} NAME)
  set(compressed ${CMAKE_BINARY_DIR}/compressed/${component}/${name}.gz)
  get_filename_component(folder ${compressed} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  install(FILES ${compressed} DESTINATION ${directory} COMPONENT ${component})
endfunction()

install(TARGETS heapprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libheapprof)
hp_install_compressed(${PROJECT_SOURCE_DIR}/docs/libheapprof.7 ${CMAKE_INSTALL_MANDIR}/man7 libheapprof)

if(HEAPPROF_BUILD_CLI)
  install(TARGETS heapprof_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT heapprof)
  hp_install_compressed(${PROJECT_SOURCE_DIR}/docs/heapprof.1 ${CMAKE_INSTALL_MANDIR}/man1 heapprof)
  set(completion ${PROJECT_SOURCE_DIR}/src/cli/completion)
  install(FILES ${completion}/heapprof.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME heapprof
    COMPONENT heapprof)
  install(FILES ${completion}/_heapprof DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT heapprof)
  install(FILES ${completion}/heapprof.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT heapprof)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/include/heapprof.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libheapprof-dev)
hp_install_compressed(${PROJECT_SOURCE_DIR}/docs/heapprof.h.3 ${CMAKE_INSTALL_MANDIR}/man3 libheapprof-dev)
# From its own place, so that an unpacked tarball works anywhere.
file(RELATIVE_PATH hp_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/src/heapprof.pc.in ${CMAKE_BINARY_DIR}/heapprof.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/heapprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libheapprof-dev)

# find_package(heapprof) gives heapprof::header.
add_library(hp_header INTERFACE)
target_include_directories(hp_header INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(hp_header INTERFACE ${CMAKE_DL_LIBS})
set_target_properties(hp_header PROPERTIES EXPORT_NAME header)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heapprof)
install(TARGETS hp_header EXPORT heapprof COMPONENT libheapprof-dev)
install(EXPORT heapprof NAMESPACE heapprof:: FILE heapprofConfig.cmake DESTINATION ${config_dir} COMPONENT libheapprof-dev)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heapprofConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heapprofConfigVersion.cmake DESTINATION ${config_dir} COMPONENT libheapprof-dev)

# ---- packages: cpack -G DEB in a build configured with -DCMAKE_INSTALL_PREFIX=/usr; cpack -G TXZ for a tarball, which has bin,
# lib, include and share at its top and works wherever it is unpacked. .ci/packages does both and tries them. ----
set(packages libheapprof libheapprof-dev)
if(HEAPPROF_BUILD_CLI)
  list(APPEND packages heapprof)
endif()
set(hp_debian_dir ${CMAKE_BINARY_DIR}/debian)
file(CONFIGURE OUTPUT ${hp_debian_dir}/changelog CONTENT
"heapprof (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md in the sources.

 -- ${HEAPPROF_CONTACT}  Sun, 29 Nov 2026 00:00:00 +0000
")
configure_file(${PROJECT_SOURCE_DIR}/LICENSE ${hp_debian_dir}/copyright COPYONLY)
file(WRITE ${hp_debian_dir}/triggers "activate-noawait ldconfig\n")
foreach(package ${packages})
  install(FILES ${hp_debian_dir}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${package})
  hp_install_compressed(${hp_debian_dir}/changelog ${CMAKE_INSTALL_DATADIR}/doc/${package} ${package})
endforeach()
# zlib is linked in on purpose: every program that starts under the library would pay for loading it.
foreach(package libheapprof heapprof)
  file(WRITE ${hp_debian_dir}/overrides/${package} "${package}: embedded-library\n")
  install(FILES ${hp_debian_dir}/overrides/${package} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${package})
endforeach()

set(CPACK_PACKAGE_NAME heapprof)
set(CPACK_PACKAGE_VENDOR "heapprof developers")
set(CPACK_PACKAGE_CONTACT "${HEAPPROF_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sampling heap profiler for native programs")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_LIBHEAPPROF_PACKAGE_NAME libheapprof)
set(CPACK_DEBIAN_LIBHEAPPROF_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBHEAPPROF_PACKAGE_CONTROL_EXTRA ${hp_debian_dir}/triggers)
set(CPACK_DEBIAN_LIBHEAPPROF_DESCRIPTION "sampling heap profiler - library to preload
 Preloaded into a program, it samples the allocations and writes pprof
 profiles of the call stacks that hold memory.")
set(CPACK_DEBIAN_HEAPPROF_PACKAGE_NAME heapprof)
set(CPACK_DEBIAN_HEAPPROF_PACKAGE_DEPENDS "libheapprof (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_HEAPPROF_DESCRIPTION "sampling heap profiler - command
 Takes, prints, compares, merges, symbolizes and serves heap profiles of
 native programs in the pprof format.")
set(CPACK_DEBIAN_LIBHEAPPROF-DEV_PACKAGE_NAME libheapprof-dev)
set(CPACK_DEBIAN_LIBHEAPPROF-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHEAPPROF-DEV_PACKAGE_DEPENDS "libheapprof (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBHEAPPROF-DEV_DESCRIPTION "sampling heap profiler - header
 To start, stop and dump the heap profiler from inside a program.")
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
include(CPack)
