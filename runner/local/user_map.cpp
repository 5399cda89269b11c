#include "runner/local/user_map.hpp"

#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "images/stacked_trees.hpp"
#include "runner/local/namespaces.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostFile = std::uint64_t{16} << 20U;
/// For newuidmap, which may ask a directory service.
constexpr std::chrono::seconds kMostMapping{20};

std::string caller_name() {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return std::to_string(::getuid());
  }
  return found->pw_name;
}

/// The caller's primary group as passwd(5) has it.
std::optional<gid_t> listed_group() {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) {
    return std::nullopt;
  }
  return found->pw_gid;
}

Error no_map(const ContainerUser& user, std::string why) {
  return failure("no-user-map", "the job cannot be user {}:{} in a container of an ordinary user",
                 user.uid, user.gid)
      .because("that needs more user ids than your own, which is shown as root without `--user`")
      .because(std::move(why));
}

Error no_ranges(const ContainerUser& user, const std::string& file, const std::string& name) {
  return no_map(user, fmt::format("`{}` gives `{}` no ids", file, name))
      .hint(fmt::format("let root run `usermod --add-subuids 100000-165535 --add-subgids "
                        "100000-165535 {}` (a range that nobody else has), or leave `--user` out",
                        name));
}

constexpr const char* kGroupRanges = "/etc/subgid";

/// None where it fails.
std::vector<IdRange> ranges_of(const fs::path& getsubids, bool groups, const std::string& name) {
  Command command{Purpose{"id-ranges"}};
  command.argv = {getsubids.string()};
  if (groups) command.argv.emplace_back("-g");
  command.argv.push_back(name);
  const Captured done = run_captured(command, kMostMapping);
  return done.exit.code == 0 ? listed_ranges(done.out) : std::vector<IdRange>{};
}

struct Maps {
  std::vector<IdMapLine> users;
  std::vector<IdMapLine> groups;
};

Maps maps_for(const ContainerUser& user) {
  const std::string name = caller_name();
  const bool directory = asks_directory(read_file_if_exists("/etc/nsswitch.conf").value_or(""));
  const auto lister = directory ? find_program("getsubids") : std::nullopt;
  const auto ranges = [&](const std::string& file) {
    const std::string text = read_file_if_exists(file).value_or("");
    std::vector<IdRange> found = lister ? ranges_of(*lister, file == kGroupRanges, name)
                                        : subordinate_ranges(text, name, ::getuid());
    if (found.empty()) throw no_ranges(user, lister ? lister->string() : file, name);
    return found;
  };
  return {map_keeping(user.uid, ::geteuid(), ranges("/etc/subuid")),
          map_keeping(user.gid, ::getegid(), ranges(kGroupRanges))};
}

/// The programs that may write such maps for us (newuidmap(1)).
struct Mapper {
  fs::path users;
  fs::path groups;
};

Mapper find_mapper(const ContainerUser& user) {
  const auto users = find_program("newuidmap");
  const auto groups = find_program("newgidmap");
  if (users && groups) return {*users, *groups};
  throw no_map(user, fmt::format("`{}` is not installed", users ? "newgidmap" : "newuidmap"))
      .hint("let root run `apt-get install uidmap`, or leave `--user` out");
}

/// Empty: it worked.
std::string map_by_program(const fs::path& program, pid_t process,
                           const std::vector<IdMapLine>& map) {
  Command command{Purpose{"id-map"}};
  command.argv = {program.string(), std::to_string(process)};
  for (const IdMapLine& line : map) {
    for (const std::uint32_t number : {line.inside, line.outside, line.count}) {
      command.argv.push_back(std::to_string(number));
    }
  }
  const Captured done = run_captured(command, kMostMapping);
  if (done.exit.code == 0) return {};
  const std::string_view words = trim(done.err);
  return fmt::format("{}: {}", program.filename().string(),
                     words.empty() ? fmt::format("status {}", done.exit.code) : words);
}

/// A process that stays outside, since only there may the maps be written.
class Outside {
 public:
  Outside(const Mapper& mapper, const Maps& maps) : process_(::getpid()) {
    pid_ = ::fork();
    if (pid_ < 0) throw os_error(errno, "cannot start a process");
    if (pid_ == 0) ::_exit(serve(mapper, maps));
    go_.read_end.reset();
    answer_.write_end.reset();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside() {
    go_.write_end.reset();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  /// What went wrong; empty: nothing.
  std::string map_us() {
    (void)write_quietly(go_.write_end.get(), "x");
    FdSource source{answer_.read_end.get()};
    const std::string answer = read_all(source, kMostFile);
    if (answer.empty()) return "the process that maps the ids was killed";
    return answer == "done" ? std::string{} : answer;
  }

 private:
  int serve(const Mapper& mapper, const Maps& maps) noexcept {
    try {
      go_.write_end.reset();
      char byte = 0;
      if (::read(go_.read_end.get(), &byte, 1) != 1) return 1;
      std::string wrong = map_by_program(mapper.users, process_, maps.users);
      if (wrong.empty()) wrong = map_by_program(mapper.groups, process_, maps.groups);
      (void)write_quietly(answer_.write_end.get(), wrong.empty() ? "done" : wrong);
    } catch (const std::exception& error) {
      (void)write_quietly(answer_.write_end.get(), error.what());
    }
    return 0;
  }

  pid_t process_;
  pid_t pid_ = -1;
  Pipe go_ = make_pipe();
  Pipe answer_ = make_pipe();
};

/// setfsuid(2) of another user than root takes what root may do with files: given back, as it holds
/// for files of this namespace's ids alone.
void take_all_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) throw os_error(errno, "capget");
  for (__user_cap_data_struct& part : data) part.effective = part.permitted;
  if (::syscall(SYS_capset, &header, data.data()) != 0) throw os_error(errno, "capset");
}

/// Real and effective id are root, which a program that is started needs for its rights. The saved
/// one is the caller's: by it kill(2) decides. Files are made with the caller's.
void be_root_who_writes_as(const ContainerUser& user) {
  if (::setresgid(0, 0, user.gid) != 0 || ::setresuid(0, 0, user.uid) != 0) {
    throw os_error(errno, "cannot become root of a user namespace");
  }
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
  take_all_capabilities();
  // Changing ids made our /proc/PID root's own; runtimes look at it.
  ::prctl(PR_SET_DUMPABLE, 1);
}

}  // namespace

std::vector<IdRange> subordinate_ranges(std::string_view file, std::string_view name,
                                        std::uint32_t number) {
  std::vector<IdRange> ranges;
  const std::string as_number = std::to_string(number);
  for (const std::string_view line : split(file, '\n')) {
    const std::vector<std::string_view> parts = split(trim(line), ':');
    if (parts.size() != 3 || (parts[0] != name && parts[0] != as_number)) continue;
    const auto first = number_from<std::uint32_t>(parts[1]);
    const auto count = number_from<std::uint32_t>(parts[2]);
    if (first && count && *count > 0) ranges.push_back({*first, *count});
  }
  return ranges;
}

bool asks_directory(std::string_view nsswitch) {
  for (std::string_view line : split(nsswitch, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    constexpr std::string_view kKey = "subid:";
    if (!line.starts_with(kKey)) continue;
    const std::string_view service = trim(line.substr(kKey.size()));
    return !service.empty() && service != "files";
  }
  return false;
}

std::vector<IdRange> listed_ranges(std::string_view printed) {
  std::vector<IdRange> ranges;
  for (const std::string_view line : split(printed, '\n')) {
    const std::vector<std::string_view> parts = split(trim(line), ' ');
    constexpr std::size_t kWords = 4;
    if (parts.size() != kWords) continue;
    const auto first = number_from<std::uint32_t>(parts[2]);
    const auto count = number_from<std::uint32_t>(parts[3]);
    if (first && count && *count > 0) ranges.push_back({*first, *count});
  }
  return ranges;
}

std::vector<IdMapLine> map_keeping(std::uint32_t inside, std::uint32_t own,
                                   const std::vector<IdRange>& ranges) {
  std::vector<IdMapLine> map;
  std::uint32_t next = 0;
  for (IdRange left : ranges) {
    while (left.count > 0) {
      if (next == inside) ++next;
      const std::uint32_t until = next < inside ? inside - next : left.count;
      const std::uint32_t count = std::min(left.count, until);
      map.push_back({next, left.first, count});
      next += count;
      left.first += count;
      left.count -= count;
    }
  }
  map.push_back({inside, own, 1});
  std::sort(map.begin(), map.end(),
            [](const IdMapLine& a, const IdMapLine& b) { return a.inside < b.inside; });
  return map;
}

std::optional<ContainerUser> shown_as(const LocalRun& run) {
  if (!run.options.user || ::geteuid() == 0) return std::nullopt;
  std::vector<fs::path> trees = run.trees;
  if (run.layer && fs::is_directory(run.layer->folder / "upper")) {
    trees.push_back(run.layer->folder / "upper");
  }
  const StackedTrees image{trees};
  ContainerUser user =
      resolve_user(*run.options.user, image.read("etc/passwd", kMostFile).value_or(""),
                   image.read("etc/group", kMostFile).value_or(""));
  if (user.uid == 0) return std::nullopt;
  return user;
}

void enter_mapped_namespace(const ContainerUser& user) {
  const Maps maps = maps_for(user);
  const Mapper mapper = find_mapper(user);
  Outside outside{mapper, maps};
  unshare_user_and_mounts();
  if (const std::string wrong = outside.map_us(); !wrong.empty()) {
    // newuidmap(1) takes a process for its user's only with the primary group, too.
    if (const auto group = listed_group(); group && *group != ::getgid()) {
      throw no_map(user, wrong)
          .because(
              fmt::format("your group is {} here and {} in the list of users", ::getgid(), *group))
          .hint("run it as you are after a login: `exit` leaves the shell that `newgrp` started");
    }
    throw no_map(user, wrong)
        .hint(
            "`/etc/subuid` and `/etc/subgid` must have ranges of yours, and newuidmap and "
            "newgidmap "
            "be installed with their rights (package uidmap); in a container: one with many ids");
  }
  be_root_who_writes_as(user);
}

void require_mapped(const ContainerUser& user) {
  std::istringstream map{read_file("/proc/self/gid_map")};
  std::vector<IdMapLine> lines;
  for (IdMapLine line; map >> line.inside >> line.outside >> line.count;) lines.push_back(line);
  for (const std::uint32_t group : user.groups) {
    const bool is_there = std::any_of(lines.begin(), lines.end(), [&](const IdMapLine& line) {
      return group >= line.inside && group - line.inside < line.count;
    });
    if (is_there) continue;
    throw no_map(user,
                 fmt::format("its group {} is beyond the ids that `/etc/subgid` gives you", group))
        .hint("leave that group out, or let root give you a larger range");
  }
}

}  // namespace mlenv
