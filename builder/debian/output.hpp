#pragma once
// What dpkg and maintainer scripts print, read for the reasons of a failure.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace mlenv::debian {

/// `base-failed`: which package, dpkg's reason, and the script's last lines.
Error configuration_error(std::string_view output, int status);

/// A line that looks like an error although dpkg was content (pg_createcluster's, for one).
struct Complaint {
  std::string package;
  std::string text;
};
std::vector<Complaint> complaints(std::string_view output);

}  // namespace mlenv::debian
