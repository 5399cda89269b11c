#include "recipes/resolve/page_wheels.hpp"

#include <fcntl.h>
#include <algorithm>

#include "base/file_digest.hpp"
#include "base/files.hpp"
#include "base/own_entries.hpp"
#include "recipes/requirement_files.hpp"

namespace mlenv {
namespace {

void hash_file(const fs::path& path, PylockWheel& wheel) {
  wheel.digest = digest_of_file(path);
  wheel.size_bytes = fs::file_size(path);
}

}  // namespace

bool is_on_page(const Recipe& recipe, const std::string& package) {
  const std::vector<PackageIndex>& all = recipe.steering.indexes;
  return std::any_of(all.begin(), all.end(), [&](const PackageIndex& one) {
    return one.is_page && one.packages.contains(package);
  });
}

void learn_digest(PylockWheel& wheel, Http& http, const fs::path& cache, Progress& progress) {
  if (wheel.url.starts_with("file://")) return hash_file(index_path(wheel.url), wheel);
  const Activity activity(progress, "fetch " + wheel.file, 0, "");
  const fs::path folder = fs::absolute(cache) / "page-wheels";
  make_own_folders(folder);
  const TemporaryFolder aside(folder);
  const fs::path fetched = aside.path() / "wheel";
  {
    const Fd file = open_file(fetched, O_RDWR | O_CREAT | O_EXCL);
    http.download({wheel.url, std::nullopt, std::nullopt, {}}, file.get(), {});
  }
  hash_file(fetched, wheel);
  const fs::path kept = folder / wheel.digest->hex();
  fs::rename(fetched, kept);
  wheel.url = "file://" + kept.string();
}

}  // namespace mlenv
