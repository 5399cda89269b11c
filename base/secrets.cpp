#include "base/secrets.hpp"

#include <cstddef>

namespace mlenv {

bool same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned differing = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    differing |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  }
  return differing == 0;
}

}  // namespace mlenv
