#include "runner/record/git_lfs.hpp"

#include <sys/stat.h>
#include <charconv>

#include <fmt/core.h>

#include "base/files_beneath.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "runner/record/git_folders.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kPointerVersion = "version https://git-lfs.github.com/spec/v1\n";

std::uint64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

std::optional<LfsPointer> parse_lfs_pointer(std::string_view text) {
  constexpr std::string_view kOid = "oid sha256:";
  constexpr std::string_view kSize = "size ";
  constexpr std::size_t kHex = 64;
  if (text.size() > kLongestPointer || !text.starts_with(kPointerVersion)) return std::nullopt;
  text.remove_prefix(kPointerVersion.size());
  if (!text.starts_with(kOid) || text.size() < kOid.size() + kHex + 1) return std::nullopt;
  const std::string_view hex = text.substr(kOid.size(), kHex);
  text.remove_prefix(kOid.size() + kHex);
  if (hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  if (!text.starts_with('\n') || !text.substr(1).starts_with(kSize)) return std::nullopt;
  text = text.substr(1 + kSize.size());
  LfsPointer pointer{Digest::from_hex(hex), 0};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), pointer.size_bytes);
  const bool whole =
      error == std::errc{} && std::string_view(end, text.data() + text.size()) == "\n";
  return whole ? std::optional{pointer} : std::nullopt;
}

bool has_content(const fs::path& top, const std::string& path, const LfsPointer& pointer,
                 std::chrono::steady_clock::time_point until) {
  const Fd file = open_file_beneath(open_folder(top).get(), path);
  if (!file || size_of(file.get()) != pointer.size_bytes) return false;
  Sha256 hash;
  SliceSource source{file.get(), 0, pointer.size_bytes};
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  Bytes buffer(kPiece);
  while (const std::size_t count = source.read(buffer)) {
    if (std::chrono::steady_clock::now() > until) return false;
    hash.write(ByteView(buffer).first(count));
  }
  return hash.finish() == pointer.content;
}

std::map<std::string, LfsPointer> lfs_pointers(const fs::path& folder) {
  std::map<std::string, LfsPointer> found;
  const Fd top = open_folder(folder);
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const struct stat& status = entry.status;
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > kLongestPointer) {
      return true;
    }
    const std::string path{entry.path};
    const std::optional<std::string> text = read_file_beneath(top.get(), path, kLongestPointer);
    if (const auto pointer = text ? parse_lfs_pointer(*text) : std::nullopt) {
      found.emplace(path, *pointer);
    }
    return true;
  };
  walk_tree(folder, walk);
  return found;
}

void fill_lfs_file(const fs::path& folder, const std::string& path, const LfsPointer& pointer,
                   const fs::path& objects) {
  const std::string hex = pointer.content.hex();
  std::error_code error;
  Fd object;
  if (fs::is_directory(objects, error)) {
    object = open_file_beneath(open_folder(objects).get(),
                               hex.substr(0, 2) + "/" + hex.substr(2, 2) + "/" + hex);
  }
  if (!object || size_of(object.get()) != pointer.size_bytes) {
    throw NotKnown(fmt::format("the content of `{}` is not here (`git lfs fetch`)", path));
  }
  const fs::path target = folder / path;
  const bool program = (fs::status(target).permissions() & fs::perms::owner_exec) != fs::perms{};
  AtomicFile file(target, program ? 0755 : 0644);
  Sha256 hash;
  FunctionSink both{[&](ByteView data) {
    hash.write(data);
    file.write(data);
  }};
  SliceSource source{object.get(), 0, pointer.size_bytes};
  copy(source, both);
  if (hash.finish() != pointer.content) {
    throw NotKnown(fmt::format("the content of `{}` is damaged (`git lfs fsck`)", path));
  }
  file.commit(/*durable=*/false);
}

}  // namespace mlenv
