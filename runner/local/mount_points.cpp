#include "runner/local/mount_points.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

constexpr mode_t kPointFolderMode = 0755;
constexpr mode_t kPointFileMode = 0644;

struct Point {
  std::string target;
  bool is_file = false;
  mode_t mode = kPointFolderMode;
};

bool is_file_source(const fs::path& source) {
  std::error_code error;
  return fs::exists(source, error) && !fs::is_directory(source, error);
}

/// That of a folder in memory, which runc has from the folder that it covers: the one that is asked
/// for, else as runtimes give it where there is none to cover.
mode_t mount_point_mode(const CdiMount& one) {
  constexpr mode_t kUsual = 01777;
  constexpr int kOctal = 8;
  constexpr std::string_view kMode = "mode=";
  if (one.type != "tmpfs") return kPointFolderMode;
  for (const std::string& word : one.options) {
    mode_t mode = 0;
    const char* const end = word.data() + word.size();
    if (word.starts_with(kMode) &&
        std::from_chars(word.data() + kMode.size(), end, mode, kOctal).ptr == end) {
      return mode & kUsual;
    }
  }
  return kUsual;
}

/// The outer ones first.
std::vector<Point> points_of(const Bundle& bundle) {
  std::vector<Point> points;
  for (std::string& target : default_mount_targets()) points.push_back({std::move(target)});
  for (const CdiMount& one : bundle.file_systems) {
    points.push_back({one.path, false, mount_point_mode(one)});
  }
  for (const Mount& one : bundle.mounts) points.push_back({one.target, is_file_source(one.source)});
  points.push_back({bundle.workdir});
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::count(a.target.begin(), a.target.end(), '/') <
           std::count(b.target.begin(), b.target.end(), '/');
  });
  return points;
}

/// Without what is mounted at the place itself.
Bundle bundle_without(const Bundle& bundle, const std::string& target) {
  Bundle around = bundle;
  std::erase_if(around.mounts, [&](const Mount& one) { return one.target == target; });
  return around;
}

Error cannot_make(const Point& point) {
  return usage_error("bad-mount", "cannot make the mount point `{}`", point.target);
}

/// `below` the folder `source`, with what is absent above it. It is no link, nor is anything above
/// it: they were followed.
void make_on_host(const fs::path& source, const fs::path& below, const Point& point) {
  const fs::path name = below.filename();
  const auto failed = [&] {
    return cannot_make(point)
        .because(fmt::format("`{}`: {}", (source / below).string(), errno_text(errno)))
        .hint("make it on the host first, or mount it elsewhere");
  };
  Fd at{::open(source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!at) throw failed();
  for (const fs::path& part : below.parent_path()) {
    if (::mkdirat(at.get(), part.c_str(), kPointFolderMode) != 0 && errno != EEXIST) throw failed();
    Fd next{::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next) throw failed();
    at = std::move(next);
  }
  if (!point.is_file) {
    if (::mkdirat(at.get(), name.c_str(), kPointFolderMode) != 0) throw failed();
    if (point.mode != kPointFolderMode) (void)::fchmodat(at.get(), name.c_str(), point.mode, 0);
    return;
  }
  const Fd file{::openat(at.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPointFileMode)};
  if (!file && errno != EEXIST) throw failed();
}

void make_in_image(const Bundle& bundle, const ImageRoot& image, const std::string& real,
                   const Point& point) {
  try {
    if (point.is_file) {
      image.write(real, "");
    } else {
      image.make_folder(real, bundle.user.uid, bundle.user.gid);
      if (point.mode != kPointFolderMode) (void)::chmod(image.on_host(real).c_str(), point.mode);
    }
  } catch (const Error& error) {
    throw cannot_make(point).because(error.what());
  }
}

void make_point(const Bundle& bundle, const ImageRoot& image, const Point& point) {
  const Bundle around = bundle_without(bundle, point.target);
  const JobFiles files{around, image, point.target};
  const std::optional<std::string> real = files.real_path(point.target);
  if (!real) throw cannot_make(point).because("its links lead in a circle");
  if (files.kind(*real) != JobFiles::Kind::absent) return;
  const Mount* const mount = files.mount_of(*real);
  if (mount == nullptr) return make_in_image(bundle, image, *real, point);
  if (mount->read_only) {
    throw cannot_make(point)
        .because(
            fmt::format("there is no `{}`, and `{}` is mounted read-only", *real, mount->target))
        .hint("make it on the host first, or leave `:ro` out");
  }
  make_on_host(mount->source, fs::path(*real).lexically_relative(mount->target), point);
}

}  // namespace

void make_workdir(const Bundle& bundle, const ImageRoot& image) {
  const JobFiles files{bundle, image};
  const std::optional<std::string> real = files.real_path(bundle.workdir);
  if (!real || files.kind(*real) != JobFiles::Kind::absent || files.mount_of(*real)) return;
  const bool is_theirs = bundle.identity == Identity::kept_id;
  image.make_folder(*real, is_theirs ? bundle.user.uid : 0, is_theirs ? bundle.user.gid : 0);
}

void make_mount_points(const Bundle& bundle, const ImageRoot& image) {
  for (const Point& point : points_of(bundle)) make_point(bundle, image, point);
}

}  // namespace mlenv
