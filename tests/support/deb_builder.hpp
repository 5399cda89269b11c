#pragma once
// Writes Debian packages (deb(5)), also those that nobody should.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/support/random_image.hpp"

namespace mlenv::test {

/// A member of an ar archive.
inline std::string ar_member(std::string_view name, std::string_view content) {
  std::string member =
      fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, "100644", content.size());
  member += content;
  if (content.size() % 2 == 1) member += '\n';
  return member;
}

inline std::string control_of(std::string_view name, std::string_view more = {}) {
  return fmt::format(
      "Package: {}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\n{}Description: x\n", name,
      more);
}

/// Of two tars; `control` holds more than the control file where it has to.
inline std::string deb_of(const std::string& control_tar, const std::string& data_tar) {
  return "!<arch>\n" + ar_member("debian-binary", "2.0\n") + ar_member("control.tar", control_tar) +
         ar_member("data.tar", data_tar);
}

inline std::string deb_of(std::string_view name, const std::vector<TestEntry>& data) {
  return deb_of(test_tar({test_file("control", control_of(name))}), test_tar(data));
}

}  // namespace mlenv::test
