#pragma once
// The interpreter and the C library of an image, as its files tell.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/stacked_trees.hpp"

namespace mlenv {

struct BasePython {
  std::string interpreter;  ///< absolute, no link: `/usr/local/bin/python3.11`
  std::string version;      ///< full, read from the program or its library; empty: not found
};
/// The first program `name` in the folders of `path` (PATH's value), all links followed, that lies
/// outside of /opt/venv. nullopt when there is none. One whose real name is not `python3.N` has no
/// version.
std::optional<BasePython> base_python(const StackedTrees& files, std::string_view path,
                                      const std::string& name);

/// `2.36`, from the C library's own banner; empty: there is no glibc.
std::string base_glibc(const StackedTrees& files);
/// Whether the C library is musl.
bool has_musl(const StackedTrees& files);

/// Value of a variable in os-release(5), quotes removed; empty when it is not given.
std::string os_release_value(const StackedTrees& files, std::string_view name);

/// `3.11.9` where `bytes` hold it as a text of its own, for a `minor` of `3.11`; empty otherwise.
/// An interpreter's program or library holds exactly one.
std::string version_text_in(std::string_view bytes, std::string_view minor);
/// `2.36` of `GNU C Library … release version 2.36.`; empty otherwise.
std::string glibc_banner_in(std::string_view bytes);

}  // namespace mlenv
