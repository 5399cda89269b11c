#include "runner/local/mount_points.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;

struct Point {
  std::string target;
  bool is_file = false;
};

bool is_file_source(const fs::path& source) {
  std::error_code error;
  return fs::exists(source, error) && !fs::is_directory(source, error);
}

/// The outer ones first.
std::vector<Point> points_of(const Bundle& bundle) {
  std::vector<Point> points;
  for (std::string& target : default_mount_targets()) points.push_back({std::move(target)});
  for (const CdiMount& one : bundle.file_systems) points.push_back({one.path});
  for (const Mount& one : bundle.mounts) points.push_back({one.target, is_file_source(one.source)});
  points.push_back({bundle.workdir});
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::count(a.target.begin(), a.target.end(), '/') <
           std::count(b.target.begin(), b.target.end(), '/');
  });
  return points;
}

/// Without what is mounted at the place itself.
Bundle without(const Bundle& bundle, const std::string& target) {
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
    if (::mkdirat(at.get(), part.c_str(), kFolderMode) != 0 && errno != EEXIST) throw failed();
    Fd next{::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next) throw failed();
    at = std::move(next);
  }
  if (!point.is_file) {
    if (::mkdirat(at.get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST) throw failed();
    return;
  }
  const Fd file{::openat(at.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode)};
  if (!file && errno != EEXIST) throw failed();
}

void make_in_image(const Bundle& bundle, const ImageRoot& image, const std::string& real,
                   const Point& point) {
  try {
    if (point.is_file) {
      image.write(real, "");
    } else {
      image.make_folder(real, bundle.user.uid, bundle.user.gid);
    }
  } catch (const Error& error) {
    throw cannot_make(point).because(error.what());
  }
}

/// Whether it was absent.
bool make(const Bundle& bundle, const ImageRoot& image, const Point& point) {
  const Bundle around = without(bundle, point.target);
  const JobFiles files{around, image, point.target};
  const std::optional<std::string> real = files.real_path(point.target);
  if (!real) throw cannot_make(point).because("its links lead in a circle");
  if (files.kind(*real) != JobFiles::Kind::absent) return false;
  const Mount* const mount = files.mount_of(*real);
  if (mount == nullptr) {
    make_in_image(bundle, image, *real, point);
    return true;
  }
  if (mount->read_only) {
    throw cannot_make(point)
        .because(
            fmt::format("there is no `{}`, and `{}` is mounted read-only", *real, mount->target))
        .hint("make it on the host first, or leave `:ro` out");
  }
  make_on_host(mount->source, fs::path(*real).lexically_relative(mount->target), point);
  return true;
}

/// runc gives a folder in memory the mode of what it covers, and where that is absent this one.
void give_usual_mode(CdiMount& one) {
  const bool has_mode =
      std::any_of(one.options.begin(), one.options.end(),
                  [](const std::string& word) { return word.starts_with("mode="); });
  if (one.type == "tmpfs" && !has_mode) one.options.emplace_back("mode=1777");
}

}  // namespace

void make_mount_points(Bundle& bundle, const ImageRoot& image) {
  for (const Point& point : points_of(bundle)) {
    if (!make(bundle, image, point)) continue;
    for (CdiMount& one : bundle.file_systems) {
      if (one.path == point.target) give_usual_mode(one);
    }
  }
}

}  // namespace mlenv
