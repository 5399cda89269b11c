#include "runner/node/program.hpp"

#include "base/error.hpp"
#include "base/process.hpp"

namespace mlenv::job {

namespace {

/// Beside the running program or in ../libexec/mlenv; empty where it is in neither.
fs::path program_beside(const fs::path& folder, const char* name) {
  for (const fs::path& path : {folder / name, folder.parent_path() / "libexec/mlenv" / name}) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path;
  }
  return {};
}

std::string places_sought(const fs::path& folder) {
  return fmt::format("it is neither in `{}` nor in `{}`", folder.string(),
                     (folder.parent_path() / "libexec/mlenv").string());
}

}  // namespace

fs::path node_program() {
  constexpr const char* kName = "mlenv-node";
  fs::path own = own_executable();
  if (own.filename() == kName) return own;
  fs::path found = program_beside(own.parent_path(), kName);
  if (!found.empty()) return found;
  throw failure("no-node-program", "`{}` is not installed beside mlenv", kName)
      .because(places_sought(own.parent_path()))
      .hint("install mlenv again: nodes are given that program");
}

fs::path probe_program() {
  constexpr const char* kName = "mlenv-gpu-probe";
  const fs::path folder = own_executable().parent_path();
  fs::path found = program_beside(folder, kName);
  if (!found.empty()) return found;
  throw failure("no-probe-program", "`{}` is not installed beside mlenv", kName)
      .because(places_sought(folder))
      .hint("install mlenv again, built with `MLENV_GPU_PROBE=ON`: nodes are given that program");
}

}  // namespace mlenv::job
