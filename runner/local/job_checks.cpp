#include "runner/local/job_checks.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

using FileKind = JobFiles::Kind;

/// What is to be mounted: the person's, or a folder in memory.
struct CheckedMount {
  std::string shown;
  std::string target;
  bool is_folder = true;
  fs::path source;  ///< empty: in memory
};

Error bad_mount(const CheckedMount& wanted, std::string why) {
  return usage_error("bad-mount", "cannot mount {} at `{}`", wanted.shown, wanted.target)
      .because(std::move(why));
}

/// The nearest folder above `path` that is there, or what is in the way of it.
std::string nearest_above(const JobFiles& files, const std::string& path) {
  fs::path above = fs::path(path).parent_path();
  while (above != above.root_path() && files.kind(above.string()) == FileKind::absent) {
    above = above.parent_path();
  }
  return above.string();
}

/// The bundle without what is mounted there or further down, to see what is below it.
Bundle bundle_around(const Bundle& bundle, const std::string& target) {
  Bundle around = bundle;
  std::erase_if(around.mounts,
                [&](const Mount& other) { return is_beneath(other.target, target); });
  std::erase_if(around.file_systems,
                [&](const CdiMount& other) { return is_beneath(other.path, target); });
  return around;
}

bool is_read_only(const JobFiles& files, const std::string& path) {
  const std::optional<std::string> real = files.real_path(path);
  const Mount* const mount = real ? files.mount_of(*real) : nullptr;
  return mount != nullptr && mount->read_only;
}

/// `/sys` of the container shows what the host's does; nothing can be made there.
bool is_absent_in_sys(const std::string& target) {
  std::error_code error;
  return is_beneath(target, "/sys") && !fs::exists(target, error);
}

void check_mount(const Bundle& bundle, const ImageRoot& image, const CheckedMount& wanted) {
  const Bundle around = bundle_around(bundle, wanted.target);
  const JobFiles files{around, image};
  const std::optional<std::string> real = files.real_path(wanted.target);
  if (!real || (is_beneath(*real, "/proc") && !is_beneath(wanted.target, "/proc"))) {
    throw bad_mount(wanted,
                    "links of the image or of another mount lead from there to `/proc`, or in a "
                    "circle");
  }
  // What the runtime makes there would be made in the person's folder.
  if (*real == "/dev" || *real == "/sys") {
    throw bad_mount(wanted, fmt::format("links of the image or of another mount lead from there to "
                                        "the container's own `{}`",
                                        *real));
  }
  const FileKind kind = files.kind(wanted.target);
  if (kind == FileKind::other && wanted.is_folder) {
    throw bad_mount(wanted, "the source is a folder, and the target is a file");
  }
  if (kind == FileKind::folder && !wanted.is_folder) {
    throw bad_mount(wanted, "the source is a file, and the target is a folder")
        .hint(fmt::format("name a file in it: `-v {}:{}`", wanted.source.string(),
                          (fs::path(wanted.target) / wanted.source.filename()).string()));
  }
  if (is_absent_in_sys(wanted.target)) throw bad_mount(wanted, "nothing can be made in `/sys`");
  if (kind != FileKind::absent) return;
  const std::string above = nearest_above(files, wanted.target);
  if (files.kind(above) == FileKind::other) {
    throw bad_mount(wanted, fmt::format("`{}` is a file, not a folder", above));
  }
  if (is_read_only(files, wanted.target)) {
    throw bad_mount(wanted, fmt::format("there is no `{}`, and `{}` is mounted read-only",
                                        wanted.target, above))
        .hint("make the target on the host first, or leave `:ro` out");
  }
}

}  // namespace

void check_system_folders(const ImageRoot& image) {
  for (const char* path : {"/dev", "/proc", "/sys"}) {
    const std::optional<std::string> link = image.link(path);
    if (!link && (image.is_folder(path) || !image.exists(path))) continue;
    throw failure("image-root", "`{}` of the image is {}", path,
                  link ? fmt::format("a link to `{}`", *link) : "no folder")
        .because("a container has its own folder there, and none of this machine's")
        .hint(fmt::format("make `{}` a folder in the image, or take another image", path));
  }
}

void check_mounts(const Bundle& bundle, const ImageRoot& image) {
  for (const Mount& mount : bundle.mounts) {
    std::error_code error;
    check_mount(bundle, image,
                {fmt::format("`{}`", mount.source.string()), mount.target,
                 fs::is_directory(mount.source, error), mount.source});
  }
  for (const CdiMount& one : bundle.file_systems) {
    check_mount(bundle, image, {"a folder in memory", one.path, true, {}});
  }
}

void check_workdir(const Bundle& bundle, const ImageRoot& image) {
  const JobFiles files{bundle, image};
  const FileKind kind = files.kind(bundle.workdir);
  if (kind == FileKind::folder || kind == FileKind::unseen) return;
  const std::string above =
      kind == FileKind::other ? bundle.workdir : nearest_above(files, bundle.workdir);
  if (files.kind(above) == FileKind::other) {
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
