#include "builder/debian/configure.hpp"

#include <sys/types.h>
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/database.hpp"
#include "builder/debian/output.hpp"
#include "builder/debian/tree.hpp"

namespace mlenv::debian {
namespace {

constexpr std::chrono::minutes kScriptsDeadline{30};

/// As dpkg runs a preinst script before it unpacks (debian-policy 6.5): from tmp.ci, where the
/// package's other control files lie too. Arguments: info name, package, architecture.
constexpr std::string_view kPreinstFunction = R"(
set -u
cd /
preinst() {
  mv "/var/lib/dpkg/tmp.preinst/$1" /var/lib/dpkg/tmp.ci
  DPKG_MAINTSCRIPT_PACKAGE="$2" DPKG_MAINTSCRIPT_ARCH="$3" \
    DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1 DPKG_MAINTSCRIPT_NAME=preinst \
    /var/lib/dpkg/tmp.ci/preinst install </dev/null || {
    echo "dpkg: error processing package $2 (--unpack):"
    echo " preinst script returned error exit status $?"
    exit 1
  }
  rm -rf /var/lib/dpkg/tmp.ci
}
)";

std::string running_version(const std::vector<Package>& packages) {
  const auto dpkg = std::ranges::find(packages, "dpkg", &Package::name);
  return dpkg == packages.end() ? std::string() : dpkg->version;
}

}  // namespace

std::uint64_t count_set_up(std::string_view text) {
  std::uint64_t count = 0;
  for (std::size_t at = text.find("Setting up "); at != std::string_view::npos;
       at = text.find("Setting up ", at + 1)) {
    ++count;
  }
  return count;
}

std::vector<std::string> script_environment(std::int64_t epoch) {
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
          "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "TERM=dumb", "LANG=C.UTF-8",
          "LC_ALL=C.UTF-8", "TZ=UTC", "DEBIAN_FRONTEND=noninteractive",
          "DEBCONF_NONINTERACTIVE_SEEN=true", "DEBCONF_NOWARNINGS=yes",
          // Orders of hash tables that would otherwise differ from run to run.
          "PERL_HASH_SEED=0", "PYTHONHASHSEED=0",
          // What an import writes is dated, and stale once all times are the epoch;
          // py3compile writes checked hashes (PEP 552).
          "PYTHONDONTWRITEBYTECODE=1", fmt::format("SOURCE_DATE_EPOCH={}", epoch)};
}

Configurator::Configurator(fs::path root, std::int64_t epoch, const std::vector<Package>& packages,
                           Progress& progress)
    : root_(std::move(root)), epoch_(epoch), packages_(packages), progress_(progress) {}

void Configurator::prepare() {
  const auto place = [&](const char* path, std::string_view text, mode_t mode) {
    if (fs::exists(fs::symlink_status(root_ / path))) return;
    write_with_mode(root_ / path, text, mode);
    temporary_.push_back(root_ / path);
  };
  place("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0755);
  place("etc/hostname", "localhost\n", 0644);
  place("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", 0644);
  place("etc/resolv.conf", "", 0644);
}

void Configurator::clean() {
  for (const fs::path& path : temporary_) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw os_error(error.value(), "cannot remove `{}`", path.string());
  }
  temporary_.clear();
}

void Configurator::run(const std::string& script, Configured& state, Activity& activity) {
  SandboxCommand command;
  command.root = root_;
  command.argv = {"/bin/sh", "-c", script};
  command.env = script_environment(epoch_);
  for (const char* variable : {"DPKG_ADMINDIR=/var/lib/dpkg", "DPKG_ROOT="}) {
    command.env.emplace_back(variable);
  }
  command.env.push_back("DPKG_RUNNING_VERSION=" + running_version(packages_));
  RecordedRun result =
      run_recorded(command, state.owners, kScriptsDeadline,
                   [&](std::string_view text) { activity.advance(count_set_up(text)); });
  if (result.exit.code != 0) throw configuration_error(result.output, result.exit.code);
  require_real_folders(root_);
  for (const Complaint& complaint : complaints(result.output)) {
    progress_.note(
        fmt::format("`{}` said while it was configured: {}", complaint.package, complaint.text));
  }
  state.owners = std::move(result.owners);
  state.capabilities.merge(result.capabilities);
}

void Configurator::run_preinst(const std::vector<std::size_t>& which, Configured& state) {
  std::string script{kPreinstFunction};
  std::uint64_t count = 0;
  for (const std::size_t index : which) {
    const Package& package = packages_[index];
    if (!package.control.contains("preinst")) continue;
    // Names, architectures: letters, digits and +-.: alone (deb-control(5)), checked by the lock.
    script += fmt::format("preinst '{}' '{}' '{}'\n", package.info_name(), package.name,
                          package.architecture);
    ++count;
  }
  if (count == 0) return;
  Activity activity{progress_, "preparing packages", 0, "packages"};
  run(script, state, activity);
}

void Configurator::configure(const std::vector<std::size_t>& which, Configured& state) {
  if (which.empty()) return;
  std::string script = "exec dpkg --log=/dev/null --configure";
  for (const std::size_t index : which) {
    const Package& package = packages_[index];
    script += fmt::format(" '{}{}'", package.name,
                          package.field("multi-arch") == "same" ? ":" + package.architecture : "");
  }
  script += " </dev/null\n";
  Activity activity{progress_, "configuring packages", which.size(), "packages"};
  run(script, state, activity);
}

void Configurator::check_all_installed() const {
  const std::string status = read_file(root_ / "var/lib/dpkg/status");
  std::string_view rest = status;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\n\n");
    const Fields fields = parse_stanza(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
    const auto state = fields.find("status");
    if (state == fields.end() || state->second == "install ok installed") continue;
    const auto name = fields.find("package");
    throw failure("base-failed", "dpkg left `{}` as `{}`",
                  name == fields.end() ? "?" : name->second, state->second);
  }
}

}  // namespace mlenv::debian
