#include "images/tree_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr std::uint32_t kSpecialBits = 07000;
/// Of a deep tree the innermost: each is a descriptor.
constexpr std::size_t kOpenFolders = 32;
constexpr std::string_view kUmaskLabel = "\nUmask:\t";

/// Read from /proc: umask(2) can only be read by changing it, for all threads. Unknown: all bits,
/// so that modes are always set.
std::uint32_t process_umask() {
  const std::string status = read_file_if_exists("/proc/self/status").value_or("");
  const std::size_t at = status.find(kUmaskLabel);
  std::uint32_t mask = 07777;
  if (at == std::string::npos) return mask;
  const char* begin = status.data() + at + kUmaskLabel.size();
  (void)std::from_chars(begin, status.data() + status.size(), mask, 8);
  return mask;
}

std::array<timespec, 2> times_of(std::int64_t mtime) {
  const timespec time{static_cast<time_t>(mtime), 0};
  return {time, time};
}

[[noreturn]] void fail_at(int error, std::string_view path) {
  if (error == EXDEV || error == ELOOP) {
    throw failure("bad-layer", "the path `{}` leads out of the layer through a link", path);
  }
  if (error == ENOTDIR) {
    throw failure("bad-layer", "a parent of `{}` is not a folder", path);
  }
  throw os_error(error, "cannot make `{}`", path);
}

/// True where a failure to set owners or attributes means only that we may not.
bool is_forbidden(int error) {
  return error == EPERM || error == EINVAL || error == EACCES || error == ENOTSUP;
}

}  // namespace

TreeWriter::TreeWriter(const fs::path& root)
    : root_(root),
      root_fd_(open_file(root, O_RDONLY | O_DIRECTORY)),
      umask_(process_umask()),
      uid_(::geteuid()),
      gid_(::getegid()),
      owners_(uid_ == 0) {
  struct stat status {};
  if (::fstat(root_fd_.get(), &status) != 0)
    throw os_error(errno, "cannot read `{}`", root.string());
  inherits_ = (status.st_mode & S_ISGID) != 0;
  if (inherits_) umask_ = 07777;
}

TreeWriter::~TreeWriter() = default;

Fd TreeWriter::find_folder(std::string_view path) const {
  const std::string text{path};
  if (!open_.empty()) {
    const OpenFolder& top = open_.back();
    const bool below =
        path.size() > top.path.size() && path.starts_with(top.path) && path[top.path.size()] == '/';
    if (below) {
      Fd fd{open_beneath(top.fd.get(), text.substr(top.path.size() + 1))};
      // A link with `..` may leave `top` and stay beneath the root.
      if (fd || errno != EXDEV) return fd;
    }
  }
  return Fd{open_beneath(root_fd_.get(), text)};
}

Fd TreeWriter::make_folder(std::string_view path) {
  Fd fd = find_folder(path);
  if (fd) return fd;
  if (errno != ENOENT) fail_at(errno, path);
  // From the outermost one that is missing.
  for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    const std::string_view part = path.substr(0, slash);
    if (slash == std::string_view::npos || !find_folder(part)) add_folder(part, {.mode = 0755});
    if (slash == std::string_view::npos) break;
  }
  fd = find_folder(path);
  if (!fd) fail_at(errno, path);
  return fd;
}

int TreeWriter::open_folder(std::string_view path) {
  if (path.empty()) return root_fd_.get();
  const auto holds = [&](const OpenFolder& folder) {
    return path == folder.path ||
           (path.size() > folder.path.size() && path.starts_with(folder.path) &&
            path[folder.path.size()] == '/');
  };
  while (!open_.empty() && !holds(open_.back())) open_.pop_back();
  if (open_.empty() || open_.back().path != path) {
    // Making parents uses this stack too: open first, then push.
    Fd fd = make_folder(path);
    if (open_.size() >= kOpenFolders) open_.erase(open_.begin());
    open_.push_back({std::string(path), std::move(fd)});
  }
  return open_.back().fd.get();
}

TreeWriter::Parent TreeWriter::parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {root_fd_.get(), std::string(path)};
  return {open_folder(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

/// What was a folder is about to be replaced: nothing of it may be settled in `finish`.
void TreeWriter::forget_folder(std::string_view path) {
  open_.clear();
  folders_.erase(std::string(path));
  const std::string below = std::string(path) + "/";
  auto folder = folders_.lower_bound(below);
  while (folder != folders_.end() && folder->first.starts_with(below))
    folder = folders_.erase(folder);
}

/// `make(parent)` returns a system call's result; what is in the way is removed first.
template <typename Make>
void TreeWriter::make_entry(std::string_view path, Make&& make) {
  check_layer_path(path);
  if (path == ".") throw failure("bad-layer", "the layer's root is not a folder");
  Parent at = parent_of(path);
  if (make(at) >= 0) return;
  if (errno == EEXIST) {
    forget_folder(path);
    at = parent_of(path);
    remove_tree_at(at.fd, at.name);
    if (make(at) >= 0) return;
  }
  fail_at(errno, path);
}

bool TreeWriter::make_directory(const Parent& at, std::uint32_t mode) {
  // Special bits wait for finish: a setgid folder would hand its group on.
  return ::mkdirat(at.fd, at.name.c_str(), (mode & 0777) | 0700) == 0;
}

void TreeWriter::add_folder(std::string_view path, const Attributes& attributes) {
  check_layer_path(path);
  if (path != ".") {
    const Parent at = parent_of(path);
    if (!make_directory(at, attributes.mode)) {
      if (errno != EEXIST) fail_at(errno, path);
      meet_folder(path, at, attributes);
    }
  }
  folders_.insert_or_assign(std::string(path), attributes);
}

/// Something is there already.
void TreeWriter::meet_folder(std::string_view path, const Parent& at,
                             const Attributes& attributes) {
  struct stat status {};
  const int found = ::fstatat(at.fd, at.name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  if (found == 0 && S_ISDIR(status.st_mode)) {
    // As if it had been made with these bits.
    if (::fchmodat(at.fd, at.name.c_str(), (attributes.mode & 0777) | 0700, 0) != 0) {
      fail_at(errno, path);
    }
    return;
  }
  make_entry(
      path, [&](const Parent& parent) { return make_directory(parent, attributes.mode) ? 0 : -1; });
  // A whiteout and a folder of one name in one layer: the folder hides what is below.
  if (found == 0 && is_whiteout(status)) mark_opaque(path);
}

void TreeWriter::begin_file(std::string_view path, const Attributes& attributes,
                            std::uint64_t size_bytes) {
  make_entry(path, [&](const Parent& at) {
    file_ =
        Fd{::openat(at.fd, at.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    attributes.mode & 0777)};
    return file_.get();
  });
  file_path_ = path;
  try {
    reserve_room(file_.get(), size_bytes);
  } catch (Error& error) {
    error.while_doing(writing());
    throw;
  }
  file_attributes_ = attributes;
}

std::string TreeWriter::writing() const {
  return "writing `" + (root_ / file_path_).string() + "`";
}

void TreeWriter::write(ByteView data) {
  try {
    write_all(file_.get(), data);
  } catch (Error& error) {
    error.while_doing(writing());
    throw;
  }
}

void TreeWriter::end_file() {
  const Attributes& attributes = file_attributes_;
  // Owner before mode: chown clears setuid and setgid.
  set_owner(file_.get(), "", attributes);
  if ((attributes.mode & (umask_ | kSpecialBits)) != 0 &&
      ::fchmod(file_.get(), attributes.mode & 07777) != 0) {
    throw os_error(errno, "cannot set the mode of `{}`", file_path_);
  }
  if (::futimens(file_.get(), times_of(attributes.mtime).data()) != 0) {
    throw os_error(errno, "cannot set the time of `{}`", file_path_);
  }
  file_.close_checked(file_path_);
}

void TreeWriter::add_file(std::string_view path, const Attributes& attributes, ByteView content) {
  begin_file(path, attributes, content.size());
  write(content);
  end_file();
}

void TreeWriter::set_owner(int folder_fd, const char* name, const Attributes& attributes) {
  if (!owners_) return;
  if (!inherits_ && attributes.uid == uid_ && attributes.gid == gid_) return;
  if (::fchownat(folder_fd, name, static_cast<uid_t>(attributes.uid),
                 static_cast<gid_t>(attributes.gid), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0) {
    return;
  }
  // EINVAL: an id that our user namespace does not map. EPERM: no CAP_CHOWN.
  if (!is_forbidden(errno)) throw os_error(errno, "cannot set the owner in `{}`", root_.string());
}

void TreeWriter::add_symlink(std::string_view path, std::string_view target,
                             const Attributes& attributes) {
  const std::string text{target};
  make_entry(path, [&](const Parent& at) {
    if (::symlinkat(text.c_str(), at.fd, at.name.c_str()) != 0) return -1;
    set_owner(at.fd, at.name.c_str(), attributes);
    (void)::utimensat(at.fd, at.name.c_str(), times_of(attributes.mtime).data(),
                      AT_SYMLINK_NOFOLLOW);
    return 0;
  });
}

void TreeWriter::add_hardlink(std::string_view path, std::string_view target) {
  check_layer_path(target);
  if (path == target) return;
  const std::size_t slash = target.rfind('/');
  const std::string name{slash == std::string_view::npos ? target : target.substr(slash + 1)};
  make_entry(path, [&](const Parent& at) {
    Fd folder;
    if (slash != std::string_view::npos) folder = find_folder(target.substr(0, slash));
    if (slash != std::string_view::npos && !folder) return -1;
    const int from = folder ? folder.get() : root_fd_.get();
    if (::linkat(from, name.c_str(), at.fd, at.name.c_str(), 0) == 0) return 0;
    if (errno == ENOENT) {
      throw failure("bad-layer", "`{}` is a hard link to `{}`, which is not in the layer", path,
                    target);
    }
    return -1;
  });
}

void TreeWriter::add_node(const TarEntry& entry) {
  const bool fifo = entry.type == TarEntry::Type::fifo;
  if (!fifo && !owners_) return;
  const mode_t kind = fifo                                        ? S_IFIFO
                      : entry.type == TarEntry::Type::char_device ? S_IFCHR
                                                                  : S_IFBLK;
  const dev_t device = fifo ? 0 : ::makedev(entry.device_major, entry.device_minor);
  const Attributes attributes{entry.mode, entry.uid, entry.gid, entry.mtime};
  make_entry(entry.path, [&](const Parent& at) {
    if (::mknodat(at.fd, at.name.c_str(), kind | (entry.mode & 0777), device) != 0) {
      return errno == EPERM ? 0 : -1;
    }
    set_owner(at.fd, at.name.c_str(), attributes);
    (void)::fchmodat(at.fd, at.name.c_str(), entry.mode & 07777, 0);
    (void)::utimensat(at.fd, at.name.c_str(), times_of(entry.mtime).data(), AT_SYMLINK_NOFOLLOW);
    return 0;
  });
}

void TreeWriter::add_whiteout(std::string_view path) {
  bool hides_by_itself = false;
  make_entry(path, [&](const Parent& at) {
    if (::mknodat(at.fd, at.name.c_str(), S_IFCHR, ::makedev(0, 0)) == 0) return 0;
    // A whiteout says nothing of its own layer's entry at that path: that one stays.
    hides_by_itself = errno == EEXIST;
    return hides_by_itself ? 0 : -1;
  });
  if (hides_by_itself && folders_.contains(std::string(path))) mark_opaque(path);
}

void TreeWriter::settle_folder(const std::string& path, const Attributes& attributes) {
  Fd fd = path == "." ? Fd{::openat(root_fd_.get(), ".", kFolderFlags)} : find_folder(path);
  if (!fd) return;
  set_owner(fd.get(), "", attributes);
  const bool given = (attributes.mode & (umask_ | kSpecialBits)) == 0 &&
                     (attributes.mode & 0700) == 0700 && path != ".";
  if (!given && ::fchmod(fd.get(), attributes.mode & 07777) != 0) {
    throw os_error(errno, "cannot set the mode of `{}`", path);
  }
  if (::futimens(fd.get(), times_of(attributes.mtime).data()) != 0) {
    throw os_error(errno, "cannot set the time of `{}`", path);
  }
}

void TreeWriter::finish() {
  open_.clear();
  // Children first: an ordinary user cannot enter a folder whose mode forbids it.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    if (folder->first != ".") settle_folder(folder->first, folder->second);
  }
  if (const auto root = folders_.find("."); root != folders_.end())
    settle_folder(".", root->second);
  folders_.clear();
}

}  // namespace mlenv
