#pragma once
// What a new recipe takes from the machine that it is written on.
#include <array>
#include <string>
#include <string_view>

#include "recipes/init/draft.hpp"

namespace mlenv {

struct HostFacts {
  std::string debian_suite;   ///< empty: not Debian, or a release that mlenv does not know
  std::string nvidia_driver;  ///< `580.65.06`; empty: none
};

/// Python of a Debian release (packages.debian.org, `python3`); empty for one that has none yet.
std::string_view python_of_suite(std::string_view suite);
/// The other way round; empty where no release has it.
std::string_view suite_with_python(std::string_view python);
/// Of Debian's release number: `12`, `12.5`; empty when unknown.
std::string_view suite_of_number(std::string_view number);
bool is_known_suite(std::string_view suite);

/// Fills in what the draft leaves open: the base (the host's release where it fits), Python (where
/// the recipe needs one), and `cuda` for PyTorch, TensorFlow and JAX: the newest major version that
/// both the host's driver and the framework's builds have.
void choose_for_host(Draft& draft, const HostFacts& host);

}  // namespace mlenv
