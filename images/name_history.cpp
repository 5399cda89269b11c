#include "images/name_history.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "images/store_folder.hpp"
#include "images/store_names.hpp"

namespace mlenv {
namespace {

fs::path history_folder(const fs::path& root) { return root / "history"; }

/// When the file got its present content.
std::int64_t given_at(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? std::int64_t{status.st_mtime} : 0;
}

std::vector<PastName> read_history(const fs::path& root, const std::string& file) {
  const auto text = read_file_if_exists(history_folder(root) / file);
  return text ? parse_name_history(*text) : std::vector<PastName>{};
}

}  // namespace

std::vector<PastName> parse_name_history(std::string_view text) {
  std::vector<PastName> past;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::int64_t since = 0;
    const char* const end = line.data() + line.size();
    const auto read = std::from_chars(line.data(), end, since);
    if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ' ') continue;
    try {
      past.push_back({since, Digest::parse({read.ptr + 1, end})});
    } catch (const Error&) {
      continue;
    }
  }
  return past;
}

std::string render_name_history(const std::vector<PastName>& past) {
  std::string text;
  for (const PastName& one : past) text += fmt::format("{} {}\n", one.since, one.manifest.str());
  return text;
}

std::vector<PastName> after_move(std::vector<PastName> past, const PastName& was,
                                 const Digest& is) {
  std::erase_if(past, [&](const PastName& one) {
    return one.manifest == was.manifest || one.manifest == is;
  });
  past.push_back(was);
  if (past.size() > kMostPastNames) past.erase(past.begin(), past.end() - kMostPastNames);
  return past;
}

// The history is written before the name: killed between the two, it ends with what the name still
// means, which `history` leaves out.
void Store::tag(const Reference& name, const Digest& manifest) {
  if (!folder_->has_blob(manifest)) throw absent_blob(manifest);
  const std::string file = name_file(name);
  const fs::path path = folder_->names() / file;
  const FileLock lock = FileLock::wait(folder_->root() / "history.lock", FileLock::Mode::exclusive);
  const std::optional<Digest> was = read_name(path);
  if (was == manifest) return;  // since when is as it was
  if (was) {
    make_own_folders(history_folder(folder_->root()));
    const auto past =
        after_move(read_history(folder_->root(), file), {given_at(path), *was}, manifest);
    folder_->publish_small(render_name_history(past), history_folder(folder_->root()) / file, true);
  }
  folder_->publish_small(manifest.str() + "\n", path, true);
}

bool Store::untag(const Reference& name) {
  const std::string file = name_file(name);
  const FileLock lock = FileLock::wait(folder_->root() / "history.lock", FileLock::Mode::exclusive);
  const fs::path path = folder_->names() / file;
  const bool was = ::unlink(path.c_str()) == 0;
  if (!was && errno != ENOENT) {
    throw os_error(errno, "cannot remove the name `{}`", name.str());
  }
  ::unlink((history_folder(folder_->root()) / file).c_str());
  return was;
}

std::vector<Store::Meaning> Store::history(const Reference& name) const {
  const std::string file = name_file(name);
  const fs::path path = folder_->names() / file;
  const std::optional<Digest> now = read_name(path);
  if (!now) return {};
  std::vector<PastName> all = read_history(folder_->root(), file);
  std::erase_if(all, [&](const PastName& one) { return one.manifest == *now; });
  all.push_back({given_at(path), *now});
  std::vector<Meaning> out;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    out.push_back({one->manifest, one->since, is_whole(one->manifest)});
  }
  return out;
}

bool Store::is_whole(const Digest& manifest) const {
  try {
    const ImageSet set = image_set(manifest);
    for (const Image& image : set.images) {
      for (const Layer& layer : image.layers) {
        if (!has(layer.blob.digest)) return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace mlenv
