#include "images/archive_members.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/tar.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kSmall = std::max(size_limit::kManifest, size_limit::kImageConfig);
/// What is kept of small files in a tar, so that one pass finds index, manifest and config.
constexpr std::uint64_t kKept = std::uint64_t{256} << 20U;

class FolderMembers final : public ArchiveMembers {
 public:
  explicit FolderMembers(fs::path folder) : folder_(std::move(folder)) {}

  std::optional<std::string> text(const std::string& name) override {
    const fs::path path = folder_ / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kSmall || error) {
      return std::nullopt;
    }
    return read_small_file_if_exists(path, kSmall);
  }

  bool has(const std::string& name) const override {
    std::error_code error;
    return fs::is_regular_file(folder_ / name, error);
  }

  void read(const std::set<std::string>& names,
            const std::function<void(const std::string& name, Source& data)>& take) override {
    for (const std::string& name : names) {
      std::error_code error;
      if (!fs::is_regular_file(folder_ / name, error)) continue;
      const Fd fd = open_file(folder_ / name);
      FdSource source{fd.get()};
      take(name, source);
    }
  }

 private:
  fs::path folder_;
};

class TarMembers final : public ArchiveMembers {
 public:
  TarMembers(fs::path file, std::string shown) : file_(std::move(file)), shown_(std::move(shown)) {
    each([&](const TarEntry& entry, Source& data) {
      using Type = TarEntry::Type;
      if (entry.type == Type::file) files_.insert(entry.path);
      if (entry.type == Type::symlink) {
        // Beside its target, as old versions of Docker have two layers that are the same.
        const fs::path to = fs::path(entry.path).parent_path() / entry.link;
        links_[entry.path] = to.lexically_normal().string();
      } else if (entry.type == Type::hardlink) {
        links_[entry.path] = entry.link;
      } else if (entry.type == Type::file && entry.size_bytes <= kSmall &&
                 kept_ + entry.size_bytes <= kKept) {
        kept_ += entry.size_bytes;
        small_[entry.path] = read_all(data, kSmall);
      }
    });
  }

  std::optional<std::string> text(const std::string& name) override {
    const auto found = small_.find(real(name));
    if (found == small_.end()) return std::nullopt;
    return found->second;
  }

  bool has(const std::string& name) const override { return files_.contains(real(name)); }

  void read(const std::set<std::string>& names,
            const std::function<void(const std::string& name, Source& data)>& take) override {
    std::set<std::string> left;
    std::map<std::string, std::set<std::string>> wanted;
    for (const std::string& name : names) wanted[real(name)].insert(name);
    each([&](const TarEntry& entry, Source& data) {
      const auto found = wanted.find(entry.path);
      if (entry.type != TarEntry::Type::file || found == wanted.end()) return;
      // A link's bytes are its target's: they are given under the first of the names.
      take(*found->second.begin(), data);
      found->second.erase(found->second.begin());
      if (found->second.empty()) {
        wanted.erase(found);
      } else {
        left.merge(found->second);
      }
    });
    if (!left.empty() && left != names) read(left, take);
  }

 private:
  void each(const std::function<void(const TarEntry&, Source&)>& take) {
    const Fd fd = open_file(file_);
    FdSource source{fd.get()};
    while_doing("reading `" + shown_ + "`", [&] { read_tar(source, take); });
  }

  std::string real(std::string name) const {
    for (int links = 0; links < 8; ++links) {
      const auto found = links_.find(name);
      if (found == links_.end()) break;
      name = found->second;
    }
    return name;
  }

  fs::path file_;
  std::string shown_;
  std::set<std::string> files_;
  std::map<std::string, std::string> links_;
  std::map<std::string, std::string> small_;
  std::uint64_t kept_ = 0;
};

Error absent(const fs::path& path) {
  return failure("absent", "there is no `{}`", path.string())
      .hint("check the path; in a recipe it is relative to the recipe's folder");
}

}  // namespace

bool is_compressed(const fs::path& file) {
  const Fd fd = open_file(file);
  std::array<std::byte, 4> head{};
  FdSource source{fd.get()};
  std::size_t count = 0;
  while (count < head.size()) {
    const std::size_t more = source.read(ByteSpan(head).subspan(count));
    if (more == 0) break;
    count += more;
  }
  const std::string_view text = as_text(head);
  for (const std::string_view magic : {"\x1f\x8b",
                                       "\xfd"
                                       "7zX",
                                       "\x28\xb5\x2f\xfd", "BZh"}) {
    if (text.starts_with(magic)) return true;
  }
  return false;
}

std::unique_ptr<ArchiveMembers> open_folder_members(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) throw absent(folder);
  if (!fs::is_directory(status)) {
    throw failure("bad-image", "`{}` is a file, and an OCI layout is a folder", folder.string())
        .hint(fmt::format("write `oci-archive:{}` for a layout in a tar", folder.string()));
  }
  if (!fs::exists(folder / "index.json", error)) {
    throw failure("bad-image", "`{}` is no OCI layout: it has no `index.json`", folder.string());
  }
  return std::make_unique<FolderMembers>(folder);
}

std::unique_ptr<ArchiveMembers> open_tar_members(const fs::path& file, const std::string& shown) {
  const std::string name = shown.empty() ? file.string() : shown;
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status)) throw absent(file);
  if (!fs::is_regular_file(status)) {
    throw failure("bad-image", "`{}` is no file, and an archive is one", file.string())
        .hint(fmt::format("write `oci:{}` for an OCI layout in a folder", file.string()));
  }
  if (is_compressed(file)) {
    throw failure("bad-image", "`{}` is compressed as a whole", name)
        .hint("decompress it first; its layers may stay as they are");
  }
  return std::make_unique<TarMembers>(file, name);
}

}  // namespace mlenv
