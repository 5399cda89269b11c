#include "runner/record/run_order.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <tuple>
#include <unordered_map>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv {
namespace {

/// Some 40,000 runs.
constexpr off_t kLargeOrder = off_t{1} << 20U;

/// Without the lines of records that were taken away. The file is held.
void shorten(int fd, const fs::path& folder) {
  const std::string text = read_file_if_exists(folder / kOrderFile).value_or("");
  std::string kept;
  for (const std::string_view id : split(text, '\n')) {
    std::error_code unknown;
    if (!id.empty() && fs::exists(folder / id, unknown)) kept.append(id).push_back('\n');
  }
  if (::ftruncate(fd, 0) == 0) write_all(fd, as_bytes(kept));
}

/// Of a time that no right clock shows yet.
std::string first_of_the_future() {
  constexpr std::chrono::hours kMargin{24};
  const std::string id = new_run_id(std::chrono::system_clock::now() + kMargin);
  return id.substr(0, id.rfind('-'));
}

}  // namespace

void note_run(const fs::path& folder, const std::string& id) noexcept {
  try {
    constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW;
    const Fd fd = open_file(folder / kOrderFile, kFlags, 0644);
    while (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw os_error(errno, "cannot lock `{}`", kOrderFile);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) == 0 && status.st_size > kLargeOrder) shorten(fd.get(), folder);
    write_all(fd.get(), as_bytes(id + "\n"));
  } catch (const std::exception& error) {
    log::debug("the order of run `{}` is not noted: {}", id, error.what());
  }
}

void sort_runs(const fs::path& folder, std::vector<std::string>& ids) {
  const std::string text = read_file_if_exists(folder / kOrderFile).value_or("");
  std::unordered_map<std::string_view, std::size_t> places;
  std::size_t lines = 0;
  for (const std::string_view id : split(text, '\n')) places[id] = ++lines;
  const std::string future = first_of_the_future();
  const auto rank = [&](const std::string& id) {
    const auto found = places.find(id);
    const bool is_noted = found != places.end();
    return std::tuple(is_noted ? found->second : 0, id < future, std::string_view(id));
  };
  std::sort(ids.begin(), ids.end(),
            [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

}  // namespace mlenv
