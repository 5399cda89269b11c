#include "base/sandbox/enter.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/beneath.hpp"
#include "base/confinement.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sandbox/process_limit.hpp"

namespace mlenv::sandbox {
namespace {

struct Device {
  const char* name;
  unsigned major;
  unsigned minor;
};
constexpr std::array kDeviceNodes{Device{"null", 1, 3},    Device{"zero", 1, 5},
                                  Device{"full", 1, 7},    Device{"random", 1, 8},
                                  Device{"urandom", 1, 9}, Device{"tty", 5, 0}};

struct Link {
  const char* name;
  const char* target;
};
constexpr std::array kDeviceLinks{
    Link{"/dev/fd", "/proc/self/fd"}, Link{"/dev/stdin", "/proc/self/fd/0"},
    Link{"/dev/stdout", "/proc/self/fd/1"}, Link{"/dev/stderr", "/proc/self/fd/2"},
    Link{"/dev/ptmx", "pts/ptmx"}};

template <typename... Args>
Error stage_error(int error_number, fmt::format_string<Args...> format, Args&&... args) {
  return failure("sandbox-failed", "cannot set up the sandbox")
      .because(fmt::format(format, std::forward<Args>(args)...))
      .because(errno_text(error_number));
}

void write_setting(const char* path, const std::string& text) {
  const Fd fd{::open(path, O_WRONLY | O_CLOEXEC)};
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw stage_error(errno, "cannot write `{}`", path);
  }
}

/// Which mount `path` lies on.
std::uint64_t mount_of(const char* path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path, 0, STATX_MNT_ID, &status) != 0) {
    throw stage_error(errno, "cannot read `{}`", path);
  }
  return status.stx_mnt_id;
}

/// A new file system, mounted nowhere yet.
Fd new_mount(const char* type, std::initializer_list<std::pair<const char*, const char*>> options,
             unsigned attributes) {
  const Fd context{::fsopen(type, FSOPEN_CLOEXEC)};
  if (!context) throw stage_error(errno, "cannot make a `{}` file system", type);
  for (const auto& [key, value] : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value, 0) != 0) {
      throw stage_error(errno, "cannot set `{}` of a `{}` file system", key, type);
    }
  }
  Fd mount;
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0) {
    mount = Fd{::fsmount(context.get(), FSMOUNT_CLOEXEC, attributes)};
  }
  if (!mount) throw stage_error(errno, "cannot mount a `{}` file system", type);
  return mount;
}

void raise_loopback() {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (socket) (void)::ioctl(socket.get(), SIOCSIFFLAGS, &request);
}

void set_read_only(int folder, const char* path, unsigned flags) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(folder, path, flags, &attributes, sizeof attributes) != 0) {
    throw stage_error(errno, "cannot make a mount read-only");
  }
}

void change_root_by_pivot(const fs::path& root) {
  if (::mount(root.c_str(), root.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    throw stage_error(errno, "cannot mount `{}`", root.string());
  }
  if (::chdir(root.c_str()) != 0) throw stage_error(errno, "cannot enter `{}`", root.string());
  // pivot_root(2), "pivot_root(".", ".")": the old root lies on top of the new one and is let go.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) throw stage_error(errno, "cannot change the root");
  if (::umount2(".", MNT_DETACH) != 0) throw stage_error(errno, "cannot let go of the old root");
  if (::chdir("/") != 0) throw stage_error(errno, "cannot enter the new root");
}

}  // namespace

void enter_namespaces(bool network) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                (network ? 0 : CLONE_NEWNET)) != 0) {
    throw stage_error(errno, "cannot make a user namespace");
  }
  write_setting("/proc/self/setgroups", "deny");
  write_setting("/proc/self/uid_map", fmt::format("0 {} 1", uid));
  write_setting("/proc/self/gid_map", fmt::format("0 {} 1", gid));
}

fs::path stack(const Overlay& overlay) {
  if (::mount("", "/", nullptr, MS_PRIVATE | MS_REC, nullptr) != 0) {
    throw stage_error(errno, "cannot keep mounts from the host");
  }
  return mount_overlay(overlay);
}

Scaffold::Part Scaffold::clone(const std::string& source, std::string target, bool read_only) {
  Part part{
      Fd{::open_tree(AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)},
      std::move(target)};
  if (!part.tree) throw stage_error(errno, "cannot mount `{}`", source);
  if (read_only) set_read_only(part.tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE);
  return part;
}

/// All that comes from the host, or needs the host's /proc in sight (a new one may show no more
/// than one that is already there), in the order of attaching.
std::vector<Scaffold::Part> Scaffold::prepare(const SandboxCommand& command) {
  std::vector<Part> parts;
  constexpr unsigned kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  parts.push_back({new_mount("proc", {}, kQuiet), "/proc"});
  parts.push_back({new_mount("tmpfs", {{"mode", "0755"}}, MOUNT_ATTR_NOSUID), "/dev"});
  for (const Device& device : kDeviceNodes) {
    const std::string path = fmt::format("/dev/{}", device.name);
    if (::access(path.c_str(), F_OK) == 0) parts.push_back(clone(path, path, false));
  }
  parts.push_back(
      {new_mount("tmpfs", {{"mode", "1777"}}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV), "/dev/shm"});
  try {
    parts.push_back({new_mount("devpts", {{"ptmxmode", "0666"}, {"mode", "0620"}},
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
                     "/dev/pts"});
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): terminals are a convenience
  }
  for (const SandboxMount& mount : command.mounts) {
    parts.push_back(clone(mount.source.string(), mount.target, mount.read_only));
  }
  return parts;
}

void Scaffold::make_target(const std::string& target, bool folder) {
  for (std::size_t end = target.find('/', 1); end != std::string::npos;
       end = target.find('/', end + 1)) {
    const std::string parent = target.substr(0, end);
    if (::mkdir(parent.c_str(), 0755) == 0) note_made(parent);
  }
  if (folder) {
    if (::mkdir(target.c_str(), 0755) != 0) {
      if (errno == EEXIST) return;
      throw stage_error(errno, "cannot make the folder `{}`", target);
    }
  } else {
    const Fd file{::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (!file && errno == EEXIST) return;
    if (!file) throw stage_error(errno, "cannot make the file `{}`", target);
  }
  note_made(target);
}

/// What lies on one of the mounts goes with it, and is not the tree's.
void Scaffold::note_made(const std::string& path) {
  if (mount_of(path.c_str()) == mount_of("/")) made_.push_back(path);
}

void Scaffold::attach(const Part& part) {
  struct stat status {};
  if (::fstat(part.tree.get(), &status) != 0) throw stage_error(errno, "cannot read a mount");
  make_target(part.target, S_ISDIR(status.st_mode));
  if (::move_mount(part.tree.get(), "", AT_FDCWD, part.target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) !=
      0) {
    throw stage_error(errno, "cannot mount `{}`", part.target);
  }
}

/// Of /proc; there is no /sys.
void Scaffold::hide(const std::string& path) {
  struct stat status {};
  if (!path.starts_with("/proc/") || ::stat(path.c_str(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) return attach(clone("/dev/null", path, true));
  attach({new_mount("tmpfs", {{"mode", "0555"}},
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY),
          path});
}

void Scaffold::make_devices() {
  for (const Device& device : kDeviceNodes) {
    const std::string path = fmt::format("/dev/{}", device.name);
    if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(device.major, device.minor)) == 0) {
      (void)::chmod(path.c_str(), 0666);
      made_.push_back(path);
    } else if (errno != EEXIST) {
      throw stage_error(errno, "cannot make the device `{}`", path);
    }
  }
}

/// In memory: nothing of it is ever in the tree.
void Scaffold::place_secrets(const std::map<std::string, std::string>& secrets) {
  const std::string folder{kSecretsFolder};
  attach({new_mount("tmpfs", {{"mode", "0755"}},
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC),
          folder});
  for (const auto& [name, content] : secrets) {
    const std::string path = folder + "/" + name;
    const Fd file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400)};
    if (!file) throw stage_error(errno, "cannot make the file `{}`", path);
    write_all(file.get(), as_bytes(content));
  }
  set_read_only(AT_FDCWD, folder.c_str(), 0);
}

void Scaffold::build(const SandboxCommand& command, Way way) {
  if (way == Way::change_root) {
    if (!command.mounts.empty() || command.read_only_root || !command.secrets.empty()) {
      throw failure("sandbox-failed", "cannot set up the sandbox")
          .because("this container does not let its root mount anything");
    }
    proc_ = open_file("/proc", O_PATH | O_DIRECTORY);
    if (::chroot(command.root.c_str()) != 0 || ::chdir("/") != 0) {
      throw stage_error(errno, "cannot make `{}` the root", command.root.string());
    }
    if (::mkdir("/dev", 0755) == 0) made_.emplace_back("/dev");
    make_devices();
    return;
  }
  if (::mount("", "/", nullptr, MS_PRIVATE | MS_REC, nullptr) != 0) {
    throw stage_error(errno, "cannot keep mounts from the host");
  }
  const std::vector<Part> parts = prepare(command);
  limit_process_ids(parts.front().tree.get());
  change_root_by_pivot(command.root);
  for (const Part& part : parts) attach(part);
  for (const Link& link : kDeviceLinks) (void)::symlink(link.target, link.name);
  if (!command.secrets.empty()) place_secrets(command.secrets);
  // Writable to user 0 of the namespace where that is the host's root: settings of the whole
  // machine.
  for (const std::string_view path : read_only_paths()) {
    const std::string text{path};
    if (::access(text.c_str(), F_OK) == 0) attach(clone(text, text, true));
  }
  for (const std::string& path : hidden_paths()) hide(path);
  if (command.read_only_root) set_read_only(AT_FDCWD, "/", 0);
  if (::sethostname(command.hostname.data(), command.hostname.size()) != 0) {
    throw stage_error(errno, "cannot name the host");
  }
  (void)::setdomainname("(none)", 6);
  if (!command.network) raise_loopback();
  proc_ = open_file("/proc", O_PATH | O_DIRECTORY);
}

void Scaffold::remove() {
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) {
    // Mount points are busy as long as something is mounted on them here.
    (void)::umount2(path->c_str(), MNT_DETACH);
    // From outside, since the root may be read-only here.
    const fs::path entry{*path};
    const Fd parent =
        open_beneath(outside_, entry.parent_path().string(), O_PATH | O_DIRECTORY, Links::inside);
    if (!parent) continue;
    const std::string name = entry.filename().string();
    if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno == ENOTDIR) {
      (void)::unlinkat(parent.get(), name.c_str(), 0);
    }
  }
  made_.clear();
}

}  // namespace mlenv::sandbox
