#include "builder/source_archive.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/inflate.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/tar.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

Error bad_source(const std::string& file, std::string why) {
  return failure("bad-source", "`{}` cannot be unpacked", file).because(std::move(why));
}

/// The path below the archive's one folder; empty: that folder itself.
std::string below_top(const std::string& path, std::string& top, const std::string& file) {
  const std::size_t slash = path.find('/');
  const std::string first = path.substr(0, slash);
  if (top.empty()) top = first;
  if (first != top) throw bad_source(file, "it holds more than one folder");
  return slash == std::string::npos ? std::string{} : path.substr(slash + 1);
}

void set_mode(const fs::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0) throw os_error(errno, "cannot write `{}`", path.string());
}

}  // namespace

void unpack_source(const fs::path& archive, const std::string& file, const fs::path& folder) {
  if (!file.ends_with(".tar.gz")) throw bad_source(file, "it is no .tar.gz, as PEP 625 wants it");
  // The plain tar lies beside it for a moment: both readers take what they read from a Source.
  const fs::path plain = folder.string() + ".tar";
  {
    const Fd in = open_file(archive);
    const Fd out = open_file(plain, O_WRONLY | O_CREAT | O_TRUNC);
    FdSource source{in.get()};
    FdSink sink{out.get()};
    gunzip(source, sink);
  }
  const Fd tar = open_file(plain);
  FdSource source{tar.get()};
  std::string top;
  make_folders(folder);
  read_tar(source, [&](const TarEntry& entry, Source& data) {
    if (entry.path == ".") return;
    const std::string path = below_top(entry.path, top, file);
    if (entry.type == TarEntry::Type::folder) {
      if (!path.empty()) make_folders(folder / path);
      return;
    }
    if (entry.type != TarEntry::Type::file || path.empty()) {
      throw bad_source(file, fmt::format("`{}` is neither a file nor a folder", entry.path));
    }
    const fs::path target = folder / path;
    make_folders(target.parent_path());
    const Fd out = open_file(target, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    FdSink sink{out.get()};
    copy(data, sink);
    set_mode(target, (entry.mode & 0100U) != 0 ? 0755 : 0644);
  });
  std::error_code ignored;
  fs::remove(plain, ignored);
}

BuildSystem read_build_system(const fs::path& folder, const std::string& file) {
  BuildSystem system{{"setuptools"}, "setuptools.build_meta:__legacy__", {}};
  const auto text = read_small_file_if_exists(folder / "pyproject.toml", size_limit::kPyproject);
  if (!text) return system;
  const TomlReader reader({.shown_path = fs::path(file) / "pyproject.toml",
                           .text = *text,
                           .code = "bad-source",
                           .hint = {}});
  const TomlValue root = parse_toml(reader.file());
  const TomlValue* table = reader.optional_member(root, "build-system", TomlValue::Kind::table);
  if (table == nullptr) return system;
  system.requirements = reader.texts(*table, "requires");
  const std::string backend = reader.optional_text(*table, "build-backend");
  if (!backend.empty()) system.backend = backend;
  system.backend_path = reader.texts(*table, "backend-path");
  return system;
}

}  // namespace mlenv
