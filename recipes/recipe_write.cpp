#include "recipes/recipe_write.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/lock.hpp"

namespace mlenv {
namespace {

struct stat status_of(int fd, const fs::path& path) {
  struct stat status {};
  const int failed = fd >= 0 ? ::fstat(fd, &status) : ::stat(path.c_str(), &status);
  if (failed != 0) throw os_error(errno, "cannot read `{}`", path.string());
  return status;
}

/// The lock is on the recipe itself, so that nothing needs to lie beside it. Writing puts another
/// file in its place: whoever waited for the former one waits for that.
Fd hold(const fs::path& path) {
  while (true) {
    Fd fd{
        ::open(path.c_str(), O_RDWR | O_CLOEXEC)};  // NFS locks no files that are open for reading
    if (!fd) fd = open_file(path);
    while (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return fd;
    }
    const struct stat held = status_of(fd.get(), path);
    const struct stat there = status_of(-1, path);
    if (held.st_ino == there.st_ino && held.st_dev == there.st_dev) return fd;
  }
}

Error changed(const fs::path& path) {
  return failure("recipe-changed", "`{}` was changed while the lock was made", path.string())
      .hint("the same command again takes the change in");
}

/// What `path` held, put back.
void restore(const fs::path& path, const std::optional<std::string>& text) {
  if (text) return write_file(path, *text);
  std::error_code ignored;
  fs::remove(path, ignored);
}

void commit(AtomicFile& recipe, const fs::path& lock_file, const LockTexts& lock) {
  if (lock.after) write_file(lock_file, *lock.after);
  try {
    recipe.commit();
  } catch (const Error&) {
    if (lock.after) restore(lock_file, lock.before);
    throw;
  }
}

}  // namespace

void write_recipe(const Recipe& before, const Recipe& after, const LockTexts& lock) {
  while_doing("writing `" + before.path.string() + "`", [&] {
    std::error_code error;
    const fs::path path = fs::canonical(before.path, error);
    if (error) throw os_error(error.value(), "cannot read `{}`", before.path.string());
    const Fd held = hold(path);
    if (read_small_file(path, size_limit::kRecipe) != before.source) throw changed(before.path);
    const fs::path lock_file = lock_path(before.path);
    const auto lock_now = read_small_file_if_exists(lock_file, size_limit::kLock);
    if (lock_now != lock.before) throw changed(lock_file);
    constexpr mode_t kPermissions = 07777;
    AtomicFile recipe{path};
    if (::fchmod(recipe.fd(), status_of(held.get(), path).st_mode & kPermissions) != 0) {
      throw os_error(errno, "cannot set its permissions");
    }
    recipe.write(as_bytes(after.source));
    commit(recipe, lock_file, lock);
  });
}

}  // namespace mlenv
