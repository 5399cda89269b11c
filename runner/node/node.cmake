# mlenv-node: linked with no shared library, so that it starts on any machine of its architecture.
# Our own archives are the same as mlenv's; what has no static form is replaced by base/static and
# recipes/static_*.cpp, whose objects come first, so that nothing asks the archives for theirs.
if(MLENV_SANITIZE)
  set(without_node "sanitizers are on")
endif()
foreach(name archive crypto yaml-cpp deflate z zstd lzma seccomp)
  find_library(MLENV_STATIC_${name} lib${name}.a)
  if(NOT MLENV_STATIC_${name})
    set(without_node "lib${name}.a is not installed")
  endif()
  list(APPEND static_archives ${MLENV_STATIC_${name}})
endforeach()
option(MLENV_NODE "build mlenv-node" ON)
if(NOT MLENV_NODE)
  set(without_node "MLENV_NODE is off")
endif()
if(without_node)
  message(STATUS "mlenv-node is not built: ${without_node}")
  return()
endif()

file(GLOB static_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/base/static/*.cpp)
add_executable(mlenv-node runner/node/main.cpp recipes/static_toml.cpp recipes/static_versions.cpp ${static_sources})
target_link_libraries(mlenv-node PRIVATE mlenv_settings mlenv_warnings)
set_source_files_properties(recipes/static_toml.cpp base/static/fmt.cpp PROPERTIES
  COMPILE_OPTIONS -w)  # other people's source
# libarchive's functions are mlenv's own, that open it late, unless they are there before.
file(STRINGS base/archive_late.cpp late_functions REGEX "^MLENV_LATE_[0-9]")
list(TRANSFORM late_functions REPLACE "^.*library, ([a-z_]+).*$" "LINKER:-u,\\1")
list(FILTER late_functions EXCLUDE REGEX append_filter)
add_dependencies(mlenv-node mlenv_runner mlenv_recipes mlenv_images mlenv_base)
target_link_options(mlenv-node PRIVATE -static LINKER:--gc-sections ${late_functions}
  LINKER:-u,archive_set_error)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  target_link_options(mlenv-node PRIVATE -s)
endif()
target_link_libraries(mlenv-node PRIVATE ${MLENV_STATIC_archive}
  $<TARGET_FILE:mlenv_runner> $<TARGET_FILE:mlenv_recipes> $<TARGET_FILE:mlenv_images>
  $<TARGET_FILE:mlenv_base> ${static_archives})
