#include "runner/local/user.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

/// A user or group id. The largest number is none: setresuid(2) takes it for `leave it as it is`,
/// which is root.
std::optional<std::uint32_t> id_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value == UINT32_MAX) return std::nullopt;
  return value;
}

bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

constexpr const char* kIdRange = "ids are numbers from 0 to 4294967294";

/// The fields of the first line whose name (field 0) or number (field 2) is `key`; empty when none.
std::vector<std::string_view> find_entry(std::string_view file, std::string_view key) {
  for (const std::string_view line : split(file, '\n')) {
    std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 4) continue;
    if (fields[0] == key || (id_number(key) && id_number(fields[2]) == id_number(key))) {
      return fields;
    }
  }
  return {};
}

/// Of a line in the image's `file`: what cannot be read is not taken for root.
std::uint32_t listed_id(std::string_view text, std::string_view file, std::string_view name) {
  if (const std::optional<std::uint32_t> id = id_number(text)) return *id;
  throw failure("no-user", "`{}` of the image's {} has no valid id", name, file)
      .because(fmt::format("it says `{}`, and {}", text, kIdRange))
      .hint("choose another user by its number: `--user 1000:1000`");
}

std::vector<std::uint32_t> groups_of(std::string_view file, std::string_view name) {
  std::vector<std::uint32_t> groups;
  for (const std::string_view line : split(file, '\n')) {
    std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 4) continue;
    const std::vector<std::string_view> members = split(fields[3], ',');
    const std::optional<std::uint32_t> gid = id_number(fields[2]);
    if (gid && std::find(members.begin(), members.end(), name) != members.end()) {
      groups.push_back(*gid);
    }
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

Error no_user(std::string_view what, std::string_view name) {
  if (is_number(name)) {
    return failure("no-user", "`{}` is no user or group id", name).because(kIdRange);
  }
  return failure("no-user", "the user or group `{}` is not in the image's {}", name, what)
      .hint("a number needs no entry there");
}

}  // namespace

ContainerUser resolve_user(std::string_view user, std::string_view passwd, std::string_view group) {
  ContainerUser result;
  const std::size_t colon = user.find(':');
  const std::string_view name = user.empty() ? "0" : user.substr(0, colon);
  const std::vector<std::string_view> entry = find_entry(passwd, name);
  if (!entry.empty()) {
    result.uid = listed_id(entry[2], "/etc/passwd", entry[0]);
    result.gid = listed_id(entry[3], "/etc/passwd", entry[0]);
    if (entry.size() > 5) result.home = entry[5];
    result.groups = groups_of(group, entry[0]);
  } else if (const std::optional<std::uint32_t> uid = id_number(name)) {
    result.uid = *uid;
    result.home = *uid == 0 ? "/root" : "/";
    result.listed = false;
  } else {
    throw no_user("/etc/passwd", name);
  }
  if (colon != std::string_view::npos) {
    const std::string_view wanted = user.substr(colon + 1);
    const std::vector<std::string_view> found = find_entry(group, wanted);
    const std::optional<std::uint32_t> gid = id_number(found.empty() ? wanted : found[2]);
    if (!gid) throw no_user("/etc/group", wanted);
    result.gid = *gid;
    result.groups.clear();
  }
  return result;
}

void add_groups(ContainerUser& user, const std::vector<std::string>& groups,
                std::string_view group_file) {
  for (const std::string& wanted : groups) {
    const std::vector<std::string_view> found = find_entry(group_file, wanted);
    const std::optional<std::uint32_t> gid = id_number(found.empty() ? wanted : found[2]);
    if (!gid) throw no_user("/etc/group", wanted);
    user.groups.push_back(*gid);
  }
  std::sort(user.groups.begin(), user.groups.end());
  user.groups.erase(std::unique(user.groups.begin(), user.groups.end()), user.groups.end());
}

}  // namespace mlenv
