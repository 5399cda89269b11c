#include "runner/local/image_root.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/folder_entries.hpp"

namespace mlenv {
ImageRoot::ImageRoot(const fs::path& folder) : folder_(open_file(folder, O_PATH | O_DIRECTORY)) {}

Fd ImageRoot::open(const std::string& path, int flags) const {
  return open_beneath(folder_.get(), path, flags, Links::inside);
}

std::optional<std::string> ImageRoot::read(const std::string& path, std::size_t limit) const {
  struct stat status {};
  const Fd fd = open(path, O_RDONLY | O_NONBLOCK);
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const auto size = static_cast<std::size_t>(status.st_size);
  SliceSource source{fd.get(), 0, std::min(size, limit)};
  return read_all(source, limit);
}

bool ImageRoot::exists(const std::string& path) const {
  return static_cast<bool>(open(path, O_PATH));
}

bool ImageRoot::is_folder(const std::string& path) const {
  return static_cast<bool>(open(path, O_PATH | O_DIRECTORY));
}

std::optional<std::string> ImageRoot::link(const std::string& path) const {
  const Fd fd = open(path, O_PATH | O_NOFOLLOW);
  return fd ? link_at(fd.get(), "") : std::nullopt;
}

std::vector<std::string> ImageRoot::list(const std::string& path) const {
  std::vector<std::string> names;
  Fd fd = open(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return names;
  const Owned<::closedir>::of<DIR> folder{::fdopendir(fd.get())};
  if (!folder) return names;
  (void)fd.release();  // the stream owns it now
  while (const dirent* entry = next_entry(folder.get(), path)) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

Fd ImageRoot::make_folders(const fs::path& path) const {
  Fd parent = open("/", O_PATH | O_DIRECTORY);
  fs::path so_far = "/";
  for (const fs::path& name : path.relative_path()) {
    so_far /= name;
    Fd next = open(so_far.string(), O_PATH | O_DIRECTORY);
    if (!next && errno == ENOENT && ::mkdirat(parent.get(), name.c_str(), 0755) == 0) {
      next = open(so_far.string(), O_PATH | O_DIRECTORY);
    }
    if (!next) {
      const bool is_link = errno == EEXIST;  // one that leads nowhere, as far as the image goes
      throw failure("image-root", "cannot make the folder `{}` in the container", so_far.string())
          .because(is_link ? "a link or file of the image, or of a run kept in it, is in its place"
                           : errno_text(errno))
          .hint("take another image, or another run for `--from`");
    }
    parent = std::move(next);
  }
  return parent;
}

void ImageRoot::write(const std::string& path, std::string_view text, mode_t mode) const {
  if (writer_ != nullptr) return writer_->write(path, text, mode);
  const fs::path target{path};
  const Fd parent = make_folders(target.parent_path());
  const std::string name = target.filename().string();
  if (::unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    throw failure("image-root", "cannot replace `{}` in the container", path)
        .because(errno_text(errno));
  }
  const Fd fd{::openat(parent.get(), name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
  if (!fd) {
    throw failure("image-root", "cannot write `{}` in the container", path)
        .because(errno_text(errno));
  }
  write_all(fd.get(), as_bytes(text));
  (void)::fchmod(fd.get(), mode);  // whatever the umask is
}

void ImageRoot::remove(const std::string& path) const {
  const fs::path target{path};
  const Fd parent = open(target.parent_path().string(), O_PATH | O_DIRECTORY);
  if (parent) (void)::unlinkat(parent.get(), target.filename().c_str(), 0);
}

std::optional<struct stat> ImageRoot::status(const std::string& path) const {
  struct stat status {};
  const Fd fd = open(path, O_PATH);
  if (!fd || ::fstat(fd.get(), &status) != 0) return std::nullopt;
  return status;
}

fs::path ImageRoot::on_host(const std::string& path) const {
  const Fd fd = open(path, O_PATH);
  if (!fd) {
    throw failure("image-root", "cannot find `{}` in the container", path)
        .because(errno_text(errno));
  }
  return fs::read_symlink(descriptor_path(fd));
}

void ImageRoot::make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) const {
  if (writer_ != nullptr) return writer_->make_folder(path, uid, gid);
  const Fd folder = make_folders(path);
  if (::fchownat(folder.get(), "", uid, gid, AT_EMPTY_PATH) != 0) {
    throw failure("image-root", "cannot give the folder `{}` to user {} in the container", path,
                  uid)
        .because(errno_text(errno));
  }
}

ImageRoot::Program ImageRoot::program(const std::string& path) const {
  struct stat status {};
  const Fd fd = open(path, O_PATH);
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    if (errno == EACCES) return Program::not_executable;
    return Program::absent;
  }
  const bool runs = S_ISREG(status.st_mode) && (status.st_mode & 0111U) != 0;
  return runs ? Program::found : Program::not_executable;
}

}  // namespace mlenv
