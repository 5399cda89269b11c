#include "builder/debian.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/configure.hpp"
#include "builder/debian/database.hpp"
#include "builder/debian/normalise.hpp"
#include "builder/debian/order.hpp"
#include "builder/debian/package.hpp"
#include "builder/debian/tree.hpp"

namespace mlenv {
namespace {

using debian::Package;

/// Unpacks all packages side by side, each into its own folder of `staging`.
std::vector<Package> unpack_all(const Lock& lock, const std::vector<fs::path>& files,
                                const fs::path& staging, Progress& progress) {
  Activity activity{progress, "unpacking packages", files.size(), "packages"};
  std::vector<Package> packages(files.size());
  Pool pool;
  pool.for_each(files.size(), [&](std::size_t i) {
    while_doing("unpacking `" + files[i].filename().string() + "`", [&] {
      const fs::path folder = staging / std::to_string(i);
      make_folders(folder);
      packages[i] = debian::unpack_package(files[i], folder);
      require_package(packages[i], lock.debs.at(i));
    });
    activity.advance(1);
  });
  return packages;
}

/// Mode 0755, no set-group-ID, our own group: what is made below inherits neither.
void claim(const fs::path& root) {
  if (::chown(root.c_str(), static_cast<uid_t>(-1), ::getegid()) != 0 ||
      ::chmod(root.c_str(), 0755) != 0) {
    throw os_error(errno, "cannot make `{}` the root of a base", root.string());
  }
}

/// Without a link on the way.
bool exists_below(int root, const std::string& path) {
  return static_cast<bool>(debian::open_real(root, path.substr(1)));
}

void configure_all(debian::Tree& tree, const std::vector<Package>& packages,
                   const std::vector<fs::path>& files, debian::Configurator& configurator,
                   debian::Configured& state) {
  const debian::Order order = debian::order_of(packages);
  const auto settle = [&](bool last) {
    tree.set_owners(std::move(state.owners));
    tree.settle(packages, files, tree.root(), last);
    state.owners = tree.owners();
  };
  configurator.run_preinst(order.essential, state);
  settle(false);
  configurator.configure(order.essential, state);
  configurator.run_preinst(order.rest, state);
  settle(true);
  configurator.configure(order.rest, state);
}

}  // namespace

// What the package says of itself goes into dpkg's records and scripts; the lock, which the index
// vouches for, has checked names alone.
void require_package(const Package& package, const LockedDeb& wanted) {
  const auto shown = [](const std::string& name, const std::string& version,
                        const std::string& architecture) {
    return fmt::format("`{}` {} for {}", name, version, architecture);
  };
  if (package.name == wanted.name && package.version == wanted.version &&
      package.architecture == wanted.architecture) {
    return;
  }
  throw failure("bad-deb", "a Debian package is not what its archive's index says")
      .because(fmt::format("expected {}, found {}",
                           shown(wanted.name, wanted.version, wanted.architecture),
                           shown(package.name, package.version, package.architecture)));
}

DebianBase build_debian_base(const Lock& lock, const std::vector<fs::path>& packages,
                             const fs::path& root, Progress& progress) {
  claim(root);
  const std::string architecture = lock.platform.substr(lock.platform.find('/') + 1);
  debian::Tree tree{root, architecture};
  std::vector<Package> parsed;
  {
    // In the root, so that moving into place is a rename.
    const TemporaryFolder staging{root, ".unpack-"};
    parsed = unpack_all(lock, packages, staging.path(), progress);
    for (const std::size_t i : debian::order_of(parsed).all()) {
      tree.merge(parsed, i, staging.path() / std::to_string(i));
    }
  }
  tree.finish_folders();
  debian::write_database(tree, parsed);

  debian::Configured state{tree.owners(), {}};
  debian::Configurator configurator{root, lock.epoch, parsed, progress};
  configurator.prepare();
  configure_all(tree, parsed, packages, configurator, state);
  configurator.check_all_installed();
  configurator.clean();
  debian::normalise(root);
  debian::set_times(root, lock.epoch);

  const Fd top = open_file(root, O_PATH | O_DIRECTORY);
  const auto is_gone = [&](const auto& item) { return !exists_below(top.get(), item.first); };
  std::erase_if(state.owners, is_gone);
  std::erase_if(state.capabilities, is_gone);
  return {std::move(state.owners), std::move(state.capabilities)};
}

}  // namespace mlenv
