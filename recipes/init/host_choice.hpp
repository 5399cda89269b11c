#pragma once
// What a new recipe takes from the machine that it is written on.
#include <string>
#include <string_view>

#include "recipes/init/draft.hpp"

namespace mlenv {

struct HostFacts {
  std::string base;                ///< `debian:bookworm`; empty: no release that mlenv knows
  std::string nvidia_driver;       ///< `580.65.06`; empty: none
  bool has_python_mirror = false;  ///< UV_PYTHON_INSTALL_MIRROR names one
};

/// `debian:SUITE` or `ubuntu:SUITE` of a release that mlenv knows; empty for another.
std::string base_of_suite(std::string_view distribution, std::string_view suite);
/// The same by its number: `12`, `12.5`, `24.04`.
std::string base_of_number(std::string_view distribution, std::string_view number);
/// Whether a base is made from packages, and no image.
bool is_package_base(std::string_view base);
/// Python of such a base; empty for one that has none yet, and for images.
std::string_view python_of_base(std::string_view base);

/// Fills in what the draft leaves open: the base (the host's release where it fits), Python (where
/// the recipe needs one; what Debian lacks comes from the host's mirror, else with Ubuntu), and
/// `cuda` for PyTorch, TensorFlow and JAX: the newest major version that both the host's driver and
/// the framework's builds have.
void choose_for_host(Draft& draft, const HostFacts& host);

}  // namespace mlenv
