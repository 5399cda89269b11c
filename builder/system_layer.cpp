#include "builder/system_layer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <set>

#include "base/error.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/debian.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/configure.hpp"
#include "builder/debian/install.hpp"
#include "builder/debian/output.hpp"
#include "builder/plan.hpp"
#include "builder/run/change_layer.hpp"
#include "builder/run/image_owners.hpp"
#include "builder/run/lent_tree.hpp"
#include "builder/run/run_step.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::minutes kInstallDeadline{60};
/// Containers have their own /run, so nothing of it is kept.
constexpr std::string_view kArchives = "/run/mlenv-packages";

void link_or_copy(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return;
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) throw os_error(error.value(), "cannot copy `{}`", from.string());
}

class SystemRun {
 public:
  SystemRun(const SystemJob& job, Store& store, Pool& pool, Progress& progress)
      : job_(job),
        store_(store),
        pool_(pool),
        progress_(progress),
        scratch_(store.scratch()),
        below_(layer_trees(job.base, store, pool, progress)),
        lent_(scratch_.path() / "lent", below_) {
    for (const Layer& layer : job.base) owners_.add(store, layer);
  }

  Layer run() {
    read_packages();
    lend();
    const RecordedRun result = execute();
    if (result.exit.code != 0) throw debian::configuration_error(result.output, result.exit.code);
    for (const debian::Complaint& complaint : debian::complaints(result.output)) {
      progress_.note(
          fmt::format("`{}` said while it was configured: {}", complaint.package, complaint.text));
    }
    return keep(result);
  }

 private:
  /// What is known of them before they are unpacked, by the image's dpkg, for good.
  void read_packages() {
    const std::set<std::string> nothing;
    make_folders(archives());
    packages_.resize(job_.packages.size());
    for (std::size_t i = 0; i < packages_.size(); ++i) {
      const LockedDeb& deb = job_.lock.debs.at(i);
      const TemporaryFolder unused{scratch_.path()};
      packages_[i] = debian::unpack_package(job_.packages[i], unused.path(), &nothing);
      require_package(packages_[i], deb);
      const std::string name = fmt::format("{}_{}.deb", deb.name, deb.architecture);
      link_or_copy(job_.packages[i], archives() / name);
      files_.push_back(fmt::format("{}/{}", kArchives, name));
    }
  }

  fs::path archives() const { return scratch_.path() / "packages"; }

  void lend() {
    lent_.disown_others(owners_);
    lent_.offer("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
    lent_.offer("etc/hostname", "localhost\n");
    lent_.offer("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
    lent_.offer("etc/resolv.conf", "");
    const fs::path policy = lent_.folder() / "usr/sbin/policy-rc.d";
    if (fs::exists(fs::symlink_status(policy)) && ::chmod(policy.c_str(), 0755) != 0) {
      throw os_error(errno, "cannot write `{}`", policy.string());
    }
    lent_.finish();
  }

  RecordedRun execute() {
    SandboxCommand command;
    command.argv = {"/bin/sh", "-c", debian::install_script(packages_, files_)};
    command.env = debian::script_environment(job_.lock.epoch);
    command.mounts.push_back({archives(), std::string(kArchives), true});
    command.overlay = lent_.stacked(scratch_.path());
    Activity activity{progress_, "installing packages", packages_.size(), "packages"};
    return run_recorded(command, owners_.owners(), kInstallDeadline, [&](std::string_view text) {
      activity.advance(debian::count_set_up(text));
    });
  }

  Layer keep(const RecordedRun& result) {
    const Activity activity{progress_, "pack what they changed", 0, ""};
    const fs::path upper = scratch_.path() / "overlay/upper";
    debian::require_real_folders(upper);
    const Fd root = open_file(upper, O_PATH | O_DIRECTORY);
    debian::require_installed(debian::read_inside(root.get(), "var/lib/dpkg/status").value_or(""));
    debian::normalise_changes(upper, below_);
    const std::map<std::string, std::string> no_secrets;
    const Changes changes{below_,
                          upper,
                          owners_.owners(),
                          result.owners,
                          owners_.capabilities(),
                          result.capabilities,
                          job_.lock.epoch,
                          lent_.lent(),
                          no_secrets};
    return make_change_layer(changes, store_, pool_, system_title(job_.lock));
  }

  const SystemJob& job_;
  Store& store_;
  Pool& pool_;
  Progress& progress_;
  TemporaryFolder scratch_;
  LayerStack below_;
  LentTree lent_;
  ImageOwners owners_;
  std::vector<debian::Package> packages_;
  std::vector<std::string> files_;  // within the image
};

}  // namespace

Layer make_system_layer(const SystemJob& job, Store& store, Pool& pool, Progress& progress) {
  return while_doing("installing Debian packages on the base", [&] {
    return SystemRun{job, store, pool, progress}.run();
  });
}

}  // namespace mlenv
