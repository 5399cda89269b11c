#include "runner/local/job_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/paths.hpp"

namespace mlenv {
namespace {

using Program = ImageRoot::Program;

constexpr int kMaxLinks = 40;            // as the kernel (path_resolution(7))
constexpr std::size_t kHeadBytes = 256;  // what the kernel reads of a program (BINPRM_BUF_SIZE)

/// What is open there, whatever has its name by now.
Program host_program(const Fd& fd) {
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return Program::absent;
  return S_ISREG(status.st_mode) && ::access(descriptor_path(fd).c_str(), X_OK) == 0
             ? Program::found
             : Program::not_executable;
}

std::optional<std::string> host_head(const Fd& fd) {
  std::string head(kHeadBytes, '\0');
  const ssize_t count = fd ? ::read(fd.get(), head.data(), head.size()) : -1;
  if (count < 0) return std::nullopt;
  head.resize(static_cast<std::size_t>(count));
  return head;
}

JobFiles::Kind host_kind(const Fd& fd) {
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return JobFiles::Kind::absent;
  return S_ISDIR(status.st_mode) ? JobFiles::Kind::folder : JobFiles::Kind::other;
}

}  // namespace

Program JobFiles::program(const std::string& path) const {
  const std::optional<std::string> real = real_path(path);
  if (!real) return Program::absent;
  if (mount_of(*real) != nullptr) return host_program(open_on_host(*real, O_PATH));
  return is_hidden(*real) ? Program::found : image_.program(*real);
}

std::optional<std::string> JobFiles::head(const std::string& path) const {
  const std::optional<std::string> real = real_path(path);
  if (!real) return std::nullopt;
  if (mount_of(*real) != nullptr) return host_head(open_on_host(*real, O_RDONLY | O_NONBLOCK));
  return is_hidden(*real) ? std::nullopt : image_.read(*real, kHeadBytes);
}

JobFiles::Kind JobFiles::kind(const std::string& path) const {
  const std::optional<std::string> real = real_path(path);
  if (!real) return Kind::unseen;
  if (mount_of(*real) != nullptr) return host_kind(open_on_host(*real, O_PATH));
  if (is_hidden(*real)) return Kind::unseen;
  if (!image_.exists(*real)) return Kind::absent;
  return image_.is_folder(*real) ? Kind::folder : Kind::other;
}

std::optional<fs::path> JobFiles::on_host(const std::string& path) const {
  const std::optional<std::string> real = real_path(path);
  return real ? host_path(*real) : std::nullopt;
}

std::optional<std::string> JobFiles::real_path(const std::string& path) const {
  fs::path real = "/";
  fs::path rest = fs::path(bundle_.workdir) / path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    if (rest.is_absolute()) real = "/";
    const std::optional<fs::path> linked = follow(real, rest.relative_path());
    if (!linked) return real.string();
    rest = *linked;
  }
  return std::nullopt;
}

/// Walks `rest` from `real` up to the first link and answers with its target and what comes after;
/// nullopt at the end.
std::optional<fs::path> JobFiles::follow(fs::path& real, const fs::path& rest) const {
  for (auto name = rest.begin(); name != rest.end(); ++name) {
    if (name->empty() || *name == ".") continue;
    if (*name == "..") {
      real = real.parent_path();
    } else if (const auto target = link((real / *name).string())) {
      fs::path linked = *target;
      while (++name != rest.end()) linked /= *name;
      return linked;
    } else {
      real /= *name;
    }
  }
  return std::nullopt;
}

std::optional<std::string> JobFiles::link(const std::string& path) const {
  const Mount* const mount = mount_of(path);
  if (mount == nullptr) return is_hidden(path) ? std::nullopt : image_.link(path);
  // What is mounted is never a link, even if its source on the host is.
  if (path == mount->target) return std::nullopt;
  const Fd fd = open_on_host(path, O_PATH | O_NOFOLLOW);
  return fd ? link_at(fd.get(), "") : std::nullopt;
}

/// A real path in a mount, which programs may change meanwhile: no link is followed, but what the
/// person named as the mount's source.
Fd JobFiles::open_on_host(const std::string& path, int flags) const {
  const Mount& mount = *mount_of(path);
  const std::string below = fs::path(path).lexically_relative(mount.target).string();
  if (below == ".") return Fd{::open(mount.source.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC)};
  const Fd source{::open(mount.source.c_str(), O_PATH | O_CLOEXEC)};
  return source ? open_beneath(source.get(), below, flags, Links::none) : Fd{};
}

/// The mount that holds `path`; the deepest one wins.
const Mount* JobFiles::mount_over(const std::string& path) const {
  const Mount* best = nullptr;
  for (const Mount& mount : bundle_.mounts) {
    if (!is_beneath(path, mount.target)) continue;
    if (best == nullptr || mount.target.size() >= best->target.size()) best = &mount;
  }
  return best;
}

/// A file system of the container's own in a mount hides what the mount shows there.
const Mount* JobFiles::mount_of(const std::string& real) const {
  const Mount* const mount = mount_over(real);
  if (mount == nullptr) return nullptr;
  const bool is_covered =
      std::any_of(hidden_.begin(), hidden_.end(), [&](const std::string& target) {
        return is_beneath(real, target) && target.size() > mount->target.size();
      });
  return is_covered ? nullptr : mount;
}

std::optional<fs::path> JobFiles::host_path(const std::string& path) const {
  const Mount* const mount = mount_of(path);
  if (mount == nullptr) return std::nullopt;
  const fs::path below = fs::path(path).lexically_relative(mount->target);
  return below == "." ? mount->source : mount->source / below;
}

/// Beneath a default mount, which is not there yet.
bool JobFiles::is_hidden(const std::string& path) const {
  return std::any_of(hidden_.begin(), hidden_.end(),
                     [&](const std::string& target) { return is_beneath(path, target); });
}

}  // namespace mlenv
