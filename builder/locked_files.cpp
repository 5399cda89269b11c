#include "builder/locked_files.hpp"

#include "base/file_digest.hpp"
#include "base/http.hpp"

namespace mlenv {
namespace {

bool fill_in(std::string& text, std::string_view placeholder, const std::string& value) {
  bool found = false;
  for (std::size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + value.size())) {
    text.replace(at, placeholder.size(), value);
    found = true;
  }
  return found;
}

}  // namespace

LockedFile locked_file(const LockedWheel& wheel) {
  return {wheel.file, wheel.size_bytes, wheel.digest};
}

LockedFile locked_file(const LockedDeb& deb) {
  return {fs::path(deb.path).filename().string(), deb.size_bytes, deb.digest, deb.path};
}

LockedFile locked_file(const LockedSource& source) {
  return {source.file, source.size_bytes, source.digest};
}

LockedFile locked_file(const LockedPython& python) {
  return {python.file, python.size_bytes, python.digest};
}

std::vector<LockedFile> base_files(const LockedBase& base) {
  std::vector<LockedFile> files;
  const auto add = [&](const Descriptor& blob) {
    files.push_back({blob.digest.hex(), blob.size_bytes, blob.digest});
  };
  add(base.config);
  for (const Layer& layer : base.layers) add(layer.blob);
  return files;
}

bool is_intact(const fs::path& path, std::uint64_t size_bytes, const Digest& digest) {
  std::error_code error;
  if (fs::file_size(path, error) != size_bytes || error) return false;
  return digest_of_file(path) == digest;
}

std::vector<fs::path> VendorFolders::all(const LockedFile& file) const {
  std::vector<fs::path> found;
  for (const fs::path& folder : folders_) {
    for (const std::string& name : {file.file, file.digest.hex()}) {
      const fs::path path = folder / name;
      std::error_code error;
      const bool fits = fs::is_regular_file(path, error) &&
                        fs::file_size(path, error) == file.size_bytes && !error;
      if (fits && (found.empty() || found.back() != path)) found.push_back(path);
    }
  }
  return found;
}

std::optional<fs::path> VendorFolders::find(const LockedFile& file) const {
  const std::vector<fs::path> found = all(file);
  if (found.empty()) return std::nullopt;
  return found.front();
}

bool keep_vendored(Store& store, const VendorFolders& folders, const LockedFile& file) {
  if (store.has(file.digest)) return true;
  for (const fs::path& path : folders.all(file)) {
    if (!is_intact(path, file.size_bytes, file.digest)) continue;
    Store::Staged staged = store.stage();
    const Fd fd = open_file(path);
    FdSource source{fd.get()};
    FdSink sink{staged.fd()};
    VerifyingSink verified{sink, file.digest, file.size_bytes, path.string()};
    copy(source, verified);
    verified.finish();
    staged.commit(file.digest);
    return true;
  }
  return false;
}

std::vector<std::string> snapshot_urls(const LockedFile& file,
                                       const std::vector<std::string>& archives) {
  std::vector<std::string> urls;
  for (std::string url : archives) {
    bool filled = fill_in(url, "{sha256}", file.digest.hex());
    filled = fill_in(url, "{file}", url_path_encode(file.file)) || filled;
    const bool by_path = url.find("{path}") != std::string::npos;
    if ((by_path || !filled) && file.path.empty()) continue;
    if (by_path) {
      fill_in(url, "{path}", url_path_encode(file.path));
    } else if (!filled) {
      while (url.ends_with('/')) url.pop_back();
      url += "/" + url_path_encode(file.path);
    }
    urls.push_back(std::move(url));
  }
  return urls;
}

}  // namespace mlenv
