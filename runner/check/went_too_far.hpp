#pragma once
// What older code says of a package beside it that went further than it knows: names that are gone,
// binary interfaces that changed. The releases were looked into on both sides of each bound, or say
// so themselves (November 2026).
#include <string_view>

namespace mlenv {

/// The bound that brings back what `error`, the text of a failed import, misses: `scipy<1.13`.
/// Empty: nothing is known of it.
std::string_view bound_of_complaint(std::string_view error);

}  // namespace mlenv
