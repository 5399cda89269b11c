#include "runner/engine/mount_points.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>

#include "base/error.hpp"
#include "base/paths.hpp"

namespace mlenv {
namespace {

/// What is in a place: a mount, or a folder in memory (nullptr).
using Places = std::map<std::string, const Mount*>;
using PathParts = std::deque<fs::path>;

constexpr mode_t kLayerFolderMode = 0755;
constexpr mode_t kLayerFileMode = 0644;
constexpr int kMostSymlinks = 40;  // as the kernel has it

/// The innermost one around `path` that is not at `except`.
Places::const_iterator around(const Places& places, const std::string& path,
                              const std::string& except) {
  auto best = places.end();
  for (auto one = places.begin(); one != places.end(); ++one) {
    if (one->first == except || !is_beneath(path, one->first)) continue;
    if (best == places.end() || one->first.size() > best->first.size()) best = one;
  }
  return best;
}

/// Owner and mode of a folder of `source` that the layer's `name` will be seen in the place of.
void give_owner_and_mode(const fs::path& source, int folder, const fs::path& name) {
  struct stat status {};
  if (::lstat(source.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  const Fd made{::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  (void)!::fchown(made.get(), status.st_uid, status.st_gid);  // other ids may not exist here
  (void)!::fchmod(made.get(), status.st_mode & static_cast<mode_t>(~S_IFMT));
}

/// Folders and at the end what is to be mounted on, below `source`, or in the layer over it. No
/// link is followed: there was none when we looked.
void make_beneath(const fs::path& source, const fs::path& layer, const fs::path& below,
                  bool is_folder) {
  const bool is_layered = !layer.empty();
  Fd at = open_file(is_layered ? layer : source, O_PATH | O_DIRECTORY);
  fs::path lower = source;
  const fs::path name = below.filename();
  const auto failed = [&] {
    return os_error(errno, "cannot make the mount point `{}`", (source / below).string());
  };
  for (const fs::path& part : below.parent_path()) {
    lower /= part;
    const bool is_new = ::mkdirat(at.get(), part.c_str(), kLayerFolderMode) == 0;
    if (!is_new && errno != EEXIST) throw failed();
    if (is_new && is_layered) give_owner_and_mode(lower, at.get(), part);
    Fd next{::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next) throw failed();
    at = std::move(next);
  }
  if (is_folder) {
    if (::mkdirat(at.get(), name.c_str(), kLayerFolderMode) != 0 && errno != EEXIST) throw failed();
    return;
  }
  const Fd file{::openat(at.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kLayerFileMode)};
  if (!file && errno != EEXIST) throw failed();
}

/// Goes the way of `target` as the container's kernel will.
class Way {
 public:
  Way(const Places& places, const std::string& target) : places_(places), target_(target) {
    const fs::path relative = fs::path(target).relative_path();
    rest_.assign(relative.begin(), relative.end());
  }

  /// Where it ends in a mount's source, and what is absent there; false: it is all there, or not
  /// ours to make.
  bool ends_in_a_mount() {
    while (!rest_.empty()) {
      const fs::path part = rest_.front();
      rest_.pop_front();
      if (part == "..") {
        at_ = at_.parent_path();
      } else if (part != "." && !part.empty() && !enter(part)) {
        return mount_ != nullptr;
      }
    }
    return false;
  }
  const Mount& mount() const { return *mount_; }
  /// Relative to the mount's source.
  const fs::path& absent() const { return absent_; }

 private:
  /// False: no further.
  bool enter(const fs::path& part) {
    const fs::path next = at_ / part;
    const auto place = around(places_, next.string(), target_);
    if (place == places_.end()) {  // the image's own files, which are not looked at
      at_ = next;
      return true;
    }
    if (place->second == nullptr) return false;  // in memory a runtime may make what it wants
    if (next == place->first) {
      at_ = next;
      return true;
    }
    const fs::path below = next.lexically_relative(place->first);
    const fs::path host = place->second->source / below;
    struct stat status {};
    if (::lstat(host.c_str(), &status) != 0) {
      if (errno != ENOENT) return false;
      return found(*place->second, below);
    }
    if (S_ISLNK(status.st_mode)) return follow(host);
    at_ = next;
    return S_ISDIR(status.st_mode);
  }

  bool follow(const fs::path& link) {
    std::error_code error;
    const fs::path leads_to = fs::read_symlink(link, error);
    if (error || ++links_ > kMostSymlinks) return false;
    if (leads_to.is_absolute()) at_ = "/";
    const fs::path relative = leads_to.relative_path();
    rest_.insert(rest_.begin(), relative.begin(), relative.end());
    return true;
  }

  bool found(const Mount& mount, fs::path below) {
    for (const fs::path& part : rest_) {
      if (part == "..") return false;  // of a link that leads nowhere
      if (!part.empty() && part != ".") below /= part;
    }
    mount_ = &mount;
    absent_ = std::move(below);
    return false;
  }

  const Places& places_;
  const std::string& target_;
  fs::path at_ = "/";
  PathParts rest_;
  int links_ = 0;
  const Mount* mount_ = nullptr;
  fs::path absent_;
};

}  // namespace

void make_mount_points(const EngineContainer& container, const std::vector<std::string>& memory) {
  Places places;
  for (const std::string& target : memory) places[target] = nullptr;
  for (const Mount& mount : container.mounts) places[mount.target] = &mount;
  for (const auto& [target, mount] : places) {
    Way way{places, target};
    if (!way.ends_in_a_mount()) continue;
    if (way.mount().read_only) {
      throw usage_error("bad-mount", "cannot mount `{}` at `{}`",
                        mount == nullptr ? "a folder in memory" : mount->source.string(), target)
          .because(fmt::format("there is no `{}`, and `{}` is mounted read-only", target,
                               way.mount().target))
          .hint("make the target on the host first, or leave `:ro` out");
    }
    std::error_code error;
    const auto layer = container.layers.find(way.mount().target);
    make_beneath(way.mount().source,
                 layer == container.layers.end() ? fs::path{} : layer->second.upper, way.absent(),
                 mount == nullptr || fs::is_directory(mount->source, error));
  }
}

}  // namespace mlenv
