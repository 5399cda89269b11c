#include "runner/node/program.hpp"

#include "base/error.hpp"
#include "base/process.hpp"

namespace mlenv::job {

fs::path node_program() {
  constexpr const char* kName = "mlenv-node";
  fs::path own = own_executable();
  if (own.filename() == kName) return own;
  const fs::path folder = own.parent_path();
  for (const fs::path& path : {folder / kName, folder.parent_path() / "libexec/mlenv" / kName}) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return path;
  }
  throw failure("no-node-program", "`{}` is not installed beside mlenv", kName)
      .because(fmt::format("it is neither in `{}` nor in `{}`", folder.string(),
                           (folder.parent_path() / "libexec/mlenv").string()))
      .hint("install mlenv again: nodes are given that program");
}

}  // namespace mlenv::job
