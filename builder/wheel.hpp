#pragma once
// A wheel as it lies in an image: every file that installing it gives, without installing it
// (PyPA "Binary distribution format", "Recording installed projects", "Entry points
// specification").
//
// All wheels go to one site-packages that does not name a Python version, so that a py3-none wheel
// is one layer for every interpreter (docs/layers.md). Most files are the wheel's own members as
// they are; the few that installing makes (scripts, RECORD, INSTALLER, REQUESTED) carry their text.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/zip.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

inline constexpr std::string_view kVenv = "opt/venv";
inline constexpr std::string_view kSitePackages = "opt/venv/lib/python3/site-packages";

struct InstalledFile {
  std::string path;  ///< in the image, relative to its root
  std::uint32_t mode = 0644;
  std::optional<ZipMember> member;  ///< its bytes lie in the wheel
  std::string text;                 ///< else they are these
};

/// Sorted by path. Throws `bad-wheel` (what is wrong with it) for: no or several `.dist-info`,
/// a Wheel-Version other than 1.x, a malformed RECORD or entry_points.txt, paths outside the
/// environment or of the environment's own files, two members that land on one path, names that are
/// not UTF-8.
std::vector<InstalledFile> installed_files(int wheel_fd, const LockedWheel& wheel);

/// A wheel on the disk.
struct WheelFile {
  LockedWheel wheel;
  fs::path path;
  /// As `installed_files` gives them, where they were read already; null else.
  std::shared_ptr<const std::vector<InstalledFile>> files = nullptr;
};
/// The same with `files`.
WheelFile with_files(WheelFile wheel);

/// `bad-wheel`: the wheel cannot be installed, and why.
Error bad_wheel(const LockedWheel& wheel, std::string reason);

}  // namespace mlenv
