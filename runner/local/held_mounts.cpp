#include "runner/local/held_mounts.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/files_beneath.hpp"
#include "runner/local/job.hpp"
#include "runner/local/own_results.hpp"

namespace mlenv {
namespace {

/// The first part of `path` that is a link; empty: none is.
fs::path first_link_in(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    std::error_code error;
    if (fs::is_symlink(so_far, error)) return so_far;
  }
  return {};
}

Error mount_changed(const Mount& mount, const fs::path& real, int error) {
  const fs::path link = first_link_in(real);
  Error made =
      failure("mount-changed", "`{}` cannot be mounted at `{}` again", real.string(), mount.target);
  if (link.empty()) {
    made.because(errno_text(error));
  } else {
    std::error_code ignored;
    made.because(fmt::format("`{}` is a link to `{}` now, and was none before", link.string(),
                             fs::read_symlink(link, ignored).string()));
  }
  return std::move(made).hint(
      "a program that may write there has done it; bring back what was there, and start again");
}

/// By `open`, which takes flags. A folder as one that is read: so storage that is mounted when it
/// is needed (autofs) is there.
template <class Open>
Fd opened_to_mount(const Open& open) {
  Fd fd = open(O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd ? std::move(fd) : open(O_PATH | O_CLOEXEC);
}

Fd reopened(const Mount& mount, const fs::path& real) {
  Fd fd = opened_to_mount([&](int flags) { return open_canonical(real, flags); });
  if (!fd) throw mount_changed(mount, real, errno);
  return fd;
}

Error cannot_mount(const Mount& mount, int error) {
  return usage_error("bad-mount", "cannot mount `{}` at `{}`", mount.source.string(), mount.target)
      .because(errno_text(error));
}

/// What `fd` is, at `place`, which is made; its status.
struct stat bind_at(const Fd& fd, Mount& mount, const fs::path& place) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw cannot_mount(mount, errno);
  if (S_ISDIR(status.st_mode)) {
    make_folders(place);
  } else {
    write_file(place, "", /*durable=*/false);
  }
  if (::mount(descriptor_path(fd).c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) !=
      0) {
    throw cannot_mount(mount, errno);
  }
  mount.source = place;
  return status;
}

/// Where no mount of `/` brings what is below it along.
void make_unbindable(const fs::path& folder) {
  make_folders(folder);
  if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, folder.c_str(), nullptr, MS_UNBINDABLE, nullptr) != 0) {
    throw os_error(errno, "cannot make a place for mounts at `{}`", folder.string());
  }
}

}  // namespace

bool is_settled(const LocalRun& run, const fs::path& source) {
  return std::find(run.settled.begin(), run.settled.end(), source) != run.settled.end();
}

void SettledSources::find(const LocalRun& run) {
  for (const Mount& one : job_mounts(run)) {
    const bool is_known = found_.contains(one.source) || is_settled(run, one.source);
    if (is_known || is_own_results(run, one)) continue;
    std::error_code error;
    fs::path real = fs::canonical(one.source, error);
    if (!error) found_[one.source] = std::move(real);  // else whoever mounts it complains
  }
}

void SettledSources::apply(LocalRun& run) const {
  const auto settle = [&](fs::path& source) {
    const auto known = found_.find(source);
    if (known == found_.end()) return;
    source = known->second;
    run.settled.push_back(source);
  };
  if (run.project) settle(*run.project);
  for (Mount& one : run.mounts) settle(one.source);
}

void settle(LocalRun& run) {
  SettledSources sources;
  sources.find(run);
  sources.apply(run);
}

void bind_settled(const LocalRun& run, Mount& mount, const fs::path& place) {
  if (!is_settled(run, mount.source)) return;
  (void)bind_at(reopened(mount, mount.source), mount, place);
}

void require_settled(const LocalRun& run, const std::vector<Mount>& mounts) {
  for (const Mount& one : mounts) {
    if (is_settled(run, one.source)) (void)reopened(one, one.source);
  }
}

void HeldMounts::hold(const LocalRun& run, std::vector<Mount>& mounts, fs::path folder) {
  const std::size_t count = job_mounts(run).size();
  if (count == 0) return;
  folder_ = std::move(folder);
  make_unbindable(folder_);
  first_ = mounts.size() - count;
  for (auto mount = mounts.end() - static_cast<std::ptrdiff_t>(count); mount != mounts.end();
       ++mount) {
    const fs::path& source = mount->source;
    const Fd fd =
        is_settled(run, source)
            ? reopened(*mount, source)
            : opened_to_mount([&](int flags) { return Fd{::open(source.c_str(), flags)}; });
    if (!fd) throw cannot_mount(*mount, errno);
    std::error_code error;
    Held held;
    held.real = fs::read_symlink(descriptor_path(fd), error);
    if (error) throw cannot_mount(*mount, error.value());
    bind(fd, held, *mount);
    held_.push_back(std::move(held));
  }
}

void HeldMounts::bind(const Fd& fd, Held& held, Mount& mount) {
  held.place = folder_ / std::to_string(places_++);
  const struct stat status = bind_at(fd, mount, held.place);
  held.device = status.st_dev;
  held.inode = status.st_ino;
}

void HeldMounts::renew(std::vector<Mount>& mounts) {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    Held& held = held_[i];
    Mount& mount = mounts.at(first_ + i);
    const Fd fd = reopened(mount, held.real);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw mount_changed(mount, held.real, errno);
    if (status.st_dev == held.device && status.st_ino == held.inode) continue;
    ::umount2(held.place.c_str(), MNT_DETACH);
    bind(fd, held, mount);
  }
}

std::vector<Mount> HeldMounts::named(std::vector<Mount> mounts) const {
  for (std::size_t i = 0; i < held_.size(); ++i) mounts.at(first_ + i).source = held_[i].real;
  return mounts;
}

}  // namespace mlenv
