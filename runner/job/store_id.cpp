#include "runner/job/store_id.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

namespace mlenv::job {

std::string store_id(const fs::path& store) {
  struct stat status {};
  if (::stat((store / "version").c_str(), &status) != 0) return {};
  return fmt::format("{}.{}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace mlenv::job
