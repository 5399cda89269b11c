#pragma once
// Maintainer scripts and dpkg, run in the sandbox with ownership recorded.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/debian/package.hpp"

namespace mlenv::debian {

/// What the runs leave, besides the tree.
struct Configured {
  Owners owners;
  FileCapabilities capabilities;
};

/// Variables that maintainer scripts have, `K=V`: no terminal, no questions, nothing of this
/// machine.
std::vector<std::string> script_environment(std::int64_t epoch);
/// Packages that a stretch of dpkg's output reports as being set up.
std::uint64_t count_set_up(std::string_view text);

class Configurator {
 public:
  Configurator(fs::path root, std::int64_t epoch, const std::vector<Package>& packages,
               Progress& progress);
  /// Puts in, and takes away again, what scripts need only while they run: a policy that starts no
  /// service, /etc/hostname and its like.
  void prepare();
  void clean();

  /// Runs the preinst scripts of `which`, in that order, with `install`. Throws `base-failed`.
  void run_preinst(const std::vector<std::size_t>& which, Configured& state);
  /// `dpkg --configure` of `which`, in that order. Throws `base-failed`.
  void configure(const std::vector<std::size_t>& which, Configured& state);
  /// Throws `base-failed` for a package that dpkg does not call installed.
  void check_all_installed() const;

 private:
  void run(const std::string& script, Configured& state, Activity& activity);

  fs::path root_;
  std::int64_t epoch_;
  const std::vector<Package>& packages_;
  Progress& progress_;
  std::vector<fs::path> temporary_;
};

}  // namespace mlenv::debian
