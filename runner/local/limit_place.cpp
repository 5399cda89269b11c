#include "runner/local/limit_place.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

constexpr const char* kDelegation =
    "let root delegate them: `[Service]` and `Delegate=cpu cpuset memory pids` in "
    "/etc/systemd/system/user@.service.d/delegate.conf, then log in anew; or run as root";

bool lists(const Text& text, std::string_view word) {
  if (!text) return false;
  const auto words = words_of(*text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool lists_all(const Text& text, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return lists(text, word); });
}

/// Whether a group of version 2 limits something itself.
bool is_limited(const FactSources& from, const fs::path& folder, const std::string& controller) {
  const auto says = [&](const char* file, std::string_view nothing) {
    const Text text = file_text(from, folder / file);
    return text && !text->empty() && !text->starts_with(nothing);
  };
  if (controller == "memory") {
    return says("memory.max", "max") || says("memory.high", "max") ||
           says("memory.swap.max", "max");
  }
  if (controller == "pids") return says("pids.max", "max");
  if (controller == "cpu") return says("cpu.max", "max");
  return says("cpuset.cpus", "\n");
}

class Unified {
 public:
  Unified(const FactSources& from, const LimitRights& rights, std::vector<std::string> controllers)
      : from_(from), rights_(rights), controllers_(std::move(controllers)) {}

  /// Index of the folder; nullopt: none will do.
  std::optional<std::size_t> find(const std::vector<fs::path>& folders) {
    for (std::size_t i = 0; i < folders.size(); ++i) {
      if (!may_make_in(folders[i])) return std::nullopt;
      const Text handed = file_text(from_, folders[i] / "cgroup.subtree_control");
      if (lists_all(handed, controllers_)) return i;
      if (i == 0 && can_hand_down(folders[i])) {
        step_aside_ = !is_top(folders[i]);
        return i;
      }
      const bool limited =
          std::any_of(controllers_.begin(), controllers_.end(),
                      [&](const std::string& one) { return is_limited(from_, folders[i], one); });
      if (limited) return std::nullopt;
    }
    return std::nullopt;
  }
  bool step_aside() const { return step_aside_; }

 private:
  bool may_make_in(const fs::path& folder) const {
    return rights_.may_write(folder) && rights_.may_write(folder / "cgroup.procs");
  }
  /// The hierarchy's first folder, where the rule about processes does not hold.
  bool is_top(const fs::path& folder) const { return !present(from_, folder / "cgroup.type"); }
  bool can_hand_down(const fs::path& folder) const {
    if (!rights_.may_write(folder / "cgroup.subtree_control") ||
        !lists_all(file_text(from_, folder / "cgroup.controllers"), controllers_)) {
      return false;
    }
    const Text processes = file_text(from_, folder / "cgroup.procs");
    return is_top(folder) || (processes && *processes == std::to_string(rights_.pid));
  }

  const FactSources& from_;
  const LimitRights& rights_;
  std::vector<std::string> controllers_;
  bool step_aside_ = false;
};

/// systemd's own socket is what tells that it is there to be asked.
NoLimitPlace ask_systemd(const FactSources& from, const LimitRights& rights, std::string why) {
  NoLimitPlace none{{}, std::move(why), ""};
  const std::string runtime = rights.root ? "/run" : rights.runtime_folder;
  if (runtime.empty() || !present(from, fs::path(runtime) / "systemd/private") ||
      !from.find("systemd-run")) {
    none.hint =
        rights.root
            ? "start it in a control group that hands these controllers down"
            : "log in where systemd runs for you (`systemctl --user status`), or run as root";
    return none;
  }
  none.scope = {"systemd-run", "--quiet", "--scope", "--collect", "--property=Delegate=yes"};
  if (rights.root) {
    none.scope.emplace_back("--slice-inherit");  // limits around us go on to hold
  } else {
    none.scope.emplace_back("--user");
    none.hint = kDelegation;
  }
  none.scope.emplace_back("--");
  return none;
}

NoLimitPlace only_root(const std::string& controller) {
  return {{},
          fmt::format("the controller `{}` is one of cgroup version 1 here, where only root may "
                      "make groups",
                      controller),
          "run as root, or boot with `systemd.unified_cgroup_hierarchy=1`"};
}

}  // namespace

LimitRights own_rights() {
  LimitRights rights;
  rights.may_write = [](const fs::path& path) { return ::access(path.c_str(), W_OK) == 0; };
  rights.root = ::geteuid() == 0;
  rights.pid = ::getpid();
  rights.runtime_folder = "/run/user/" + std::to_string(::geteuid());
  return rights;
}

std::vector<std::string> controllers_for(const JobLimits& limits) {
  std::vector<std::string> names;
  if (limits.memory_bytes) names.emplace_back("memory");
  if (limits.cpus) names.emplace_back("cpu");
  if (limits.cpuset) names.emplace_back("cpuset");
  if (limits.pids) names.emplace_back("pids");
  return names;
}

std::variant<LimitPlace, NoLimitPlace> find_limit_place(const FactSources& from,
                                                        const LimitRights& rights,
                                                        const JobLimits& limits) {
  LimitPlace place;
  std::vector<std::string> unified;
  std::vector<fs::path> folders;
  for (const std::string& controller : controllers_for(limits)) {
    const Fact<CgroupFolders> found = cgroup_folders(from, controller);
    if (!found || found->folders.empty()) return NoLimitPlace{{}, found.source, ""};
    if (found->unified) {
      unified.push_back(controller);
      folders = found->folders;
      continue;
    }
    const fs::path& own = found->folders.front();
    if (!rights.may_write(own)) return only_root(controller);
    place.controllers.push_back({controller, false, own, own});
  }
  if (unified.empty()) return place;
  // Kernels without a controller in version 2 name it nowhere.
  for (const std::string& one : unified) {
    if (!lists(file_text(from, folders.back() / "cgroup.controllers"), one)) {
      return NoLimitPlace{{}, fmt::format("there is no cgroup controller `{}` here", one), ""};
    }
  }
  Unified search{from, rights, unified};
  const std::optional<std::size_t> index = search.find(folders);
  if (!index) {
    return ask_systemd(from, rights,
                       fmt::format("this process's control group, `{}`, hands no limits down",
                                   folders.front().string()));
  }
  for (const std::string& one : unified) {
    place.controllers.push_back({one, true, folders[*index], folders.front()});
  }
  place.step_aside = search.step_aside();
  return place;
}

}  // namespace mlenv
