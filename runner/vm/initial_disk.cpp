#include "runner/vm/initial_disk.hpp"

#include <fmt/core.h>

#include "runner/engine/keeper_client.hpp"

namespace mlenv {

void CpioArchive::add(std::string_view path, unsigned mode, std::string_view content) {
  constexpr std::size_t kAligned = 4;
  const auto pad = [&] { bytes_.append((kAligned - bytes_.size() % kAligned) % kAligned, '\0'); };
  // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor,
  // namesize, check
  bytes_ += fmt::format(
      "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}"
      "{:08x}{:08x}",
      next_++, mode, 0, 0, 1, 0, content.size(), 0, 0, 0, 0, path.size() + 1, 0);
  bytes_.append(path).push_back('\0');
  pad();
  bytes_ += content;
  pad();
}

void CpioArchive::add_folder(std::string_view path) {
  constexpr unsigned kFolder = 0040755;
  add(path, kFolder, {});
}

void CpioArchive::add_file(std::string_view path, std::string_view content, bool is_program) {
  constexpr unsigned kProgram = 0100755;
  constexpr unsigned kPlain = 0100644;
  add(path, is_program ? kProgram : kPlain, content);
}

std::string CpioArchive::finish() {
  next_ = 0;
  add("TRAILER!!!", 0, {});
  return std::move(bytes_);
}

std::string modules_archive(const std::vector<std::pair<std::string, std::string>>& modules) {
  CpioArchive archive;
  archive.add_folder("modules");
  std::string list;
  for (const auto& [name, content] : modules) {
    archive.add_file("modules/" + name, content, false);
    list += name + "\n";
  }
  archive.add_file("modules/list", list, false);
  return archive.finish();
}

std::string programs_archive() {
  CpioArchive archive;
  archive.add_file("init", guest_program(), true);
  archive.add_file("keeper", keeper_program(), true);
  return archive.finish();
}

}  // namespace mlenv
