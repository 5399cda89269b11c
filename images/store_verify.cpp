// Whether everything in the store is what it is called.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/pool.hpp"
#include "base/size_limits.hpp"
#include "base/temporary_name.hpp"
#include "base/text.hpp"
#include "images/platform.hpp"
#include "images/store.hpp"
#include "images/store_folder.hpp"
#include "images/store_names.hpp"
#include "images/tree_check.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

using Damage = Store::Damage;

/// As against the state of this machine or process.
bool tells_of_content(const Error& error) {
  return error.code() != "no-space" && error.code() != "permission" && error.code() != "io" &&
         error.code() != "no-memory";
}

/// Or gone by now. Nobody reads a pipe, or what a link leads to, for a name or a key.
bool is_regular(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

std::string hash_flaw(Source& source, const Digest& digest,
                      std::optional<std::uint64_t> size_bytes = std::nullopt) {
  Sha256 hash;
  copy(source, hash);
  const std::uint64_t size = hash.size_bytes();
  if (size_bytes && size != *size_bytes) {
    return fmt::format("it has {} bytes instead of {}", size, *size_bytes);
  }
  const Digest found = hash.finish();
  return found == digest ? "" : "its content hashes to `" + found.str() + "`";
}

class Verifier {
 public:
  Verifier(const Store& store, StoreFolder& folder, bool repair,
           const std::function<void(std::string_view)>& looking_at)
      : store_(store), folder_(folder), repair_(repair), looking_at_(looking_at) {}

  std::vector<Damage> run() {
    // In the order of what needs what: a wheel that is dropped takes its layers along.
    check_items("blobs", StoreFolder::Item::blob, "blob",
                [&](const Digest& d) { return blob_flaw(d); });
    check_items("spliced", StoreFolder::Item::spliced, "layer",
                [&](const Digest& d) { return layer_flaw(d); });
    check_names();
    find_unnamed_layers();
    check_items("trees", StoreFolder::Item::tree, "tree",
                [&](const Digest& d) { return tree_flaw(d); });
    check_keys();
    return std::move(damage_);
  }

 private:
  void look_at(const std::string& what) {
    const std::lock_guard lock{mutex_};
    if (looking_at_) looking_at_(what);
  }

  template <typename Check>
  void check_items(const char* name, StoreFolder::Item item, std::string_view label,
                   Check&& flaw_of) {
    std::vector<Digest> digests;
    for (const fs::path& path : list_folder(folder_.root() / name)) {
      if (const auto digest = digest_of_name(path)) {
        digests.push_back(*digest);
      } else {
        stray(path);
      }
    }
    std::vector<std::string> flaws(digests.size());
    pool_.for_each(digests.size(), [&](std::size_t i) {
      look_at(fmt::format("{} {}", label, digests[i].str()));
      flaws[i] = flaw_of(digests[i]);
    });
    for (std::size_t i = 0; i < digests.size(); ++i) {
      // What is gone by now was taken away by somebody else.
      if (flaws[i].empty() || !is_there(folder_.place(item, digests[i]))) continue;
      damage_.push_back({fmt::format("{} {}", label, digests[i].str()), flaws[i]});
      flawed_.insert(digests[i]);
      if (repair_) folder_.drop(item, digests[i]);
    }
  }

  void stray(const fs::path& path) {
    // What a killed mlenv left beside a file that it was writing goes; all else may be anybody's.
    const bool is_left =
        has_temporary_name(path.filename().string(), kTemporaryPrefix) && is_own_file(path);
    damage_.push_back({"file " + path.lexically_relative(folder_.root()).string(),
                       "it is not one of the store's files"});
    if (repair_ && is_left) remove_tree(path);
  }

  /// Runs `check`, which returns a flaw; its errors about the content are flaws too. Other errors
  /// say nothing of the content: as when this process has too many files open.
  template <typename Check>
  std::string flaw_of(Check&& check) {
    try {
      return check();
    } catch (const Error& error) {
      if (!tells_of_content(error)) throw;
      return error.what();
    }
  }

  std::string blob_flaw(const Digest& digest) {
    return flaw_of([&]() -> std::string {
      const Fd fd = open_item(folder_.blob(digest));
      FdSource source{fd.get()};
      std::string flaw = hash_flaw(source, digest);
      if (flaw.empty()) {
        folder_.marks().clear(StoreFolder::Item::blob, digest);
        remember_manifest(digest, fd.get());
      }
      return flaw;
    });
  }

  void remember_manifest(const Digest& digest, int fd) {
    struct stat status {};
    char first = '\0';
    if (::fstat(fd, &status) != 0 || status.st_size > static_cast<off_t>(size_limit::kManifest)) {
      return;
    }
    if (::pread(fd, &first, 1, 0) != 1 || first != '{') return;
    const std::lock_guard lock{mutex_};
    json_blobs_.insert(digest);
  }

  std::string layer_flaw(const Digest& digest) {
    return flaw_of([&]() -> std::string {
      Fd fd = open_item(folder_.spliced(digest));
      if (!is_spliced_whole(fd.get())) return "its list of pieces is damaged";
      const std::uint64_t size_bytes = read_spliced_header(fd.get()).size_bytes;
      const auto source = open_spliced(
          std::move(fd), [&](const Digest& blob) { return folder_.open_blob(blob); }, 0);
      std::string flaw = hash_flaw(*source, digest, size_bytes);
      if (flaw.empty()) folder_.marks().clear(StoreFolder::Item::spliced, digest);
      return flaw;
    });
  }

  /// What is missing of what a name leads to.
  struct Flaw {
    std::string why;                        ///< empty: nothing
    std::vector<ImageIndex::Entry> broken;  ///< of an index the parts that are not whole
    bool keeps_image = false;               ///< of an index: one of its images is whole
  };

  /// Remembers the layers of whole images.
  Flaw set_flaw(const Digest& manifest) {
    Flaw flaw;
    const std::string unreadable = flaw_of([&]() -> std::string {
      std::string text = store_.read(manifest, size_limit::kManifest);
      if (!is_index({}, text)) return layers_flaw(store_.image(manifest));
      flaw = index_flaw(parse_index(std::move(text)));
      return {};
    });
    if (!unreadable.empty()) flaw.why = unreadable;
    return flaw;
  }

  Flaw index_flaw(const ImageIndex& index) {
    Flaw flaw;
    for (const ImageIndex::Entry& part : index.entries) {
      const Digest& digest = part.manifest.digest;
      // Manifests come last: without one the part was never fetched, or not yet.
      if (!flawed_.contains(digest) && !store_.has(digest)) continue;
      bool is_image = false;
      const std::string why = flaw_of([&] { return part_flaw(part, is_image); });
      if (why.empty()) {
        flaw.keeps_image = flaw.keeps_image || is_image;
        continue;
      }
      flaw.broken.push_back(part);
      if (flaw.why.empty()) flaw.why = fmt::format("{}: {}", part.shown(), why);
    }
    if (flaw.why.empty() && !flaw.keeps_image) flaw.why = "none of its images is in the store";
    return flaw;
  }

  std::string part_flaw(const ImageIndex::Entry& part, bool& is_image) {
    const Digest& digest = part.manifest.digest;
    if (flawed_.contains(digest)) return "its manifest is damaged";
    std::string text = store_.read(digest, size_limit::kManifest);
    is_image = !is_artifact(part.platform, text);
    if (is_image) return layers_flaw(store_.image(digest));
    for (const Descriptor& blob : parse_artifact(std::move(text), {}).blobs) {
      if (!is_whole(blob.digest)) return lacks("part", blob.digest);
    }
    return {};
  }

  bool is_whole(const Digest& blob) const { return !flawed_.contains(blob) && store_.has(blob); }

  static std::string lacks(std::string_view what, const Digest& blob) {
    return fmt::format("its {} `{}` is damaged or not in the store", what, blob.str());
  }

  std::string layers_flaw(const Image& image) {
    std::string flaw;
    for (const Layer& layer : image.layers) {
      if (is_whole(layer.blob.digest)) {
        layers_.insert_or_assign(layer.diff_id, layer);
      } else if (flaw.empty()) {
        flaw = lacks("layer", layer.blob.digest);
      }
    }
    return flaw;
  }

  /// The begin of a digest, or nothing: what a power cut left of a name.
  static bool is_torn_name(const fs::path& path) {
    constexpr std::string_view kAlgorithm = "sha256:";
    constexpr std::size_t kMost = 80;
    const Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (status.st_size > static_cast<off_t>(kMost)) return false;
    FdSource source{fd.get()};
    std::string text = read_all(source, kMost);
    std::erase(text, '\0');
    if (text.ends_with('\n')) text.pop_back();
    if (text.size() <= kAlgorithm.size()) return kAlgorithm.starts_with(text);
    return text.starts_with(kAlgorithm) &&
           std::all_of(text.begin() + kAlgorithm.size(), text.end(),
                       [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  }

  void check_names() {
    for (const fs::path& path : list_folder(folder_.names())) {
      const auto name = name_of_file(path.filename().string());
      if (!name || !is_regular(path)) {
        stray(path);
        continue;
      }
      look_at("name " + *name);
      const auto digest = read_name(path);
      if (!digest && !is_torn_name(path)) {
        stray(path);
        continue;
      }
      Flaw flaw = digest ? set_flaw(*digest) : Flaw{"it does not hold a digest", {}, false};
      if (flaw.why.empty() || !is_there(path)) continue;
      damage_.push_back({"name " + *name, std::move(flaw.why)});
      if (flaw.keeps_image) {
        for (const ImageIndex::Entry& part : flaw.broken)
          broken_.emplace(part.manifest.digest, part);
      } else if (repair_ && read_name(path) == digest) {
        remove_tree(path);
      }
    }
    if (repair_) drop_broken();
  }

  /// Of an index that keeps another image: from here on they are not fetched.
  void drop_broken() {
    flawed_.clear();  // those are gone
    for (const auto& one : broken_) {
      // Unless somebody fetched what was missing meanwhile.
      bool is_image = false;
      const std::string why = flaw_of([&] { return part_flaw(one.second, is_image); });
      if (!why.empty()) folder_.drop(StoreFolder::Item::blob, one.first);
    }
  }

  void find_unnamed_layers() {
    for (const Digest& digest : json_blobs_) (void)set_flaw(digest);
  }

  std::string tree_flaw(const Digest& diff_id) {
    const fs::path root = folder_.tree(diff_id) / "fs";
    if (!is_there(root)) return "it has no `fs` folder";
    const auto layer = layers_.find(diff_id);
    // A tree whose layer no image names, or whose layer is damaged, cannot be judged.
    if (layer == layers_.end()) return {};
    return flaw_of([&]() -> std::string {
      TreeCheck check{root};
      read_layer(
          store_, layer->second, [](std::uint64_t) {},
          [&](const TarEntry& entry, Source& data) { check.take(entry, data); });
      std::optional<std::string> flaw = check.finish();
      if (!flaw) folder_.marks().clear(StoreFolder::Item::tree, diff_id);
      return flaw.value_or("");
    });
  }

  void check_keys() {
    for (const fs::path& path : list_folder(folder_.root() / "keys")) {
      const auto digest = digest_of_name(path);
      if (!digest || !is_regular(path)) {
        stray(path);
      } else if (!store_.find_key(*digest) && is_there(path)) {
        damage_.push_back({"key " + digest->str(), "its checksum is wrong"});
        if (repair_) remove_tree(path);
      }
    }
  }

  const Store& store_;
  StoreFolder& folder_;
  bool repair_;
  const std::function<void(std::string_view)>& looking_at_;
  Pool pool_;
  std::mutex mutex_;
  std::vector<Damage> damage_;
  std::set<Digest> json_blobs_;
  std::set<Digest> flawed_;
  /// Parts, by manifest, of an index that keeps its name.
  std::map<Digest, ImageIndex::Entry> broken_;
  std::map<Digest, Layer> layers_;  ///< whole ones that images name, by diff-id
};

}  // namespace

std::vector<Damage> Store::verify(bool repair,
                                  const std::function<void(std::string_view)>& looking_at) const {
  const OnlyLooking looking{folder_->work()};
  return Verifier{*this, *folder_, repair, looking_at}.run();
}

}  // namespace mlenv
