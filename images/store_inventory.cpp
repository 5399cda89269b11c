#include "images/store_inventory.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/digest_scan.hpp"
#include "base/disk_use.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/tree_walk.hpp"
#include "images/spliced.hpp"

namespace mlenv {
namespace {

/// As Store::read has it: nobody reads a bigger one as a manifest or config.
constexpr std::uint64_t kLargestDocument = std::uint64_t{64} << 20U;

bool is_gone(int error) { return error == ENOENT || error == ENOTDIR; }

/// Begins as a JSON object does.
bool is_text(const fs::path& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return false;
  if (static_cast<std::uint64_t>(status.st_size) > kLargestDocument) return false;
  const Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  std::array<char, 64> begin{};
  const ssize_t count = fd ? ::read(fd.get(), begin.data(), begin.size()) : -1;
  if (count < 0) {
    if (is_gone(errno)) return false;
    throw os_error(errno, "cannot look at `{}`", path.string());
  }
  std::string_view text{begin.data(), static_cast<std::size_t>(count)};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? !text.empty() : text[first] == '{';
}

}  // namespace

std::uint64_t bytes_of_file(const struct stat& status) {
  return status.st_nlink > 1 ? 0 : bytes_on_disk(status);
}

std::uint64_t bytes_of_tree(const fs::path& folder) {
  struct stat status {};
  std::uint64_t bytes = ::lstat(folder.c_str(), &status) == 0 ? bytes_on_disk(status) : 0;
  if (!S_ISDIR(status.st_mode)) return bytes;
  std::set<ino_t> seen;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const bool is_linked = S_ISREG(entry.status.st_mode) && entry.status.st_nlink > 1;
    if (!is_linked || seen.insert(entry.status.st_ino).second) bytes += bytes_on_disk(entry.status);
    return true;
  };
  walk.unreadable = [](std::string_view, int) {};
  try {
    walk_tree(folder, walk);
  } catch (const Error& error) {
    log::debug("`{}` is larger than was counted: {}", folder.string(), error.what());
  }
  return bytes;
}

Inventory::Inventory(StoreFolder& folder) : folder_(folder) {
  list("blobs", StoreFolder::Item::blob);
  list("spliced", StoreFolder::Item::spliced);
  list("trees", StoreFolder::Item::tree);
}

void Inventory::list(const char* folder, StoreFolder::Item kind) {
  for (const fs::path& path : list_folder(folder_.root() / folder)) {
    const auto digest = digest_of_name(path);
    if (!digest) continue;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (is_gone(errno)) continue;
      throw os_error(errno, "cannot look at `{}`", path.string());
    }
    Thing thing{kind, *digest, 0, std::chrono::system_clock::from_time_t(status.st_mtime)};
    if (kind != StoreFolder::Item::tree) thing.bytes = bytes_of_file(status);
    thing.is_text = kind == StoreFolder::Item::blob && is_text(path, status);
    things_.emplace(*digest, std::move(thing));
  }
}

void Inventory::mark(const Digest& digest, std::set<Digest>& marked) const {
  std::vector<Digest> open{digest};
  while (!open.empty()) {
    const Digest one = std::move(open.back());
    open.pop_back();
    if (!marked.insert(one).second) continue;
    for (Digest& next : needs_of(one)) open.push_back(std::move(next));
  }
}

void Inventory::pass_on_use(const Digest& digest) {
  std::vector<Digest> open{digest};
  while (!open.empty()) {
    const Digest one = std::move(open.back());
    open.pop_back();
    const UseTime used = used_of(one);
    for (Digest& next : needs_of(one)) {
      const auto [first, last] = things_.equal_range(next);
      bool is_news = false;
      for (auto found = first; found != last; ++found) {
        if (found->second.used >= used) continue;
        found->second.used = used;
        is_news = true;
      }
      if (is_news) open.push_back(std::move(next));
    }
  }
}

/// By the lists without which they are none (image-spec manifest.md, image-index.md).
bool Inventory::is_manifest(const Thing& thing) const {
  if (!thing.is_text) return false;
  const auto text = read_file_if_exists(folder_.blob(thing.digest));
  const auto value = nlohmann::json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  return value.is_object() && (value.contains("layers") || value.contains("manifests"));
}

UseTime Inventory::used_of(const Digest& digest) const {
  UseTime used{};
  const auto [first, last] = things_.equal_range(digest);
  for (auto found = first; found != last; ++found) used = std::max(used, found->second.used);
  return used;
}

std::vector<Digest> Inventory::needs_of(const Digest& digest) const {
  std::vector<Digest> needs;
  const auto [first, last] = things_.equal_range(digest);
  for (auto found = first; found != last; ++found) {
    const Thing& thing = found->second;
    if (thing.is_text) {
      add_digests_in_file(folder_.blob(thing.digest), needs);
    } else if (thing.kind == StoreFolder::Item::spliced) {
      for (Digest& blob : slices_of(thing.digest)) needs.push_back(std::move(blob));
    }
  }
  return needs;
}

/// Of a file that is damaged none are known, and nobody can use it.
std::vector<Digest> Inventory::slices_of(const Digest& layer) const {
  try {
    const Fd fd = open_item(folder_.spliced(layer));
    return read_spliced_header(fd.get()).blobs;
  } catch (const Error& error) {
    if (error.code() != "damaged" && error.code() != "absent") throw;
    return {};
  }
}

}  // namespace mlenv
