#include "images/inspect/layer_facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "images/inspect/layer_parts.hpp"
#include "images/inspect/python_loads.hpp"
#include "images/tree_paths.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kFactsBlock = std::size_t{1} << 20U;
constexpr int kMostPasses = 4;

/// Fills the buffer as far as the source goes.
std::size_t fill(Source& source, ByteSpan buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const std::size_t count = source.read(buffer.subspan(done));
    if (count == 0) break;
    done += count;
  }
  return done;
}

/// Files whose tables lay where a first reading did not keep them: ranges by path.
using WantedRanges = std::map<std::string, std::vector<ByteRange>>;

/// Names are read piece by piece: a range stands for what follows it too.
std::vector<ByteRange> widened(std::vector<ByteRange> ranges) {
  constexpr std::uint64_t kAround = 4096;
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> joined;
  for (const ByteRange& range : ranges) {
    const std::uint64_t end = range.offset + range.size + kAround;
    if (!joined.empty() && range.offset <= joined.back().offset + joined.back().size) {
      ByteRange& last = joined.back();
      last.size = std::max(last.size, end - last.offset);
    } else {
      joined.push_back({range.offset, end - range.offset});
    }
  }
  return joined;
}

/// Of a Python source the libraries that it loads are kept, as its text.
void take_module(const std::string& path, std::string_view text, LayerParts& parts) {
  std::string loads = render_loads(library_loads(text));
  if (!loads.empty()) parts.add_text(path, std::move(loads));
}

/// Reads layers as tars.
class BlobReader {
 public:
  BlobReader(const Store& store, const Layer& layer, Progress& progress)
      : store_(store), layer_(layer), progress_(progress), buffer_(kFactsBlock) {}

  LayerFacts read() {
    pass([this](const TarEntry& entry, Source& data) { take(entry, data); });
    for (int i = 1; i < kMostPasses && !wanted_.empty(); ++i) {
      const WantedRanges wanted = std::move(wanted_);
      wanted_.clear();
      pass([&](const TarEntry& entry, Source& data) {
        const auto found = wanted.find(entry.path);
        if (found == wanted.end() || entry.type != TarEntry::Type::file) return;
        parts_.forget(entry.path);
        take_content(entry, data, found->second);
      });
    }
    return parts_.finish();
  }

 private:
  void pass(const std::function<void(const TarEntry&, Source&)>& take) {
    Activity activity{progress_, "inspecting " + layer_.shown_name(), layer_.blob.size_bytes};
    read_layer(
        store_, layer_, [&](std::uint64_t bytes) { activity.advance(bytes); }, take);
  }

  void take(const TarEntry& entry, Source& data) {
    const std::string_view folder = folder_of(entry.path);
    const std::string_view name = last_part(entry.path);
    if (name == kOpaqueName) return parts_.add({"opaque", std::string(folder), "", 0});
    if (name.starts_with(kWhiteoutPrefix)) {
      return parts_.add({"gone", below(folder, name.substr(kWhiteoutPrefix.size())), "", 0});
    }
    parts_.forget(entry.path);
    switch (entry.type) {
      case TarEntry::Type::folder:
        return parts_.add({"folder", entry.path, "", 0});
      case TarEntry::Type::symlink:
        return parts_.add({"link", entry.path, entry.link, 0});
      case TarEntry::Type::hardlink:
        return parts_.add({"same", entry.path, entry.link, 0});
      case TarEntry::Type::file:
        break;
      default:
        return parts_.add({"other", entry.path, "", 0});
    }
    parts_.add({"file", entry.path, "", entry.size_bytes});
    take_content(entry, data, {});
  }

  void take_content(const TarEntry& entry, Source& data, const std::vector<ByteRange>& kept) {
    if (is_wanted_text(entry.path, entry.size_bytes)) {
      return parts_.add_text(entry.path, read_all(data, kLargestText));
    }
    if (may_load_libraries(entry.path, entry.size_bytes)) {
      return take_module(entry.path, read_all(data, entry.size_bytes), parts_);
    }
    if (is_never_elf(entry.path)) return;
    const std::size_t first = fill(data, buffer_);
    const ByteView head = std::span(buffer_).first(first);
    if (!as_text(head).starts_with(kElfMagic)) return;
    PassingBytes bytes{kept, entry.size_bytes};
    for (const ByteRange& range : elf_tables(head)) bytes.keep(range);
    FatbinScanner scanner;
    for (std::size_t count = first; count > 0; count = fill(data, buffer_)) {
      const ByteView part = std::span(buffer_).first(count);
      bytes.write(part);
      scanner.write(part);
    }
    auto elf = read_elf(bytes);
    if (!elf) return;
    if (!scanner.runs().empty()) {
      elf->device_code = device_code_of(scanner.runs(), fatbin_sections(bytes));
    }
    if (!bytes.wanted().empty()) {
      std::vector<ByteRange> ranges = kept;
      ranges.insert(ranges.end(), bytes.wanted().begin(), bytes.wanted().end());
      wanted_[entry.path] = widened(std::move(ranges));
    }
    parts_.add_elf(entry.path, std::move(*elf));
  }

  const Store& store_;
  const Layer& layer_;
  Progress& progress_;
  Bytes buffer_;
  WantedRanges wanted_;
  LayerParts parts_;
};

/// The same from an unpacked tree, with overlayfs's marks in place of whiteouts.
class TreeReader {
 public:
  explicit TreeReader(fs::path root) : root_(std::move(root)) {}

  LayerFacts read() {
    std::vector<std::string> folders = {""};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      if (has_opaque_mark(root_ / folder)) parts_.add({"opaque", folder, "", 0});
      for (const fs::directory_entry& entry : fs::directory_iterator{root_ / folder}) {
        std::string path = below(folder, entry.path().filename().string());
        if (take(entry.path(), path)) folders.push_back(std::move(path));
      }
    }
    return parts_.finish();
  }

 private:
  /// Whether it is a folder.
  bool take(const fs::path& at, const std::string& path) {
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", at.string());
    if (S_ISDIR(status.st_mode)) {
      parts_.add({"folder", path, "", 0});
      return true;
    }
    if (S_ISLNK(status.st_mode)) {
      parts_.add({"link", path, fs::read_symlink(at).string(), 0});
    } else if (S_ISREG(status.st_mode)) {
      take_file(at, path, status);
    } else {
      const bool is_mark = S_ISCHR(status.st_mode) && status.st_rdev == 0;
      parts_.add({is_mark ? "gone" : "other", path, "", 0});
    }
    return false;
  }

  void take_file(const fs::path& at, const std::string& path, const struct stat& status) {
    if (status.st_nlink > 1) {
      const auto [first, is_new] = first_names_.emplace(status.st_ino, path);
      if (!is_new) return parts_.add({"same", path, first->second, 0});
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    parts_.add({"file", path, "", size});
    const bool is_text = is_wanted_text(path, size);
    const bool is_module = !is_text && may_load_libraries(path, size);
    if (size == 0 || (!is_text && !is_module && is_never_elf(path))) return;
    const Fd fd = open_file(at, O_RDONLY | O_NOFOLLOW);
    if (is_text) {
      FdSource source{fd.get()};
      return parts_.add_text(path, read_all(source, kLargestText));
    }
    if (is_module) {
      FdSource source{fd.get()};
      return take_module(path, read_all(source, size), parts_);
    }
    OpenFileBytes bytes{fd.get(), size};
    auto elf = read_elf(bytes);
    if (!elf) return;
    elf->device_code = device_code_in(bytes);
    parts_.add_elf(path, std::move(*elf));
  }

  fs::path root_;
  std::map<ino_t, std::string> first_names_;
  LayerParts parts_;
};

}  // namespace

LayerFacts read_layer_facts(const Store& store, const Layer& layer, Progress& progress) {
  if (const auto tree = store.find_tree(layer.diff_id)) {
    try {
      const Activity activity{progress, "inspecting " + layer.shown_name(), 0};
      return TreeReader{*tree}.read();
    } catch (const fs::filesystem_error&) {  // NOLINT(bugprone-empty-catch)
      // Folders that are closed to this user: the blob is not.
    } catch (const Error& error) {
      if (error.code() != "permission") throw;
    }
  }
  return BlobReader{store, layer, progress}.read();
}

LayerFacts layer_facts(Store& store, const Layer& layer, Progress& progress) {
  const Digest key = Digest::of("mlenv.layer-facts/2\n" + layer.diff_id.str());
  if (const auto packed = store.find_key(key)) {
    if (auto known = unpack_layer_facts(*packed)) return std::move(*known);
  }
  LayerFacts facts = read_layer_facts(store, layer, progress);
  store.put_key(key, pack_layer_facts(facts));
  return facts;
}

}  // namespace mlenv
