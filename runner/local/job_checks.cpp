#include "runner/local/job_checks.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

using Found = JobFiles::Kind;

Error bad_mount(const Mount& mount, std::string why) {
  return usage_error("bad-mount", "cannot mount `{}` at `{}`", mount.source.string(), mount.target)
      .because(std::move(why));
}

/// The nearest folder above `path` that is there, or what is in the way of it.
std::string nearest_above(const JobFiles& files, const std::string& path) {
  fs::path above = fs::path(path).parent_path();
  while (above != above.root_path() && files.kind(above.string()) == Found::absent) {
    above = above.parent_path();
  }
  return above.string();
}

/// The bundle without those of its mounts that come after this one, to see what is below it.
Bundle below(const Bundle& bundle, const Mount& mount) {
  Bundle around = bundle;
  std::erase_if(around.mounts, [&](const Mount& other) {
    return other.target == mount.target || !is_beneath(mount.target, other.target);
  });
  return around;
}

bool is_read_only(const Bundle& bundle, const std::string& path) {
  const Mount* deepest = nullptr;
  for (const Mount& mount : bundle.mounts) {
    if (!is_beneath(path, mount.target)) continue;
    if (deepest == nullptr || mount.target.size() >= deepest->target.size()) deepest = &mount;
  }
  return deepest != nullptr && deepest->read_only;
}

/// `/sys` of the container shows what the host's does; nothing can be made there.
bool is_absent_in_sys(const std::string& target) {
  std::error_code error;
  return is_beneath(target, "/sys") && !fs::exists(target, error);
}

void check_mount(const Bundle& bundle, const ImageRoot& image, const Mount& mount) {
  const Bundle around = below(bundle, mount);
  const JobFiles files{around, image};
  std::error_code error;
  const bool is_folder = fs::is_directory(mount.source, error);
  const Found kind = files.kind(mount.target);
  if (kind == Found::other && is_folder) {
    throw bad_mount(mount, "the source is a folder, and the target is a file");
  }
  if (kind == Found::folder && !is_folder) {
    throw bad_mount(mount, "the source is a file, and the target is a folder")
        .hint(fmt::format("name a file in it: `-v {}:{}`", mount.source.string(),
                          (fs::path(mount.target) / mount.source.filename()).string()));
  }
  if (is_absent_in_sys(mount.target)) throw bad_mount(mount, "nothing can be made in `/sys`");
  if (kind != Found::absent) return;
  const std::string above = nearest_above(files, mount.target);
  if (files.kind(above) == Found::other) {
    throw bad_mount(mount, fmt::format("`{}` is a file, not a folder", above));
  }
  if (is_read_only(around, mount.target)) {
    throw bad_mount(
        mount, fmt::format("there is no `{}`, and `{}` is mounted read-only", mount.target, above))
        .hint("make the target on the host first, or leave `:ro` out");
  }
}

}  // namespace

void check_mounts(const Bundle& bundle, const ImageRoot& image) {
  for (const Mount& mount : bundle.mounts) check_mount(bundle, image, mount);
}

void check_workdir(const Bundle& bundle, const ImageRoot& image) {
  const JobFiles files{bundle, image};
  const Found kind = files.kind(bundle.workdir);
  if (kind == Found::folder || kind == Found::unseen) return;
  const std::string above =
      kind == Found::other ? bundle.workdir : nearest_above(files, bundle.workdir);
  if (files.kind(above) == Found::other) {
    throw usage_error("bad-workdir", "the command cannot start in `{}`", bundle.workdir)
        .because(fmt::format("`{}` is a file, not a folder", above));
  }
  if (!files.on_host(above)) return;
  const std::optional<fs::path> host = files.on_host(bundle.workdir);
  throw usage_error("bad-workdir", "the command cannot start in `{}`", bundle.workdir)
      .because("there is no such folder")
      .hint(fmt::format("make it first: `mkdir -p {}`", host ? host->string() : bundle.workdir));
}

}  // namespace mlenv
