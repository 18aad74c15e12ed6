# Finds what Debian's packages bring, and says which package is missing.
#   hp_proto      the protobuf-c code of proto/profile.proto (object library) and its header
#   HP_LIB_*      the archives linked into the library
# The library links static archives: a shared object more costs every exec'd program 40 to 190 us of loading.

set(hp_missing "")
function(hp_need what package found)
  if(NOT found)
    set(hp_missing "${hp_missing}\n  ${what}: apt-get install ${package}" PARENT_SCOPE)
  endif()
endfunction()

find_package(Threads REQUIRED)
find_program(HP_PROTOC_C protoc-c)
hp_need(protoc-c "protobuf-c-compiler libprotobuf-dev" "${HP_PROTOC_C}")
find_path(HP_INC_PROTOBUF_C protobuf-c/protobuf-c.h)
find_library(HP_LIB_PROTOBUF_C NAMES libprotobuf-c.a)
hp_need("protobuf-c" libprotobuf-c-dev "${HP_LIB_PROTOBUF_C}")
find_path(HP_INC_ZLIB zlib.h)
find_library(HP_LIB_ZLIB NAMES libz.a)
hp_need(zlib zlib1g-dev "${HP_LIB_ZLIB}")
find_library(HP_LIB_JEMALLOC NAMES libjemalloc_pic.a)
hp_need(jemalloc libjemalloc-dev "${HP_LIB_JEMALLOC}")
if(HEAPPROF_BUILD_CLI)
  find_path(HP_INC_DWFL elfutils/libdwfl.h)
  find_library(HP_LIB_DW NAMES dw)
  find_library(HP_LIB_ELF NAMES elf)
  hp_need("elfutils' libdw" "libdw-dev libelf-dev" "${HP_LIB_DW}")
  find_library(HP_LIB_IBERTY NAMES libiberty.a)
  find_path(HP_INC_IBERTY libiberty/demangle.h)
  hp_need("libiberty" libiberty-dev "${HP_LIB_IBERTY}")
  find_path(HP_INC_MICROHTTPD microhttpd.h)
  find_library(HP_LIB_MICROHTTPD NAMES microhttpd)
  hp_need(libmicrohttpd libmicrohttpd-dev "${HP_LIB_MICROHTTPD}")
endif()
if(HEAPPROF_BUILD_TESTS)
  find_path(HP_INC_CMOCKA cmocka.h)
  find_library(HP_LIB_CMOCKA NAMES cmocka)
  hp_need(CMocka libcmocka-dev "${HP_LIB_CMOCKA}")
  # The tests hold every walk of our unwinder against libunwind's (docs/architecture.md says why it is not in the library).
  find_path(HP_INC_UNWIND libunwind.h)
  find_library(HP_LIB_UNWIND NAMES unwind)
  hp_need(libunwind libunwind-dev "${HP_LIB_UNWIND}")
endif()
if(hp_missing)
  message(FATAL_ERROR "Missing, and the Debian package that brings it (scripts/deps installs them all):${hp_missing}")
endif()

# proto/profile.proto -> C
set(HP_PROTO_DIR ${CMAKE_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${HP_PROTO_DIR})
add_custom_command(
  OUTPUT ${HP_PROTO_DIR}/profile.pb-c.c ${HP_PROTO_DIR}/profile.pb-c.h
  COMMAND ${HP_PROTOC_C} --c_out=${HP_PROTO_DIR} -I${PROJECT_SOURCE_DIR}/proto profile.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/proto/profile.proto)
add_library(hp_proto OBJECT ${HP_PROTO_DIR}/profile.pb-c.c)
target_include_directories(hp_proto PUBLIC ${HP_PROTO_DIR} ${HP_INC_PROTOBUF_C})
target_compile_options(hp_proto PRIVATE -fvisibility=hidden -O2)

# An archive's objects under private names: every symbol it defines gets PREFIX, the ones it imports that are listed in
# REDIRECT ("from=to") are answered by us. EXCLUDE: members left out. STRIP_INIT: no constructor of its own.
function(hp_private_archive target archive) # adds imported library `target`
  cmake_parse_arguments(A "STRIP_INIT" "PREFIX" "REDIRECT;EXCLUDE" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/private/lib${target}.a)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${PROJECT_SOURCE_DIR}/src/private-archive.sh ${CMAKE_OBJCOPY} ${CMAKE_NM} ${CMAKE_AR} ${archive} ${out}
            "${A_PREFIX}" "${A_STRIP_INIT}" "${A_REDIRECT}" "${A_EXCLUDE}"
    DEPENDS ${archive} ${PROJECT_SOURCE_DIR}/src/private-archive.sh
    VERBATIM)
  add_custom_target(${target}_archive DEPENDS ${out})
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${out})
  add_dependencies(${target} ${target}_archive)
endfunction()
