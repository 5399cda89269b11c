#include "recipes/known_data.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "recipes/data_digest.hpp"

namespace mlenv {
namespace {

/// A line for each file.
constexpr std::uint64_t kLongestList = std::uint64_t{2} << 30U;

Digest key_of(std::string_view what, const fs::path& path) {
  return Digest::of(fmt::format("mlenv {} {}\n{}", what, fs::canonical(path).string(),
                                data_fingerprint(path).str()));
}

/// What `compute` gives of the data at that path, as long as nothing changes there.
template <class Compute>
std::string known(Store& store, std::string_view what, const fs::path& path, Compute&& compute) {
  const Digest before = key_of(what, path);
  if (std::optional<std::string> text = store.find_key(before)) return *std::move(text);
  std::string text = compute();
  if (key_of(what, path) != before) {
    throw failure("file-changed", "`{}` changed while it was read", path.string());
  }
  store.put_key(before, text);
  return text;
}

}  // namespace

Digest known_data_digest(Store& store, const fs::path& path, Progress& progress) {
  return Digest::parse(known(store, "data", path, [&] {
    Pool pool;
    return data_digest(path, pool, progress).str();
  }));
}

void remember_data(Store& store, const fs::path& path, const Digest& digest) {
  store.put_key(key_of("data", path), digest.str());
}

ListedData listed_data(Store& store, const fs::path& path, Progress& progress) {
  const auto list_here = [&] {
    Pool pool;
    const DataList list = data_list(path, pool, progress);
    return store.put(render_data_list(list)).str();
  };
  Digest blob = Digest::parse(known(store, "data list", path, list_here));
  if (!store.has(blob)) blob = Digest::parse(list_here());
  const DataList list = read_data_list(store, blob);
  const Digest digest = list.digest();
  remember_data(store, path, digest);
  return {digest, blob, list.size_bytes()};
}

DataList read_data_list(const Store& store, const Digest& list) {
  return parse_data_list(store.read(list, kLongestList));
}

}  // namespace mlenv
