#include "runner/local/limits.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <random>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {
namespace {

constexpr unsigned kQuotaPeriod = 100000;  // microseconds; Docker's, and the kernel's own

FactSources here() { return host_sources("/", "/tmp"); }

std::string option_of(const std::string& controller) {
  if (controller == "memory") return "--memory";
  if (controller == "cpu") return "--cpus";
  return controller == "cpuset" ? "--cpuset-cpus" : "--pids-limit";
}

Error no_limit(const std::string& option, std::string why) {
  return failure("no-limit", "`{}` cannot be applied here", option).because(std::move(why));
}

std::string options_of(const JobLimits& limits) {
  std::string all;
  for (const std::string& one : controllers_for(limits)) {
    all += (all.empty() ? "" : ", ") + option_of(one);
  }
  return all;
}

Error no_place(const JobLimits& limits, const NoLimitPlace& none) {
  Error error = no_limit(options_of(limits), none.why);
  if (!none.hint.empty()) error.hint(none.hint);
  return error;
}

/// 0, or errno.
int write_once(const fs::path& file, const std::string& text) noexcept {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

/// Of that name in a group's file of counts.
std::optional<std::uint64_t> count_in(const fs::path& file, std::string_view name) {
  const std::string text = read_file_if_exists(file).value_or("");
  const auto count = line_value(text, name, ' ');
  if (!count) return std::nullopt;
  return number_of(*count).value_or(0);
}

std::string read_word(const fs::path& file) {
  return std::string(trim(read_file_if_exists(file).value_or("")));
}

std::string random_name() {
  std::random_device device;
  return fmt::format("mlenv-limits-{:08x}", device());
}

struct Resource {
  std::string_view name;
  __rlimit_resource number;
};
constexpr std::array kResources = {
    Resource{"core", RLIMIT_CORE},         Resource{"cpu", RLIMIT_CPU},
    Resource{"data", RLIMIT_DATA},         Resource{"fsize", RLIMIT_FSIZE},
    Resource{"locks", RLIMIT_LOCKS},       Resource{"memlock", RLIMIT_MEMLOCK},
    Resource{"msgqueue", RLIMIT_MSGQUEUE}, Resource{"nice", RLIMIT_NICE},
    Resource{"nofile", RLIMIT_NOFILE},     Resource{"nproc", RLIMIT_NPROC},
    Resource{"rss", RLIMIT_RSS},           Resource{"rtprio", RLIMIT_RTPRIO},
    Resource{"rttime", RLIMIT_RTTIME},     Resource{"sigpending", RLIMIT_SIGPENDING},
    Resource{"stack", RLIMIT_STACK},
};

std::string rlimit_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

}  // namespace

std::vector<std::string> scope_for(const JobLimits& limits) {
  if (controllers_for(limits).empty()) return {};
  const auto found = find_limit_place(here(), own_rights(), limits);
  const auto* const none = std::get_if<NoLimitPlace>(&found);
  if (none == nullptr) return {};
  if (none->scope.empty()) throw no_place(limits, *none);
  return none->scope;
}

void check_ulimits(const std::vector<Ulimit>& ulimits) {
  for (const Ulimit& wanted : ulimits) {
    for (const Resource& resource : kResources) {
      if (resource.name != wanted.name) continue;
      rlimit now{};
      ::getrlimit(resource.number, &now);
      const rlim_t hard = wanted.hard.value_or(RLIM_INFINITY);
      if (hard <= now.rlim_max) continue;
      // Raising it changes nothing for this process, and is what the job needs.
      const rlimit raised{now.rlim_cur, hard};
      if (::setrlimit(resource.number, &raised) == 0) continue;
      throw no_limit(fmt::format("--ulimit {}", wanted.name),
                     fmt::format("{} is above the hard limit of this process, {}",
                                 rlimit_text(hard), rlimit_text(now.rlim_max)))
          .hint("ask for no more than that, or run as root");
    }
  }
}

void check_cpus(const JobLimits& limits) {
  const auto processors = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (!limits.cpus || *limits.cpus <= processors) return;
  throw no_limit("--cpus", fmt::format("{:g} is more than the {:g} that this machine has",
                                       *limits.cpus, processors));
}

LimitGroup::LimitGroup(std::string name) : name_(std::move(name)) {}

// Delegating: from here on the destructor removes what was made, whatever is thrown.
LimitGroup::LimitGroup(const JobLimits& limits) : LimitGroup(random_name()) {
  const auto found = find_limit_place(here(), own_rights(), limits);
  if (const auto* const none = std::get_if<NoLimitPlace>(&found)) throw no_place(limits, *none);
  check_cpus(limits);
  const auto& place = std::get<LimitPlace>(found);
  if (place.step_aside) step_aside(place);
  make_groups(place);
  set_all(limits);
}

LimitGroup::~LimitGroup() {
  leave();
  if (!aside_.empty()) (void)write_once(before_aside_ / "cgroup.procs", "0");
  (void)remove();
}

std::vector<fs::path> LimitGroup::folders() const {
  std::vector<fs::path> all;
  for (const Group& one : groups_) all.push_back(one.folder);
  return all;
}

bool LimitGroup::remove() const noexcept {
  bool gone = aside_.empty() || remove_group(aside_);
  for (const Group& one : groups_) gone = remove_group(one.folder) && gone;
  return gone;
}

namespace {

/// What the run itself made below its group: no process is in any of it.
void remove_groups_below(const fs::path& folder) {
  TreeWalk walk;
  walk.visit = [](const TreeEntry&) { return true; };
  walk.leave = [](const TreeEntry& group) {
    (void)::unlinkat(group.folder, group.name.c_str(), AT_REMOVEDIR);
  };
  walk.unreadable = [](std::string_view, int) {};
  walk_tree(folder, walk);
}

}  // namespace

bool remove_group(const fs::path& folder) noexcept {
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return true;
  if (errno != EBUSY && errno != ENOTEMPTY) return false;
  try {
    const auto events = read_file_if_exists(folder / "cgroup.events");
    if (!events || events->find("populated 0") == std::string::npos) return false;
    remove_groups_below(folder);
  } catch (const std::exception&) {
    return false;
  }
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

/// A group of version 2 hands controllers down only while no process is in it.
void LimitGroup::step_aside(const LimitPlace& place) {
  before_aside_ = place.controllers.front().own;
  aside_ = before_aside_ / (name_ + "-mlenv");
  int error = ::mkdir(aside_.c_str(), 0755) == 0 ? 0 : errno;
  if (error == 0) error = write_once(aside_ / "cgroup.procs", "0");
  if (error != 0) {
    throw no_limit(
        option_of(place.controllers.front().controller),
        fmt::format("cannot make the control group `{}`: {}", aside_.string(), errno_text(error)));
  }
}

void LimitGroup::make_groups(const LimitPlace& place) {
  for (const ControllerPlace& one : place.controllers) {
    const fs::path folder = one.parent / name_;
    if (one.unified) (void)write_once(one.parent / "cgroup.subtree_control", "+" + one.controller);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      const int error = errno;
      throw no_limit(option_of(one.controller),
                     fmt::format("cannot make the control group `{}`: {}", folder.string(),
                                 errno_text(error)));
    }
    groups_.push_back(
        {one.controller, one.unified, folder, one.unified && !aside_.empty() ? aside_ : one.own});
  }
}

const LimitGroup::Group& LimitGroup::group(const std::string& controller) const {
  for (const Group& one : groups_) {
    if (one.controller == controller) return one;
  }
  throw no_limit(option_of(controller), "there is no control group for it");
}

bool LimitGroup::has(const std::string& controller, const char* file) const {
  std::error_code error;
  return fs::exists(group(controller).folder / file, error);
}

void LimitGroup::set(const std::string& controller, const char* file,
                     const std::string& value) const {
  const fs::path path = group(controller).folder / file;
  if (const int error = write_once(path, value); error != 0) {
    throw no_limit(option_of(controller), fmt::format("the kernel refuses `{}` in `{}`: {}", value,
                                                      path.string(), errno_text(error)));
  }
}

void LimitGroup::set_all(const JobLimits& limits) {
  if (limits.memory_bytes) {
    set_memory(limits);
    watch_memory();
  }
  if (limits.cpus) set_cpus(*limits.cpus);
  if (limits.cpuset) set_cpuset(*limits.cpuset);
  if (limits.pids) set("pids", "pids.max", std::to_string(*limits.pids));
}

/// What was asked for of swap is had or refused; the default is left out where it cannot be.
void LimitGroup::set_memory(const JobLimits& limits) const {
  const std::uint64_t memory = *limits.memory_bytes;
  const std::uint64_t both = limits.memory_swap_bytes.value_or(2 * memory);
  const bool unified = group("memory").unified;
  set("memory", unified ? "memory.max" : "memory.limit_in_bytes", std::to_string(memory));
  // Version 2 counts swap alone, version 1 memory and swap together.
  const char* const file = unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
  if (has("memory", file)) {
    const std::string unlimited = unified ? "max" : "-1";
    set("memory", file,
        limits.unlimited_swap ? unlimited : std::to_string(unified ? both - memory : both));
  } else if (limits.memory_swap_bytes) {
    throw no_limit("--memory-swap",
                   fmt::format("this kernel does not count swap: there is no `{}`", file))
        .hint("leave it out, or boot with `swapaccount=1` on the kernel's command line");
  }
}

/// Version 1 counts kills in the group of the process alone, which the runtime removes.
void LimitGroup::watch_memory() {
  const Group& memory = group("memory");
  if (memory.unified) return;
  const Fd control{::open((memory.folder / "memory.oom_control").c_str(), O_RDONLY | O_CLOEXEC)};
  Fd events{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  const std::string words = fmt::format("{} {}", events.get(), control.get());
  if (write_once(memory.folder / "cgroup.event_control", words) == 0)
    shortages_ = std::move(events);
}

void LimitGroup::set_cpus(double cpus) const {
  const auto quota = static_cast<std::uint64_t>(std::llround(cpus * kQuotaPeriod));
  if (group("cpu").unified) {
    set("cpu", "cpu.max", fmt::format("{} {}", quota, kQuotaPeriod));
    return;
  }
  set("cpu", "cpu.cfs_period_us", std::to_string(kQuotaPeriod));
  set("cpu", "cpu.cfs_quota_us", std::to_string(quota));
}

void LimitGroup::set_cpuset(const std::string& processors) const {
  const Group& cpuset = group("cpuset");
  if (!cpuset.unified) {  // a new group of version 1 has neither, and takes no process without
    set("cpuset", "cpuset.mems", read_word(cpuset.folder.parent_path() / "cpuset.mems"));
  }
  set("cpuset", "cpuset.cpus", processors);
  // Version 2 takes any list, and gives what there is of it.
  const fs::path effective =
      cpuset.folder / (cpuset.unified ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
  const std::string given = read_word(effective);
  if (!given.empty() && given != processors) {
    throw no_limit("--cpuset-cpus " + processors,
                   fmt::format("of these processors this process may use {}", given));
  }
}

void LimitGroup::enter() const {
  for (const Group& one : groups_) {
    const fs::path file = one.folder / "cgroup.procs";
    if (const int error = write_once(file, "0"); error != 0) {
      throw no_limit(option_of(one.controller),
                     fmt::format("cannot write `{}`: {}", file.string(), errno_text(error)));
    }
  }
}

void LimitGroup::leave() const noexcept {
  for (const Group& one : groups_) (void)write_once(one.back / "cgroup.procs", "0");
}

bool LimitGroup::killed_for_memory() const {
  eventfd_t count = 0;
  if (shortages_ && ::eventfd_read(shortages_.get(), &count) == 0 && count > 0) return true;
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& one) {
    return one.controller == "memory" && memory_kills(one.folder) > 0;
  });
}

void LimitGroup::explain(Error& error) const {
  const bool refused = std::any_of(groups_.begin(), groups_.end(), [](const Group& one) {
    return one.controller == "pids" && count_in(one.folder / "pids.events", "max").value_or(0) > 0;
  });
  if (!refused) return;
  error.hint("`--pids-limit` holds for the runtime's own processes and threads too: give it more");
}

Child start_within(const LimitGroup* limits, const Command& command) {
  if (limits == nullptr) return Child{command};
  limits->enter();
  try {
    Child child{command};
    limits->leave();
    return child;
  } catch (Error& error) {
    limits->leave();
    limits->explain(error);
    throw;
  }
}

std::uint64_t memory_kills(const fs::path& group) {
  for (const char* const file : {"memory.events", "memory.oom_control"}) {
    if (const auto count = count_in(group / file, "oom_kill")) return *count;
  }
  return 0;
}

}  // namespace mlenv
