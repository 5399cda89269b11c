#include "base/lock_wait.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

std::function<void(const std::string&)>& listener() {
  static std::function<void(const std::string&)> tell;
  return tell;
}

/// `1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF` (proc_locks(5)); `->` stands before those
/// that wait, too.
std::string holder_of(const struct stat& file) {
  const std::string wanted =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  const std::string locks = read_file_if_exists("/proc/locks").value_or("");
  for (const std::string_view line : split(locks, '\n')) {
    if (line.find(" " + wanted + " ") == std::string_view::npos) continue;
    if (line.find("->") != std::string_view::npos) continue;
    const std::string_view before = trim(line.substr(0, line.find(" " + wanted + " ")));
    return std::string(before.substr(before.rfind(' ') + 1));
  }
  return {};
}

/// The state's letter of proc_pid_stat(5), behind a name that may be anything.
bool is_stopped(const std::string& pid) {
  const std::string text = read_file_if_exists("/proc/" + pid + "/stat").value_or("");
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && end + 2 < text.size() &&
         (text[end + 2] == 'T' || text[end + 2] == 't');
}

}  // namespace

void on_lock_wait(std::function<void(const std::string&)> tell) { listener() = std::move(tell); }

std::string lock_wait_text(int fd, const std::string& path) {
  struct stat file {};
  const std::string pid = ::fstat(fd, &file) == 0 ? holder_of(file) : "";
  // 0 or less: of another PID namespace.
  if (pid.empty() || !is_digit(pid.front()) || pid == "0") {
    return fmt::format("waits for `{}`, which another process has locked", path);
  }
  const std::string name =
      printable(trim(read_file_if_exists("/proc/" + pid + "/comm").value_or("")));
  return fmt::format("waits for `{}`, which process {}{} has locked{}", path, pid,
                     name.empty() ? "" : " (" + name + ")",
                     is_stopped(pid) ? fmt::format(" and which is stopped: `kill -CONT {}` lets it "
                                                   "go on",
                                                   pid)
                                     : "");
}

void tell_lock_wait(int fd, const std::string& path) {
  if (listener()) listener()(lock_wait_text(fd, path));
}

}  // namespace mlenv
