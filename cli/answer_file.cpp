#include "cli/answer_file.hpp"

#include "base/error.hpp"

namespace mlenv::cli {
namespace {

bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

fs::path real_path(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

}  // namespace

void write_answer_file(const fs::path& path, std::string_view text, mode_t mode) {
  while_doing("writing `" + path.string() + "`", [&] {
    if (is_special(path)) {
      Fd fd = open_file(path, O_WRONLY | O_NOCTTY);
      write_all(fd.get(), as_bytes(text));
      return fd.close_checked(path.string());
    }
    AtomicFile file{real_path(path), mode};
    file.write(as_bytes(text));
    file.commit();
  });
}

void require_file_place(const fs::path& path) {
  if (!is_special(path)) return;
  throw usage_error("bad-output", "cannot write `{}`", path.string())
      .because("something is there that is no file")
      .hint("name a file");
}

}  // namespace mlenv::cli
