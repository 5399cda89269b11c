#pragma once
// Debian packages that only the archives of other makers have: NVIDIA's, Google's, Docker's.
#include <string_view>

namespace mlenv {

/// Of a package whose archive is not named here.
inline constexpr std::string_view kOfAnotherMaker =
    "of another maker's archive: name that in `sources`, under `debian`, and the package in "
    "`system`";

/// Why Debian has no such package, as a line that tells of it; empty: it may have.
std::string_view why_foreign_package(std::string_view name);

}  // namespace mlenv
