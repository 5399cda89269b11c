#include "runner/local/mount_points.hpp"

#include <fcntl.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

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
  // Not these themselves: runc gives a folder in memory the mode of the one that it covers. An
  // empty one in a folder of the caller's can be removed whoever owns it.
  for (const CdiMount& one : bundle.file_systems) {
    points.push_back({fs::path(one.path).parent_path().string()});
  }
  for (const Mount& one : bundle.mounts) points.push_back({one.target, is_file_source(one.source)});
  points.push_back({bundle.workdir});
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::count(a.target.begin(), a.target.end(), '/') <
           std::count(b.target.begin(), b.target.end(), '/');
  });
  return points;
}

void make_on_host(const fs::path& path, bool is_file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) return;
  if (is_file) {
    (void)open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  } else {
    make_folders(path);
  }
}

}  // namespace

void make_mount_points(const Bundle& bundle, const ImageRoot& image) {
  const JobFiles files{bundle, image};
  for (const Point& point : points_of(bundle)) {
    const fs::path path = point.target;
    const std::string above = path.parent_path().string();
    if (files.kind(above) == JobFiles::Kind::unseen) continue;
    try {
      if (const auto host = files.on_host(above)) {
        make_on_host(*host / path.filename(), point.is_file);
      } else if (!image.exists(point.target)) {
        if (point.is_file) {
          image.write(point.target, "");
        } else {
          image.make_folder(point.target, bundle.user.uid, bundle.user.gid);
        }
      }
    } catch (const Error& error) {
      log::debug("`{}` is not made before the runtime does: {}", point.target, error.what());
    }
  }
}

}  // namespace mlenv
