#include "runner/local/run_names.hpp"

#include <unistd.h>
#include <array>
#include <random>

#include <fmt/core.h>

namespace mlenv {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string random_container_name() {
  std::random_device device;
  return fmt::format("mlenv-{:08x}{:08x}", device(), device());
}

}  // namespace mlenv
