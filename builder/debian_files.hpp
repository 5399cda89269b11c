#pragma once
// Which Debian package has what builds of Python packages miss; well-known ones alone. Held against
// the Contents of bookworm in November 2026: the package has the file, or depends on one that has.
#include <string_view>

namespace mlenv {

/// `openssl/ssl.h` → `libssl-dev`; empty: not known.
std::string_view package_of_header(std::string_view header);
/// What `pkg-config` asks for: `libffi` → `libffi-dev`.
std::string_view package_of_module(std::string_view module);
/// `pg_config` → `libpq-dev`.
std::string_view package_of_program(std::string_view program);
/// What a linker asks for: `-lssl`, as `ssl` → `libssl-dev`.
std::string_view package_of_library(std::string_view library);
/// What a source of that project (normalised) is compiled against: packages, blanks between; empty:
/// not known, or a compiler alone.
std::string_view needs_of_source(std::string_view project);

}  // namespace mlenv
