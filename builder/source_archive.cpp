#include "builder/source_archive.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/tar.hpp"
#include "base/zip.hpp"
#include "builder/source_layout.hpp"
#include "recipes/source_file.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

using namespace std::string_view_literals;

bool begins_with(const fs::path& path, std::string_view magic) {
  const Fd file = open_file(path);
  std::array<std::byte, 4> head{};
  const ssize_t count = ::pread(file.get(), head.data(), head.size(), 0);
  if (count < 0) throw os_error(errno, "cannot read `{}`", path.string());
  return as_text(ByteView(head).first(static_cast<std::size_t>(count))).starts_with(magic);
}

/// Refuses more than a source may hold.
class BoundedSink final : public Sink {
 public:
  BoundedSink(int fd, const std::string& file) : fd_(fd), file_(file) {}
  void write(ByteView data) override {
    bytes_ += data.size();
    if (bytes_ > size_limit::kSourceTree) {
      throw failure("too-large", "`{}` unpacks to more than {} bytes", file_,
                    size_limit::kSourceTree);
    }
    write_all(fd_, data);
  }

 private:
  int fd_;
  const std::string& file_;
  std::uint64_t bytes_ = 0;
};

void lay_tar(Source& tar, const std::string& file, SourceLayout& layout) {
  read_tar(tar, [&](const TarEntry& entry, Source& data) {
    if (entry.path == ".") return;
    switch (entry.type) {
      case TarEntry::Type::folder:
        return layout.add_folder(entry.path);
      case TarEntry::Type::file:
        return layout.add_file(entry.path, (entry.mode & 0100U) != 0,
                               [&](Sink& out) { copy(data, out); });
      case TarEntry::Type::symlink:
        return layout.add_link(entry.path, entry.link);
      case TarEntry::Type::hardlink:
        return layout.add_hard_link(entry.path, entry.link);
      default:
        throw bad_source(file, fmt::format("`{}` is neither a file nor a folder", entry.path));
    }
  });
}

/// The plain tar lies beside the folder for a moment: both readers take what they read from a
/// Source.
void unpack_tar(const fs::path& archive, const std::string& file, const fs::path& plain,
                SourceLayout& layout) {
  {
    const bool bzip2 = begins_with(archive, "BZh"sv);
    const Fd in = open_file(archive);
    const Fd out = open_file(plain, O_WRONLY | O_CREAT | O_TRUNC);
    FdSource source{in.get()};
    BoundedSink sink{out.get(), file};
    bzip2 ? unbzip2(source, sink) : decompress(source, sink);
  }
  const Fd tar = open_file(plain);
  FdSource source{tar.get()};
  lay_tar(source, file, layout);
  std::error_code ignored;
  fs::remove(plain, ignored);
}

void write_member(int fd, const ZipMember& member, Sink& out) {
  SliceSource raw{fd, member.offset, member.compressed_bytes};
  std::uint32_t crc = 0;
  FunctionSink summed{[&](ByteView bytes) {
    crc = crc32(crc, bytes);
    out.write(bytes);
  }};
  if (member.method == ZipMember::Method::stored) {
    copy(raw, summed);
  } else {
    inflate_stream(raw, summed, member.size_bytes);
  }
  if (crc == member.crc32) return;
  throw failure("bad-zip", "a zip archive is damaged")
      .because(fmt::format("the content of `{}` does not match its CRC-32", member.name));
}

void unpack_zip(const fs::path& archive, SourceLayout& layout) {
  const Fd file = open_file(archive);
  for (const ZipMember& member : read_zip_directory(file.get())) {
    if (member.is_folder()) {
      layout.add_folder(member.name.substr(0, member.name.size() - 1));
    } else {
      layout.add_file(member.name, (member.mode & 0100U) != 0,
                      [&](Sink& out) { write_member(file.get(), member, out); });
    }
  }
}

}  // namespace

void unpack_source(const fs::path& archive, const std::string& file, const fs::path& folder) {
  if (!is_source_file(file)) {
    throw bad_source(file, fmt::format("it is none of {}", listed_source_endings()));
  }
  SourceLayout layout(folder, file);
  if (begins_with(archive, "PK"sv)) {
    unpack_zip(archive, layout);
  } else {
    unpack_tar(archive, file, folder.string() + ".tar", layout);
  }
  layout.finish();
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
