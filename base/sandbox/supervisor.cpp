#include "base/sandbox/supervisor.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"

// Linux 6.6; absent from bookworm's headers.
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

namespace mlenv::sandbox {
namespace {

constexpr std::string_view kCapability = "security.capability";
constexpr std::string_view kAccess = "system.posix_acl_access";
constexpr std::string_view kDefaultAccess = "system.posix_acl_default";
constexpr std::size_t kAccessLimit = 65536;        // XATTR_SIZE_MAX
constexpr std::size_t kAttributeNameLimit = 256;   // XATTR_NAME_MAX and the NUL
constexpr std::size_t kCapabilityBytesLimit = 24;  // struct vfs_ns_cap_data

std::optional<std::uint32_t> given(std::uint64_t id) {
  const auto value = static_cast<std::uint32_t>(id);
  if (value == UINT32_MAX) return std::nullopt;
  return value;
}

/// `file` (O_PATH) and its status; 0 or an errno.
int open_place(const Place& place, Fd& file, struct stat& status) {
  if (const int error = place.open(file); error != 0) return error;
  return ::fstat(file.get(), &status) == 0 ? 0 : errno;
}

void change_mode(int proc, const Fd& file, mode_t mode) {
  const std::string name = fmt::format("self/fd/{}", file.get());
  (void)::fchmodat(proc, name.c_str(), mode, 0);
}

/// What chown(2) does to the mode: set-user-ID goes, and set-group-ID where the group may execute.
void clear_set_id(int proc, const Fd& file, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return;
  mode_t mode = status.st_mode & 07777;
  mode &= ~static_cast<mode_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<mode_t>(S_ISGID);
  if (mode != (status.st_mode & 07777)) change_mode(proc, file, mode);
}

/// Files that nobody has given away are root's: also those that belong to an id which the namespace
/// lacks (the host's devices, a group inherited from the folder).
Owner shown_owner(const FileRecord* known) { return known == nullptr ? Owner{} : known->owner; }

/// An entry of an access list as an attribute holds it (linux/posix_acl_xattr.h): little endian.
struct AccessEntry {
  std::uint16_t tag;
  std::uint16_t permissions;
  std::uint32_t id;
};
constexpr std::size_t kAccessHeaderBytes = 4;

/// The permission bits that go with a list that names users or groups; nullopt for one that does
/// not.
std::optional<mode_t> mode_of_named_list(ByteView value) {
  constexpr std::uint16_t kUser = 0x02;
  constexpr std::uint16_t kGroup = 0x08;
  mode_t mode = 0;
  bool named = false;
  for (std::size_t at = kAccessHeaderBytes; at + sizeof(AccessEntry) <= value.size();
       at += sizeof(AccessEntry)) {
    AccessEntry entry{};
    std::memcpy(&entry, value.data() + at, sizeof entry);
    const mode_t bits = entry.permissions & 7U;
    if (entry.tag == 0x01) mode |= bits << 6U;  // the owner
    if (entry.tag == 0x10) mode |= bits << 3U;  // the mask, which every named list has
    if (entry.tag == 0x20) mode |= bits;        // others
    named = named || entry.tag == kUser || entry.tag == kGroup;
  }
  if (!named) return std::nullopt;
  return mode;
}

}  // namespace

Supervisor::Supervisor(Fd listener, int proc, Ownership& ownership)
    : listener_(std::move(listener)), proc_(proc), ownership_(ownership), calls_(watched_calls()) {
  seccomp_notif_sizes sizes{};
  if (::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) {
    throw os_error(errno, "cannot supervise system calls");
  }
  received_.resize(std::max<std::size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)));
  response_.resize(std::max<std::size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
  // The answering and the asking side on one processor: half the time per call. Older kernels: no.
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
  struct stat status {};
  if (::stat("/", &status) == 0) root_ = id_of(status);
}

void Supervisor::serve() {
  std::ranges::fill(received_, std::byte{0});
  auto* call = reinterpret_cast<seccomp_notif*>(received_.data());
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, call) != 0) {
    if (errno == EINTR || errno == ENOENT) return;
    throw os_error(errno, "cannot receive a system call");
  }
  const Tracee tracee{listener_.get(), proc_, *call};
  const auto number = static_cast<std::size_t>(call->data.nr);
  const Answer answered = answer(tracee, number < calls_.size() ? calls_[number] : Call::none);

  std::ranges::fill(response_, std::byte{0});
  auto* response = reinterpret_cast<seccomp_notif_resp*>(response_.data());
  response->id = call->id;
  response->error = -answered.error;
  response->val = answered.value;
  response->flags = answered.proceed ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, response) != 0 && errno != ENOENT) {
    throw os_error(errno, "cannot answer a system call");
  }
}

Supervisor::Answer Supervisor::answer(const Tracee& tracee, Call call) {
  if (call == Call::chroot) {
    roots_differ_ = true;
    return proceed();
  }
  if (roots_differ_ && !follow_root(tracee)) return fail(ESRCH);
  switch (call) {
    case Call::chown:
    case Call::lchown:
    case Call::fchown:
    case Call::fchownat:
      return change_owner(tracee, call);
    case Call::stat:
    case Call::lstat:
    case Call::fstat:
    case Call::newfstatat:
      return show_status(tracee, call);
    case Call::statx:
      return show_statx(tracee);
    case Call::setxattr:
    case Call::lsetxattr:
    case Call::fsetxattr:
      return set_attribute(tracee, call);
    case Call::getxattr:
    case Call::lgetxattr:
    case Call::fgetxattr:
      return get_attribute(tracee, call);
    case Call::removexattr:
    case Call::lremovexattr:
    case Call::fremovexattr:
      return remove_attribute(tracee, call);
    default:
      return proceed();
  }
}

/// Makes the tracee's root ours, so that absolute paths and links mean the same to both.
bool Supervisor::follow_root(const Tracee& tracee) {
  const Fd root = tracee.root();
  struct stat status {};
  if (!root || ::fstat(root.get(), &status) != 0) return false;
  if (id_of(status) == root_) return true;
  if (::fchdir(root.get()) != 0 || ::chroot(".") != 0) return false;
  root_ = id_of(status);
  return true;
}

Supervisor::Answer Supervisor::change_owner(const Tracee& tracee, Call call) {
  Place place;
  int error = 0;
  std::size_t ids = 1;
  if (call == Call::fchown) {
    error = tracee.locate_descriptor(static_cast<int>(tracee.argument(0)), place);
  } else if (call == Call::fchownat) {
    const std::uint64_t flags = tracee.argument(4);
    place.follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    ids = 2;
    error = tracee.locate(static_cast<int>(tracee.argument(0)), tracee.argument(1),
                          (flags & AT_EMPTY_PATH) != 0, place);
  } else {
    place.follow = call == Call::chown;
    error = tracee.locate(AT_FDCWD, tracee.argument(0), false, place);
  }
  if (error != 0) return fail(error);
  Fd file;
  struct stat status {};
  error = open_place(place, file, status);
  if (error != 0) return fail(error);
  if (!tracee.waits()) return fail(ESRCH);
  clear_set_id(proc_, file, status);
  ownership_.change_owner(id_of(status), std::move(file), given(tracee.argument(ids)),
                          given(tracee.argument(ids + 1)));
  return {};
}

Supervisor::Answer Supervisor::show_status(const Tracee& tracee, Call call) {
  Place place;
  int error = 0;
  std::uint64_t buffer = tracee.argument(1);
  if (call == Call::fstat) {
    error = tracee.locate_descriptor(static_cast<int>(tracee.argument(0)), place);
  } else if (call == Call::newfstatat) {
    const std::uint64_t flags = tracee.argument(3);
    place.follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    buffer = tracee.argument(2);
    error = tracee.locate(static_cast<int>(tracee.argument(0)), tracee.argument(1),
                          (flags & AT_EMPTY_PATH) != 0, place);
  } else {
    place.follow = call == Call::stat;
    error = tracee.locate(AT_FDCWD, tracee.argument(0), false, place);
  }
  // Whatever is odd is left to the kernel, which then finds the right error.
  Fd file;
  struct stat status {};
  if (error != 0 || open_place(place, file, status) != 0) return proceed();
  const Owner owner = shown_owner(ownership_.find(id_of(status)));
  if (owner == Owner{status.st_uid, status.st_gid}) return proceed();
  status.st_uid = owner.uid;
  status.st_gid = owner.gid;
  // On 64-bit machines glibc's structure is the kernel's.
  const ByteView bytes = std::as_bytes(std::span(&status, 1));
  return tracee.write(buffer, bytes) ? Answer{} : fail(EFAULT);
}

Supervisor::Answer Supervisor::show_statx(const Tracee& tracee) {
  const auto flags = static_cast<int>(tracee.argument(2));
  Place place;
  place.follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  const int error = tracee.locate(static_cast<int>(tracee.argument(0)), tracee.argument(1),
                                  (flags & AT_EMPTY_PATH) != 0, place);
  Fd file;
  struct statx status {};
  const int kept = flags & (AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC);
  if (error != 0 || place.open(file) != 0 ||
      ::statx(file.get(), "", AT_EMPTY_PATH | kept,
              static_cast<unsigned>(tracee.argument(3)) | STATX_INO, &status) != 0) {
    return proceed();
  }
  const Owner owner = shown_owner(
      ownership_.find({::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino}));
  if (owner == Owner{status.stx_uid, status.stx_gid}) return proceed();
  status.stx_uid = owner.uid;
  status.stx_gid = owner.gid;
  const ByteView bytes = std::as_bytes(std::span(&status, 1));
  return tracee.write(tracee.argument(4), bytes) ? Answer{} : fail(EFAULT);
}

int Supervisor::locate_attribute(const Tracee& tracee, Call call, Place& place) {
  switch (call) {
    case Call::fsetxattr:
    case Call::fgetxattr:
    case Call::fremovexattr:
      return tracee.locate_descriptor(static_cast<int>(tracee.argument(0)), place);
    default:
      place.follow = call == Call::setxattr || call == Call::getxattr || call == Call::removexattr;
      return tracee.locate(AT_FDCWD, tracee.argument(0), false, place);
  }
}

Supervisor::Answer Supervisor::set_attribute(const Tracee& tracee, Call call) {
  std::array<char, kAttributeNameLimit> name{};
  if (!tracee.read_string(tracee.argument(1), name.data(), name.size())) return proceed();
  if (name.data() == kCapability) return set_capability(tracee, call);
  if (name.data() == kAccess) return set_access_list(tracee, call, false);
  if (name.data() == kDefaultAccess) return set_access_list(tracee, call, true);
  return proceed();
}

/// The kernel refuses a list that names users or groups which the namespace lacks (EINVAL). Layers
/// do not carry lists anyway, so of such a one only the mode that comes with it is kept (acl(5)).
Supervisor::Answer Supervisor::set_access_list(const Tracee& tracee, Call call, bool of_new_files) {
  Bytes value(static_cast<std::size_t>(std::min<std::uint64_t>(tracee.argument(3), kAccessLimit)));
  if (!tracee.read(tracee.argument(2), value)) return proceed();
  const std::optional<mode_t> mode = mode_of_named_list(value);
  if (!mode) return proceed();
  if (of_new_files) return {};
  Place place;
  Fd file;
  struct stat status {};
  int error = locate_attribute(tracee, call, place);
  if (error == 0) error = open_place(place, file, status);
  if (error != 0) return fail(error);
  change_mode(proc_, file, (status.st_mode & 07000U) | *mode);
  return {};
}

Supervisor::Answer Supervisor::set_capability(const Tracee& tracee, Call call) {
  const std::uint64_t size = tracee.argument(3);
  if (size == 0 || size > kCapabilityBytesLimit) return fail(EINVAL);
  std::string value(static_cast<std::size_t>(size), '\0');
  Place place;
  Fd file;
  struct stat status {};
  int error = locate_attribute(tracee, call, place);
  if (error == 0) error = open_place(place, file, status);
  if (error != 0) return fail(error);
  if (!tracee.read(tracee.argument(2), std::as_writable_bytes(std::span(value)))) {
    return fail(EFAULT);
  }
  ownership_.set_capability(id_of(status), std::move(file), std::move(value));
  return {};
}

Supervisor::Answer Supervisor::get_attribute(const Tracee& tracee, Call call) {
  std::array<char, kAttributeNameLimit> name{};
  if (!tracee.read_string(tracee.argument(1), name.data(), name.size())) return proceed();
  if (name.data() != kCapability) return proceed();
  Place place;
  Fd file;
  struct stat status {};
  if (locate_attribute(tracee, call, place) != 0 || open_place(place, file, status) != 0) {
    return proceed();
  }
  const FileRecord* known = ownership_.find(id_of(status));
  if (known == nullptr || known->capability.empty()) return proceed();
  const std::string& value = known->capability;
  const std::uint64_t room = tracee.argument(3);
  if (room != 0 && room < value.size()) return fail(ERANGE);
  if (room != 0 && !tracee.write(tracee.argument(2), as_bytes(value))) return fail(EFAULT);
  return {0, static_cast<std::int64_t>(value.size()), false};
}

Supervisor::Answer Supervisor::remove_attribute(const Tracee& tracee, Call call) {
  std::array<char, kAttributeNameLimit> name{};
  if (!tracee.read_string(tracee.argument(1), name.data(), name.size())) return proceed();
  if (name.data() != kCapability) return proceed();
  Place place;
  Fd file;
  struct stat status {};
  int error = locate_attribute(tracee, call, place);
  if (error == 0) error = open_place(place, file, status);
  if (error != 0) return fail(error);
  return ownership_.remove_capability(id_of(status)) ? Answer{} : fail(ENODATA);
}

}  // namespace mlenv::sandbox
