#include "runner/compare/side_files.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/tree_walk.hpp"
#include "runner/engine/engine.hpp"
#include "runner/engine/engine_image.hpp"
#include "runner/vm/disk/image_disk.hpp"

namespace mlenv::compare {
namespace {

using nlohmann::json;

bool is_ours_to_read(const fs::path& place) {
  const int needed = fs::is_directory(place) ? R_OK | X_OK : R_OK;
  return ::access(place.c_str(), needed) == 0;
}

SideFiles files_of_engine(const Bench& bench, const std::string& name) {
  constexpr std::chrono::seconds kAnswer{20};
  try {
    const ContainerEngine engine = find_engine(name);
    const Captured answer = ask(engine,
                                {"image", "inspect", "--format", "{{json .GraphDriver.Data}}",
                                 engine_image_name(Digest::parse(bench.terms.image))},
                                kAnswer);
    SideFiles files{layer_folders(answer.out), ""};
    if (files.places.empty()) files.why = "it does not say where it keeps the image's files";
    // Who may not look into the folders above does not even see that they are there.
    if (!std::all_of(files.places.begin(), files.places.end(), is_ours_to_read)) {
      files = {{}, "only root may read where it keeps the image's files"};
    }
    return files;
  } catch (const Error& error) {
    return {{}, why_of(error)};
  }
}

void forget_file(int folder, const char* name) {
  const Fd fd{::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (fd) (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace

std::vector<fs::path> layer_folders(std::string_view graph_driver) {
  const json data = json::parse(graph_driver, nullptr, false);
  std::vector<fs::path> folders;
  for (const char* const name : {"LowerDir", "UpperDir"}) {
    if (!data.is_object() || !data.contains(name) || !data.at(name).is_string()) continue;
    const std::string list = data.at(name).get<std::string>();
    for (const std::string_view one : split(list, ':')) {
      if (one.starts_with('/')) folders.emplace_back(one);
    }
  }
  return folders;
}

SideFiles machine_files(const fs::path& store, const std::string& image) {
  const fs::path folder = store / "vm";
  const std::string disk = fmt::format("{}-{}.ext4", Digest::parse(image).hex(), kDiskFormat);
  SideFiles files{{folder / "disks" / disk, folder / "kernels"}, ""};
  if (!fs::exists(files.places.front())) files = {{}, "its disk is not where it is looked for"};
  return files;
}

SideFiles files_on(const Bench& bench, const ActiveSide& side) {
  if (side.spec->id == "bare" && bench.bare != nullptr) return {{bench.bare->root()}, ""};
  if (side.spec->id == "bare" || side.spec->id == "builtin") return {bench.trees, ""};
  if (side.spec->id == "vm") return machine_files(bench.store, bench.terms.image);
  return files_of_engine(bench, std::string(side.spec->id));
}

void forget_pages(const std::vector<fs::path>& places) {
  for (const fs::path& place : places) {
    if (!fs::is_directory(place)) {
      forget_file(AT_FDCWD, place.c_str());
      continue;
    }
    TreeWalk walk;
    walk.visit = [](const TreeEntry& entry) {
      if (S_ISREG(entry.status.st_mode)) forget_file(entry.folder, entry.name.c_str());
      return true;
    };
    walk.unreadable = [](std::string_view, int) {};
    walk_tree(place, walk);
  }
}

}  // namespace mlenv::compare
