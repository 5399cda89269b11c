#include "runner/node/mpi_folder.hpp"

#include <fmt/core.h>

#include "base/process.hpp"
#include "runner/mpi/hosts.hpp"
#include "runner/node/program.hpp"

namespace mlenv::job {
namespace {

constexpr fs::perms kForAll = static_cast<fs::perms>(0755);
constexpr fs::perms kToRead = static_cast<fs::perms>(0644);

void put_file(const fs::path& path, const std::string& text) {
  write_file(path, text, /*durable=*/false);
  fs::permissions(path, kToRead);
}

}  // namespace

void add_mpi_folder(LocalRun& run, const fs::path& folder, std::string_view hosts) {
  const std::vector<mpi::Host> nodes = mpi::parse_hosts(hosts);
  const fs::path program = folder / "mlenv-node";
  std::error_code was_there;
  fs::create_directories(folder / "bin");
  for (const fs::path& one : {folder, folder / "bin"}) fs::permissions(one, kForAll);
  // A copy, since the original is its owner's alone (ssh), and may be where nobody else looks.
  fs::copy_file(node_program(), program, fs::copy_options::overwrite_existing);
  fs::permissions(program, kForAll);
  fs::remove(folder / "bin/ssh", was_there);
  fs::create_symlink("../mlenv-node", folder / "bin/ssh");
  put_file(folder / "hostfile", mpi::hostfile(nodes));
  put_file(folder / "hostfile.hydra", mpi::hydra_hostfile(nodes));
  // Nodes that mlenv itself plays (engine local) share one machine's processors.
  if (own_executable().filename() != program.filename()) {
    run.env.insert(run.env.begin(), fmt::format("{}=1", mpi::kYieldVariable));
  }
  run.mounts.insert(run.mounts.begin(), {Mount{folder, std::string(mpi::kFolder), true},
                                         Mount{folder / "hostfile", "/job/hostfile", true}});
}

}  // namespace mlenv::job
