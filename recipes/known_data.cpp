#include "recipes/known_data.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "recipes/data_digest.hpp"

namespace mlenv {
namespace {

/// A line for each file.
constexpr std::uint64_t kLongestList = std::uint64_t{2} << 30U;

/// Data at a path, as it is before anybody reads it: what is remembered belongs to that state.
class DataState {
 public:
  explicit DataState(const fs::path& path) : path_(path), fingerprint_(data_fingerprint(path)) {}
  Digest key(std::string_view what) const {
    return Digest::of(
        fmt::format("mlenv {} {}\n{}", what, fs::canonical(path_).string(), fingerprint_.str()));
  }
  const Digest& fingerprint() const { return fingerprint_; }
  void require_unchanged() const {
    if (data_fingerprint(path_) == fingerprint_) return;
    throw failure("file-changed", "`{}` changed while it was read", path_.string());
  }

 private:
  fs::path path_;
  Digest fingerprint_;
};

}  // namespace

Digest known_data_digest(Store& store, const fs::path& path, Progress& progress) {
  const DataState state{path};
  const Digest key = state.key("data");
  if (const std::optional<std::string> text = store.find_key(key)) return Digest::parse(*text);
  Pool pool;
  Digest digest = data_digest(path, pool, progress);
  state.require_unchanged();
  store.put_key(key, digest.str());
  return digest;
}

void remember_data(Store& store, const fs::path& path, const Digest& fingerprint,
                   const Digest& digest) {
  const DataState state{path};
  if (state.fingerprint() == fingerprint) store.put_key(state.key("data"), digest.str());
}

ListedData listed_data(Store& store, const fs::path& path, Progress& progress) {
  const DataState state{path};
  const Digest key = state.key("data list");
  const std::optional<std::string> text = store.find_key(key);
  std::optional<Digest> blob;
  if (text) blob = Digest::parse(*text);
  if (!blob || !store.has(*blob)) {
    Pool pool;
    blob = store.put(render_data_list(data_list(path, pool, progress)));
    state.require_unchanged();
    store.put_key(key, blob->str());
  }
  const DataList list = read_data_list(store, *blob);
  const Digest digest = list.digest();
  store.put_key(state.key("data"), digest.str());
  return {digest, *blob, list.size_bytes()};
}

DataList read_data_list(const Store& store, const Digest& list) {
  return parse_data_list(store.read(list, kLongestList));
}

}  // namespace mlenv
