// For mlenv-node, in place of libsolv: it compares nodes, and no packages.
#include "base/error.hpp"
#include "recipes/resolve/solv.hpp"

namespace mlenv::solv {

int compare_versions(std::string_view a, std::string_view b) {
  throw Error{Kind::internal, "internal", "mlenv-node compares no packages"}.because(
      fmt::format("asked about {} and {}", a, b));
}

}  // namespace mlenv::solv
