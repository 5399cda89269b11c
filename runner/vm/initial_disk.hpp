#pragma once
// What a kernel starts with: an archive of cpio's `newc` form (Linux
// Documentation/driver-api/early-userspace/buffer-format.rst), written by ourselves so that it is
// the same bytes for ever.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv {

/// The guest's first program, which is part of mlenv (guest/main.cpp).
std::string_view guest_program();

/// Files by path, without `/` in front. Several
/// archives one after the other are one.
class CpioArchive {
 public:
  void add_folder(std::string_view path);
  void add_file(std::string_view path, std::string_view content, bool is_program);
  /// With the end.
  std::string finish();

 private:
  void add(std::string_view path, unsigned mode, std::string_view content);
  std::string bytes_;
  unsigned next_ = 1;
};

/// The modules, in the order in which they are to be loaded.
std::string modules_archive(const std::vector<std::pair<std::string, std::string>>& modules);
/// The programs.
std::string programs_archive();

}  // namespace mlenv
