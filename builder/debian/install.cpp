#include "builder/debian/install.hpp"

#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/normalise.hpp"
#include "builder/debian/order.hpp"

namespace mlenv::debian {
namespace {

/// A package's Breaks may want another one to be deconfigured until its new version is there.
constexpr std::string_view kUnpack =
    "dpkg --log=/dev/null --force-confdef --force-confold "
    "--no-triggers --auto-deconfigure --unpack";
constexpr std::string_view kConfigure =
    "dpkg --log=/dev/null --force-confdef --force-confold --no-triggers --configure";
constexpr std::string_view kFinish =
    "dpkg --log=/dev/null --force-confdef --force-confold --configure --pending";

/// What normalising would empty or remove although the image below has its own.
constexpr std::array kOfTheBase{"etc/machine-id", "var/log/wtmp", "var/log/btmp", "var/log/lastlog",
                                "var/log/faillog"};

class Script {
 public:
  Script(const std::vector<Package>& packages, const std::vector<std::string>& files)
      : packages_(packages), files_(files) {
    for (std::size_t i = 0; i < packages.size(); ++i) {
      providers_[packages[i].name].push_back(i);
      for (const auto& group : parse_relation(packages[i].field("provides"))) {
        for (const std::string& name : group) providers_[name].push_back(i);
      }
    }
  }

  std::string text() {
    for (const std::size_t i : order_of(packages_).all()) {
      std::vector<std::size_t> first;
      add_needed(i, {"pre-depends"}, first);
      configure(first);
      waiting_.push_back(i);
      unpacked_.insert(i);
    }
    std::vector<std::size_t> all = order_of(packages_).all();
    configure(all);
    script_ += fmt::format("{} </dev/null\n", kFinish);
    return std::move(script_);
  }

 private:
  /// Of what is unpacked and not configured yet, what `index` needs by these fields, with all that
  /// this needs in turn; what comes first is in front.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the longest chain of dependencies
  void add_needed(std::size_t index, const std::vector<const char*>& fields,
                  std::vector<std::size_t>& out) {
    for (const char* field : fields) {
      for (const auto& group : parse_relation(packages_[index].field(field))) {
        for (const std::string& name : group) {
          const auto found = providers_.find(name);
          if (found == providers_.end()) continue;
          for (const std::size_t one : found->second) add_with_needed(one, out);
        }
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): each is added once
  void add_with_needed(std::size_t index, std::vector<std::size_t>& out) {
    if (!unpacked_.contains(index) || configured_.contains(index)) return;
    if (!visiting_.insert(index).second) return;
    add_needed(index, {"pre-depends", "depends"}, out);
    out.push_back(index);
  }

  void unpack_waiting() {
    if (waiting_.empty()) return;
    script_ += kUnpack;
    // Lock and dpkg's own rules allow letters, digits and +-.~: in them.
    for (const std::size_t i : waiting_) script_ += fmt::format(" '{}'", files_[i]);
    script_ += " </dev/null || exit\n";
    waiting_.clear();
  }

  void configure(const std::vector<std::size_t>& which) {
    visiting_.clear();
    std::string names;
    for (const std::size_t i : which) {
      if (!configured_.insert(i).second) continue;
      const Package& package = packages_[i];
      names += fmt::format(" '{}{}'", package.name,
                           package.field("multi-arch") == "same" ? ":" + package.architecture : "");
    }
    if (names.empty()) return;
    unpack_waiting();
    script_ += fmt::format("{}{} </dev/null || exit\n", kConfigure, names);
  }

  const std::vector<Package>& packages_;
  const std::vector<std::string>& files_;
  std::map<std::string, std::vector<std::size_t>> providers_;
  std::vector<std::size_t> waiting_;  // to be unpacked by one dpkg
  std::set<std::size_t> unpacked_;    // or waiting
  std::set<std::size_t> configured_;
  std::set<std::size_t> visiting_;
  std::string script_;
};

}  // namespace

std::string install_script(const std::vector<Package>& packages,
                           const std::vector<std::string>& files) {
  return Script{packages, files}.text();
}

void require_installed(std::string_view status) {
  while (!status.empty()) {
    const std::size_t end = status.find("\n\n");
    const Fields fields = parse_stanza(status.substr(0, end));
    status.remove_prefix(end == std::string_view::npos ? status.size() : end + 2);
    const auto found = fields.find("status");
    if (found == fields.end()) continue;
    const std::string& state = found->second;
    if (state.ends_with(" ok installed") || state.ends_with(" config-files") ||
        state.ends_with(" not-installed")) {
      continue;
    }
    const auto name = fields.find("package");
    throw failure("base-failed", "dpkg left `{}` as `{}`",
                  name == fields.end() ? "?" : name->second, state);
  }
}

void normalise_changes(const fs::path& upper, LayerStack& below) {
  require_real_folders(upper);
  for (const char* path : kOfTheBase) {
    if (below.find(path)) remove_tree(upper / path);
  }
  normalise(upper);
}

}  // namespace mlenv::debian
