#include "runner/local/home.hpp"

#include <fmt/core.h>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr const char* kPasswd = "/etc/passwd";
constexpr const char* kGroup = "/etc/group";

bool lists_number(std::string_view file, std::uint32_t number) {
  for (const std::string_view line : split(file, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() >= 4 && fields[2] == std::to_string(number)) return true;
  }
  return false;
}

void add_line(const ImageRoot& image, const char* path, const std::string& line) {
  std::string text = image.read(path).value_or("");
  if (!text.empty() && text.back() != '\n') text.push_back('\n');
  image.write(path, text + line + "\n");
}

/// Whether it is theirs to write, or nobody's yet.
bool is_good_home(const ContainerUser& user, const ImageRoot& image) {
  // It becomes part of engines' options, and comes from the image.
  if (user.home.find_first_of(",\"\n\r\t") != std::string::npos) return false;
  if (user.home.empty() || user.home.front() != '/' || user.home == "/nonexistent") return false;
  // All of the image looks as theirs where an ordinary user is shown as somebody else than root.
  if (user.uid != 0 && user.home == "/") return false;
  const auto status = image.status(user.home);
  if (!status) return user.home != "/";
  if (!S_ISDIR(status->st_mode)) return false;
  return user.uid == 0 || (status->st_uid == user.uid && (status->st_mode & S_IWUSR) != 0);
}

}  // namespace

void give_home(ContainerUser& user, const ImageRoot& image) {
  const std::string number = std::to_string(user.uid);
  const std::string name = user.uid == 0 ? "root" : "user-" + number;
  if (!is_good_home(user, image)) user.home = user.uid == 0 ? "/root" : "/home/" + name;
  if (!image.is_folder(user.home)) image.make_folder(user.home, user.uid, user.gid);
  if (!lists_number(image.read(kPasswd).value_or(""), user.uid)) {
    add_line(image, kPasswd,
             fmt::format("{}:x:{}:{}::{}:/bin/sh", name, number, user.gid, user.home));
  }
  if (!lists_number(image.read(kGroup).value_or(""), user.gid)) {
    const std::string group = user.gid == 0 ? "root" : fmt::format("group-{}", user.gid);
    add_line(image, kGroup, fmt::format("{}:x:{}:", group, user.gid));
  }
}

}  // namespace mlenv
