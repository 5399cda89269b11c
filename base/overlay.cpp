#include "base/overlay.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMaxString = 255;    // fsconfig(2): a value and its NUL take 256 bytes
constexpr std::size_t kMaxOptions = 4095;  // mount(2): one page with its NUL

struct MountRefusal {
  int error = 0;
  std::string detail;  ///< the kernel's own words; may be empty
};

void make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    throw os_error(errno, "cannot make the folder `{}`", path.string());
  }
}

std::string short_name(std::size_t index) { return "l/" + std::to_string(index); }

/// `l/N` leads to the Nth tree; overlayfs follows links when it mounts.
void link_short_name(const Overlay& overlay, std::size_t index) {
  make_folder(overlay.folder / "l");
  const fs::path link = overlay.folder / short_name(index);
  if (::symlink(overlay.lowers[index].c_str(), link.c_str()) != 0 && errno != EEXIST) {
    throw os_error(errno, "cannot make the link `{}`", link.string());
  }
}

/// The messages that the kernel kept for this file system context, one after another.
std::string kernel_words(int context) {
  std::string words;
  std::array<char, 512> message{};
  while (true) {
    const ssize_t count = ::read(context, message.data(), message.size());
    if (count <= 0) return words;
    std::string_view line{message.data(), static_cast<std::size_t>(count)};
    if (line.size() > 2 && line[1] == ' ') line.remove_prefix(2);  // `e `, `w `, `i `
    while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    if (!words.empty()) words += "; ";
    words += line;
  }
}

class Context {
 public:
  Context() : fd_(::fsopen("overlay", FSOPEN_CLOEXEC)) {
    if (!fd_) refuse();
  }
  void set(const char* key, const char* value) {
    if (!refusal_ && ::fsconfig(fd_.get(), FSCONFIG_SET_STRING, key, value, 0) != 0) refuse();
  }
  void set(const char* flag) {
    if (!refusal_ && ::fsconfig(fd_.get(), FSCONFIG_SET_FLAG, flag, nullptr, 0) != 0) refuse();
  }
  std::optional<MountRefusal> mount_at(const char* target) {
    if (!refusal_ && ::fsconfig(fd_.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) refuse();
    if (refusal_) return refusal_;
    const Fd mount{::fsmount(fd_.get(), FSMOUNT_CLOEXEC, 0)};
    if (!mount || ::move_mount(mount.get(), "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
      refuse();
    }
    return refusal_;
  }

 private:
  void refuse() {
    const int error = errno;
    refusal_ = MountRefusal{error, fd_ ? kernel_words(fd_.get()) : ""};
  }
  Fd fd_;
  std::optional<MountRefusal> refusal_;
};

std::optional<MountRefusal> mount_appending(const Overlay& overlay) {
  Context context;
  context.set("source", "overlay");
  for (std::size_t i = overlay.lowers.size(); i-- > 0;) {  // the top one first
    const std::string& path = overlay.lowers[i].native();
    if (path.size() > kMaxString) link_short_name(overlay, i);
    context.set("lowerdir+", path.size() > kMaxString ? short_name(i).c_str() : path.c_str());
  }
  context.set("upperdir", "upper");
  context.set("workdir", "work");
  context.set("index", "off");
  if (!overlay.lasting) context.set("volatile");
  if (overlay.user_xattr) context.set("userxattr");
  return context.mount_at("root");
}

std::optional<MountRefusal> mount_with_short_names(const Overlay& overlay) {
  std::string options = "lowerdir=";
  for (std::size_t i = overlay.lowers.size(); i-- > 0;) {
    link_short_name(overlay, i);
    options += short_name(i) + (i > 0 ? ":" : "");
  }
  options += ",upperdir=upper,workdir=work,index=off";
  if (!overlay.lasting) options += ",volatile";
  if (overlay.user_xattr) options += ",userxattr";
  if (options.size() > kMaxOptions) return MountRefusal{E2BIG, "too many layers for mount(2)"};
  if (::mount("overlay", "root", "overlay", 0, options.c_str()) == 0) return std::nullopt;
  return MountRefusal{errno, ""};
}

Error no_overlay(const Overlay& overlay, const MountRefusal& refusal) {
  Error error = failure("no-overlay", "cannot stack the image's {} layers on `{}`",
                        overlay.lowers.size(), overlay.folder.string());
  std::string cause = errno_text(refusal.error);
  if (!refusal.detail.empty()) cause += " (" + refusal.detail + ")";
  error.because("overlayfs refused: " + cause);
  switch (refusal.error) {
    case ENODEV:
      return std::move(error).hint("load the kernel's overlay module: `modprobe overlay` as root");
    case EPERM:
    case EACCES:
      return std::move(error).hint(
          "as an ordinary user this needs Linux 5.11 or newer; run as root where it is older");
    default:
      return std::move(error).hint(
          "set MLENV_STORE to a folder on a local disk (ext4, xfs, btrfs): network file systems "
          "and "
          "folders inside another container's overlay cannot hold the writable layer");
  }
}

/// Overlayfs takes no folder twice; of equal layers the topmost decides.
Overlay without_repeats(const Overlay& wanted) {
  Overlay overlay = wanted;
  overlay.lowers.clear();
  for (std::size_t i = 0; i < wanted.lowers.size(); ++i) {
    const auto above = wanted.lowers.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool repeated =
        std::find(above, wanted.lowers.end(), wanted.lowers[i]) != wanted.lowers.end();
    if (!repeated) overlay.lowers.push_back(wanted.lowers[i]);
  }
  return overlay;
}

}  // namespace

fs::path mount_overlay(const Overlay& wanted) {
  const Overlay overlay = without_repeats(wanted);
  if (overlay.lowers.size() > kMaxLowers) {
    throw failure("no-overlay", "the image has {} layers, overlayfs takes {}",
                  overlay.lowers.size(), kMaxLowers);
  }
  for (const char* name : {"upper", "work", "root"}) make_folder(overlay.folder / name);
  if (::chdir(overlay.folder.c_str()) != 0) {
    throw os_error(errno, "cannot enter `{}`", overlay.folder.string());
  }
  std::optional<MountRefusal> refusal;
  if (overlay.method != OverlayMethod::short_names) refusal = mount_appending(overlay);
  // Kernels before 6.7 answer `lowerdir+` with EINVAL; mount(2) has the last word on what is wrong.
  if (overlay.method == OverlayMethod::short_names ||
      (overlay.method == OverlayMethod::automatic && refusal)) {
    if (refusal) log::debug("overlay by fsconfig: {} {}", refusal->error, refusal->detail);
    const std::string words = refusal ? refusal->detail : "";
    refusal = mount_with_short_names(overlay);
    if (refusal && refusal->detail.empty()) refusal->detail = words;
  }
  if (refusal) throw no_overlay(overlay, *refusal);
  return overlay.folder / "root";
}

}  // namespace mlenv
