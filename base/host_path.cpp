#include "base/host_path.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 10> kSystem = {
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",      "/usr/bin", "/sbin", "/bin",
    "/usr/lib",        "/lib",           "/usr/local/lib", "/lib64"};

bool is_of_host(const std::string& folder, const fs::path& project) {
  if (!folder.starts_with('/')) return false;
  if (project.empty()) return true;
  if (std::find(kSystem.begin(), kSystem.end(), folder) != kSystem.end()) return true;
  std::error_code error;
  const std::string plain = fs::path(folder).lexically_normal().string();
  const std::string real = fs::weakly_canonical(folder, error).string();
  const auto within = [&](std::string path) {
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return is_beneath(path, project.string());
  };
  return !within(plain) && (error || !within(real));
}

void clean(const char* name, const fs::path& project) {
  const char* list = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  if (list == nullptr) return;
  const std::string kept = host_folders(list, project);
  if (kept == list) return;
  // An empty PATH would be the working folder again.
  if (kept.empty()) {
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  } else {
    ::setenv(name, kept.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace

std::string host_folders(std::string_view list, const fs::path& project) {
  std::string kept;
  if (list.empty()) return kept;
  for (const std::string_view part : split(list, ':')) {
    const std::string folder{part};
    if (is_of_host(folder, project)) kept += (kept.empty() ? "" : ":") + folder;
  }
  return kept;
}

void use_host_folders(bool relative_only) {
  std::error_code error;
  fs::path here = relative_only ? fs::path{} : fs::current_path(error);
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  std::error_code other;
  // No project: what daemons and batch systems start has the one, a shell that has just begun the
  // other, whose programs are the person's own.
  if (here == here.root_path() || (home != nullptr && fs::equivalent(here, home, other))) {
    here.clear();
  }
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) clean(name, error ? fs::path{} : here);
}

}  // namespace mlenv
