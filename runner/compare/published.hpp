#pragma once
// Figures that others have published, as context. Not measured here, on other machines, years ago:
// they are shown apart from ours and never compared with them.
#include <span>

namespace mlenv::compare {

struct Published {
  const char* what;
  const char* figure;
  const char* source;
  const char* address;
};
std::span<const Published> published();

}  // namespace mlenv::compare
