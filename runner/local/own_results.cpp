#include "runner/local/own_results.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <algorithm>
#include <cerrno>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv {
namespace {

/// mlenv says so to each variation.
bool is_variation(const LocalRun& run) {
  return std::any_of(run.env.begin(), run.env.end(),
                     [](const std::string& one) { return one.starts_with("MLENV_VARIATION="); });
}

/// The outermost folder around `results` that the run may write to, without links; empty: none.
fs::path writable_around(const std::vector<Mount>& mounts, const Mount& results) {
  fs::path around;
  for (const Mount& one : mounts) {
    std::error_code error;
    const fs::path real = fs::canonical(one.source, error);
    const bool holds = !error && !one.read_only && real != results.source &&
                       is_beneath(results.source.string(), real.string());
    if (holds && (around.empty() || is_beneath(around.string(), real.string()))) around = real;
  }
  return around;
}

Fd opened_results(const fs::path& around, const Mount& results) {
  const Fd root = open_file(around, O_PATH | O_DIRECTORY);
  Fd fd = open_beneath(root.get(), results.source.lexically_relative(around), O_PATH | O_DIRECTORY,
                       Links::none);
  if (fd) return fd;
  throw refusal("matrix-exists", "`{}` is not the folder that mlenv made", results.source.string())
      .because(fmt::format("something else is in its place: {}", errno_text(errno)))
      .hint("another run of this project put it there; name a folder elsewhere: `--results DIR`");
}

template <class Mounts, class Use>
void for_own_results(const LocalRun& run, Mounts& mounts, const Use& use) {
  for (auto& one : mounts) {
    if (!is_own_results(run, one)) continue;
    const fs::path around = writable_around(mounts, one);
    if (!around.empty()) use(one, opened_results(around, one));
  }
}

}  // namespace

bool is_own_results(const LocalRun& run, const Mount& mount) {
  return mount.target == matrix::kOutputTarget && is_variation(run);
}

std::vector<Mount> with_own_results(const LocalRun& run, std::vector<Mount> mounts,
                                    const fs::path& place) {
  for_own_results(run, mounts, [&](Mount& results, const Fd& fd) {
    make_folders(place);
    if (::mount(descriptor_path(fd).c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) !=
        0) {
      throw usage_error("bad-mount", "cannot mount `{}` at `{}`", results.source.string(),
                        results.target)
          .because(errno_text(errno));
    }
    results.source = place;
  });
  return mounts;
}

void require_own_results(const LocalRun& run, const std::vector<Mount>& mounts) {
  for_own_results(run, mounts, [](const Mount&, const Fd&) {});
}

}  // namespace mlenv
