#include "builder/debian/diversions.hpp"

#include <sstream>

namespace mlenv::debian {

Diversions read_diversions(const fs::path& root) {
  Diversions diversions;
  std::istringstream lines{
      read_file_if_exists(root / "var/lib/dpkg/diversions").value_or(std::string())};
  std::string from;
  std::string to;
  std::string package;
  while (std::getline(lines, from) && std::getline(lines, to) && std::getline(lines, package)) {
    diversions[from] = {to, package};
  }
  return diversions;
}

}  // namespace mlenv::debian
