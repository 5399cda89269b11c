// What a person may give as an output, and whether it can be written.
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "images/archive.hpp"
#include "images/archive_parts.hpp"

namespace mlenv {
namespace {

Error unwritable(const fs::path& path, std::string why) {
  return usage_error("bad-output", "cannot write `{}`", path.string()).because(std::move(why));
}

void check_access(const fs::path& path, const fs::path& what, int mode) {
  if (::access(what.c_str(), mode) == 0) return;
  const int error = errno;
  throw unwritable(path, fmt::format("`{}`: {}", what.string(), errno_text(error)))
      .hint("name a place where you may write");
}

/// Of the folder in which `real` is made, which is what is written as `path`.
void check_parent(const fs::path& path, const fs::path& real) {
  const fs::path parent = real.has_parent_path() ? real.parent_path() : ".";
  std::error_code error;
  const fs::file_status status = fs::status(parent, error);
  if (!fs::exists(status)) {
    throw unwritable(path, fmt::format("the folder `{}` does not exist", parent.string()))
        .hint(fmt::format("make it first: `mkdir -p {}`", parent.string()));
  }
  if (!fs::is_directory(status)) {
    throw unwritable(path, fmt::format("`{}` is not a folder", parent.string()));
  }
  check_access(path, parent, W_OK | X_OK);
}

void check_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return check_parent(path, path);
  if (!fs::is_directory(status)) {
    throw unwritable(path, "an OCI layout is a folder, and this is a file")
        .hint("name a new folder, or write `oci-archive:FILE`");
  }
  check_access(path, path, R_OK | W_OK | X_OK);
  // Looked at in this order: of what another process may be writing, `oci-layout` comes first.
  if (!list_folder(path).empty() && !fs::exists(path / "oci-layout", error)) {
    throw unwritable(path, "the folder holds other files and is no OCI layout")
        .hint("name a new or an empty folder");
  }
}

void check_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status) || !path.has_filename()) {
    throw unwritable(path, "an archive is a file, and this is a folder")
        .hint(fmt::format("name a file in it: `{}`", (path / "image.tar").string()));
  }
  if (fs::is_socket(status)) throw unwritable(path, "it is a socket").hint("name a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) return check_access(path, path, W_OK);
  check_parent(path, real_file(path));
}

}  // namespace

fs::path real_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real;
}

Output Output::parse(std::string_view text) {
  for (const FormatPrefix& prefix : kFormatPrefixes) {
    if (!text.starts_with(prefix.text) || text.size() == prefix.text.size()) continue;
    Output output{prefix.format, fs::path(text.substr(prefix.text.size()))};
    if (output.format == Format::oci) {
      if (output.is_stdout()) {
        throw usage_error("bad-output", "an OCI layout is a folder, not one stream of bytes")
            .hint(
                "write `oci-archive:-` or `docker-archive:-`; for a folder of that name `oci:./-`");
      }
      if (!output.path.has_filename() && output.path.has_relative_path()) {
        output.path = output.path.parent_path();
      }
    } else if (output.path == "/dev/stdout") {
      output.path = "-";
    }
    return output;
  }
  throw usage_error("bad-output", "`{}` says neither what to write nor where", text)
      .hint("give `oci:DIR`, `oci-archive:FILE` or `docker-archive:FILE`");
}

std::string Output::shown() const { return is_stdout() ? "standard output" : path.string(); }

void Output::check() const {
  if (format == Format::oci) return check_folder(path);
  if (!is_stdout()) return check_file(path);
  if (::isatty(STDOUT_FILENO) == 1) {
    throw usage_error("bad-output", "standard output is a terminal, and the image is not text")
        .hint("send it on: `mlenv save IMAGE docker-archive:- | docker load`");
  }
}

void Output::require_index() const {
  if (format != Format::docker_archive) return;
  throw usage_error("bad-output", "a Docker archive holds one platform's image, not an index")
      .hint("write `oci:DIR` or `oci-archive:FILE`, or name one with `--platform`");
}

}  // namespace mlenv
