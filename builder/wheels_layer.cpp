#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "builder/layers.hpp"
#include "builder/staged_layer.hpp"

namespace mlenv {
namespace {

/// Two builds of one thing, as `opencv-python` and `opencv-python-headless`: of those that others
/// ask for, the one with the shorter name mostly holds less.
Error with_way_out(Error error, const LockedWheel& a, const LockedWheel& b) {
  if (a.requested && b.requested) {
    return std::move(error).hint("leave one of the two packages out of the recipe");
  }
  const bool first = b.requested || (!a.requested && a.name.size() <= b.name.size());
  const std::string& name = first ? a.name : b.name;
  return std::move(error)
      .hint(fmt::format(
          "leave one of the two packages out: `exclude: [{}]` does it where others ask for it, too",
          name))
      .remedy({{"exclude", {name}}});
}

struct PlacedFile {
  const InstalledFile* file;
  std::size_t wheel;
};

std::vector<WheelFile> all_with_files(const std::vector<WheelFile>& wheels) {
  std::vector<WheelFile> read;
  read.reserve(wheels.size());
  for (const WheelFile& wheel : wheels) read.push_back(with_files(wheel));
  return read;
}

/// All wheels' files in path order; of files that several wheels share, the first wheel's.
std::vector<PlacedFile> merge(const std::vector<WheelFile>& wheels) {
  std::vector<PlacedFile> files;
  for (std::size_t i = 0; i < wheels.size(); ++i) {
    for (const InstalledFile& file : *wheels[i].files) files.push_back({&file, i});
  }
  std::stable_sort(files.begin(), files.end(), [](const PlacedFile& a, const PlacedFile& b) {
    return a.file->path < b.file->path;
  });
  files.erase(std::unique(files.begin(), files.end(),
                          [](const PlacedFile& a, const PlacedFile& b) {
                            return a.file->path == b.file->path;
                          }),
              files.end());
  return files;
}

std::vector<Fd> open_all(const std::vector<WheelFile>& wheels) {
  std::vector<Fd> fds;
  fds.reserve(wheels.size());
  for (const WheelFile& wheel : wheels) fds.push_back(open_file(wheel.path));
  return fds;
}

struct First {
  std::size_t wheel;
  std::uint32_t crc;
  std::uint64_t size;
};
using Seen = std::map<std::string, First, std::less<>>;

/// A file where another one needs a folder would hide all that lies there, or be lost itself.
void check_folders(const Seen& seen, const std::vector<WheelFile>& wheels) {
  std::string_view last;
  for (const auto& [path, file] : seen) {
    std::string_view folder = std::string_view(path).substr(0, path.rfind('/'));
    if (folder == std::exchange(last, folder)) continue;
    for (; folder.size() > kVenv.size(); folder = folder.substr(0, folder.rfind('/'))) {
      const auto other = seen.find(folder);
      if (other == seen.end()) continue;
      const LockedWheel& above = wheels[other->second.wheel].wheel;
      const LockedWheel& below = wheels[file.wheel].wheel;
      if (above.file == below.file) {
        throw bad_wheel(above, fmt::format("`/{}` would be a file and a folder", folder));
      }
      throw with_way_out(
          failure("wheels-clash", "two wheels put a file and a folder at `/{}`", folder)
              .because(fmt::format("`{}` and `{}`", above.file, below.file)),
          above, below);
    }
  }
}

}  // namespace

Layer make_wheels_layer(const std::vector<WheelFile>& wheels, std::int64_t epoch, std::string title,
                        Store& store, bool unpack) {
  const std::vector<WheelFile> read = all_with_files(wheels);
  const std::vector<Fd> fds = open_all(wheels);
  StagedLayer staged{store, epoch, unpack};
  for (const PlacedFile& placed : merge(read)) {
    const InstalledFile& file = *placed.file;
    if (file.member) {
      staged.writer().add_member(file.path, file.mode, *file.member, fds[placed.wheel].get(),
                                 wheels[placed.wheel].wheel.digest);
    } else {
      staged.writer().add_text(file.path, file.mode, file.text);
    }
  }
  return staged.publish(std::move(title));
}

void check_wheels_agree(const std::vector<WheelFile>& wheels, std::string_view python_minor) {
  // A link of the environment: a folder in its place would hide all other packages.
  const std::string link = fmt::format("{}/lib/python{}/", kVenv, python_minor);
  Seen seen;
  const std::vector<WheelFile> read = all_with_files(wheels);
  for (std::size_t i = 0; i < read.size(); ++i) {
    for (const InstalledFile& file : *read[i].files) {
      if (file.path.starts_with(link)) {
        throw bad_wheel(
            wheels[i].wheel,
            fmt::format("its data goes to `/{}`, a link of the environment", file.path));
      }
      const First here{i, file.member ? file.member->crc32 : crc32(0, as_bytes(file.text)),
                       file.member ? file.member->size_bytes : file.text.size()};
      const auto [first, is_new] = seen.emplace(file.path, here);
      if (is_new || (first->second.crc == here.crc && first->second.size == here.size)) continue;
      const LockedWheel& other = wheels[first->second.wheel].wheel;
      const LockedWheel& own = wheels[i].wheel;
      throw with_way_out(
          failure("wheels-clash", "two wheels put different files at `/{}`", file.path)
              .because(fmt::format("`{}` and `{}`", other.file, own.file)),
          other, own);
    }
  }
  check_folders(seen, wheels);
}

}  // namespace mlenv
